"""The built-in image family: a source domain and four that look nothing like it.

It needs no download. Image ``i`` of a class is a function of the seed, the domain, the
class and ``i``, whatever else is rendered and in whatever order.
"""

from rdc_jax.data.synthetic.images import DOMAINS as DOMAINS
from rdc_jax.data.synthetic.images import open_synthetic as open_synthetic
