"""Heads by name: what is trained on top of a backbone."""

from flax import linen as nn

from rdc_jax.models.heads.gnn import GNN as GNN
from rdc_jax.models.heads.linear import Classifier as Classifier
from rdc_jax.models.heads.linear import linear as linear
from rdc_jax.models.heads.matching import Matching as Matching
from rdc_jax.models.heads.relation import Relation as Relation
from rdc_jax.models.heads.tpn import TPN as TPN
from rdc_jax.runtime.registry import Registry

HEADS: Registry[nn.Module] = Registry(
    "head", linear=linear, gnn=GNN, tpn=TPN, relation=Relation, matching=Matching
)
"""Networks on top of a backbone; made with the ``head_options`` of a checkpoint.

``linear`` takes features. The others are ``EpisodeHead``s: they take a whole task.
"""
