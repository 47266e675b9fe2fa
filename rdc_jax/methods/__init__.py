"""Ways to classify the queries of a task, one small file each, found by name.

``register`` adds a method of your own; see docs/extending.md.
"""

from rdc_jax.methods import finetune as finetune
from rdc_jax.methods import npc as npc
from rdc_jax.methods import rdc as rdc
from rdc_jax.methods import rdc_ft as rdc_ft
from rdc_jax.methods.base import FeatureMethod as FeatureMethod
from rdc_jax.methods.base import Method as Method
from rdc_jax.methods.base import Task as Task
from rdc_jax.methods.base import get_method as get_method
from rdc_jax.methods.base import jitted as jitted
from rdc_jax.methods.base import names as names
from rdc_jax.methods.base import register as register
from rdc_jax.methods.plugins import load_plugin as load_plugin
