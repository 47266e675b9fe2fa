"""Data: sets of labelled images by name, tasks, caches, batches and transforms."""

from rdc_jax.data.datasets import DATASETS as DATASETS
from rdc_jax.data.decode import UnreadableImage as UnreadableImage
from rdc_jax.data.features import feature_cache as feature_cache
from rdc_jax.data.image_set import ImageSet as ImageSet
from rdc_jax.data.names import MissingSplit as MissingSplit
from rdc_jax.data.open import open_source as open_source
from rdc_jax.data.open import register_source as register_source
from rdc_jax.data.pixels import PixelCache as PixelCache
from rdc_jax.data.pixels import pixel_cache as pixel_cache
from rdc_jax.data.task_spec import TaskSpec as TaskSpec
from rdc_jax.data.tasks import Tasks as Tasks
from rdc_jax.data.tasks import TaskSampler as TaskSampler
