"""The image transforms of the field's PyTorch code, on device.

Each function takes one image; the ``_batch`` versions are jitted and vmapped. Pixel
values keep Pillow's 8-bit steps (rounded after each pass of a resize, cut off after
each enhancement), held as whole numbers in float32. Against a Pillow pipeline with
the same parameters, on 60 images of each of four real sets: the mean difference is
.01 to .02 of 255 levels, 98 to 99% of values are equal (92% in the worst image), none
differs by more than 4. What remains are mostly exact halves,
which float32 and Pillow's fixed point round differently; they are common where sizes
are in a simple ratio (64 to 96: 9% of values, by 1 or 2 levels).

What a cache of decoded squares changes: the test transform from a cache of
``resize_size(size)`` pixels is the original one, because its first step is that very
resize. The train transform crops from the cached square instead of the original
image. For images that were square and are cached at their own size nothing differs.
Otherwise (a) detail is limited to the cache's resolution, so small crops are softer
than from a large original (a larger cache keeps more), and (b) aspect ratios are
measured on the square, unless ``aspect`` gives the original's width over height, which
corrects them exactly up to the rounding of the box to whole cached pixels.
"""

from rdc_jax.data.transforms.crop import sample_crop as sample_crop
from rdc_jax.data.transforms.jitter import brightness as brightness
from rdc_jax.data.transforms.jitter import colour as colour
from rdc_jax.data.transforms.jitter import contrast as contrast
from rdc_jax.data.transforms.pipelines import Augmentation as Augmentation
from rdc_jax.data.transforms.pipelines import augment as augment
from rdc_jax.data.transforms.pipelines import between_0_and_1 as between_0_and_1
from rdc_jax.data.transforms.pipelines import normalize as normalize
from rdc_jax.data.transforms.pipelines import resize_size as resize_size
from rdc_jax.data.transforms.pipelines import sample_augmentation as sample_augmentation
from rdc_jax.data.transforms.pipelines import test_batch as test_batch
from rdc_jax.data.transforms.pipelines import test_transform as test_transform
from rdc_jax.data.transforms.pipelines import test_views as test_views
from rdc_jax.data.transforms.pipelines import train_batch as train_batch
from rdc_jax.data.transforms.pipelines import train_transform as train_transform
from rdc_jax.data.transforms.pseudo import pseudo_sample as pseudo_sample
from rdc_jax.data.transforms.pseudo import pseudo_samples as pseudo_samples
from rdc_jax.data.transforms.pseudo import pseudo_set as pseudo_set
from rdc_jax.data.transforms.pseudo import versions_of as versions_of
from rdc_jax.data.transforms.resample import Box as Box
from rdc_jax.data.transforms.resample import resample as resample
from rdc_jax.data.transforms.resample import resize as resize
