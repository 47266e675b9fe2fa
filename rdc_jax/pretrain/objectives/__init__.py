"""Objectives of training, one small file each; ``config.method`` names one."""

from rdc_jax.pretrain.objectives import ata as ata
from rdc_jax.pretrain.objectives import bsr as bsr
from rdc_jax.pretrain.objectives import cross_entropy as cross_entropy
from rdc_jax.pretrain.objectives import feature_wise as feature_wise
from rdc_jax.pretrain.objectives import gnn as gnn
from rdc_jax.pretrain.objectives import lft as lft
from rdc_jax.pretrain.objectives import lrp as lrp
from rdc_jax.pretrain.objectives import matching as matching
from rdc_jax.pretrain.objectives import nsae as nsae
from rdc_jax.pretrain.objectives import protonet as protonet
from rdc_jax.pretrain.objectives import relation as relation
from rdc_jax.pretrain.objectives import tpn as tpn
from rdc_jax.pretrain.objectives.base import OBJECTIVES as OBJECTIVES
from rdc_jax.pretrain.objectives.base import Aux as Aux
from rdc_jax.pretrain.objectives.base import Batch as Batch
from rdc_jax.pretrain.objectives.base import Batches as Batches
from rdc_jax.pretrain.objectives.base import Domains as Domains
from rdc_jax.pretrain.objectives.base import Embedded as Embedded
from rdc_jax.pretrain.objectives.base import Objective as Objective
from rdc_jax.pretrain.objectives.base import Wrapper as Wrapper
from rdc_jax.pretrain.objectives.base import classify as classify
from rdc_jax.pretrain.objectives.base import get_objective as get_objective
from rdc_jax.pretrain.objectives.base import gradients as gradients
from rdc_jax.pretrain.objectives.base import register as register
from rdc_jax.pretrain.objectives.base import spec_of as spec_of
