"""Ways to classify the queries of a task, one small file each, found by name.

``register`` adds a method of your own; see docs/extending.md.
"""

from rdc_jax.methods import alpha_tim as alpha_tim
from rdc_jax.methods import bd_cspn as bd_cspn
from rdc_jax.methods import finetune as finetune
from rdc_jax.methods import label_propagation as label_propagation
from rdc_jax.methods import laplacian_shot as laplacian_shot
from rdc_jax.methods import ldp_tr as ldp_tr
from rdc_jax.methods import logistic as logistic
from rdc_jax.methods import npc as npc
from rdc_jax.methods import npc_prepared as npc_prepared
from rdc_jax.methods import opta as opta
from rdc_jax.methods import paddle as paddle
from rdc_jax.methods import proto_lp as proto_lp
from rdc_jax.methods import pt_map as pt_map
from rdc_jax.methods import rdc as rdc
from rdc_jax.methods import rdc_ft as rdc_ft
from rdc_jax.methods import soft_kmeans as soft_kmeans
from rdc_jax.methods import tcpr as tcpr
from rdc_jax.methods import tim as tim
from rdc_jax.methods.adapt import Adaptation as Adaptation
from rdc_jax.methods.base import FeatureMethod as FeatureMethod
from rdc_jax.methods.base import Method as Method
from rdc_jax.methods.base import Task as Task
from rdc_jax.methods.base import get_method as get_method
from rdc_jax.methods.base import jitted as jitted
from rdc_jax.methods.base import names as names
from rdc_jax.methods.base import register as register
from rdc_jax.methods.gradient import GradientAdaptation as GradientAdaptation
from rdc_jax.runtime.plugins import load_plugin as load_plugin
