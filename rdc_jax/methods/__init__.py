"""Ways to classify the queries of a task, one small file each, found by name.

``register`` adds a method of your own; see docs/evaluation.md.
"""

from rdc_jax.methods import finetune as finetune
from rdc_jax.methods import npc as npc
from rdc_jax.methods import rdc as rdc
from rdc_jax.methods import rdc_ft as rdc_ft
from rdc_jax.methods.registry import Episode as Episode
from rdc_jax.methods.registry import FeatureMethod as FeatureMethod
from rdc_jax.methods.registry import ImageMethod as ImageMethod
from rdc_jax.methods.registry import Method as Method
from rdc_jax.methods.registry import Settings as Settings
from rdc_jax.methods.registry import find as find
from rdc_jax.methods.registry import load_plugin as load_plugin
from rdc_jax.methods.registry import names as names
from rdc_jax.methods.registry import register as register
from rdc_jax.methods.registry import register_finetuning as register_finetuning
from rdc_jax.methods.variants import find_variant as find_variant
