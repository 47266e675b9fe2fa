"""All methods that need features, on the features of one data set."""

import functools

import jax
import numpy as np
from jaxtyping import Array, Float32, Int

from rdc_jax.core.batching import chunk_size
from rdc_jax.data.episodes import EpisodeSampler
from rdc_jax.evaluation.judge import Judge
from rdc_jax.evaluation.programs import Programs


class FeaturePass:
    """Gathers the features of tasks on the devices, and judges them.

    Args:
      judge: Of one episode.
      features: Of all images of the data set.
      sampler: Of its episodes.
    """

    ahead = 1

    def __init__(
        self,
        judge: Judge,
        features: Float32[np.ndarray, "n d"],
        sampler: EpisodeSampler,
    ) -> None:
        self._judge, self._sampler = judge, sampler
        self._features = np.asarray(features)
        self._on_devices: Array | None = None

    def most(self, episodes: int) -> int:
        """Go by the intermediates of one episode."""
        spec, d = self._sampler.spec, self._features.shape[1]
        n = spec.support_size + spec.query_size
        shapes = (
            jax.ShapeDtypeStruct((episodes, n, d), np.float32),
            jax.ShapeDtypeStruct((episodes, n), np.int32),
        )
        return chunk_size(self._judge, *shapes)

    def __call__(self, numbers: Int[np.ndarray, " e"], programs: Programs) -> Array:
        """Send episodes to the devices."""
        if self._on_devices is None:
            self._on_devices = jax.device_put(self._features, programs.copied)
        tasks = self._sampler(numbers)
        indices_em, labels_em = jax.device_put(
            (tasks.indices, tasks.labels), programs.split
        )
        feat_emd = _gather(programs.split)(self._on_devices, indices_em)
        return programs(self._judge, feat_emd, labels_em)


@functools.cache
def _gather(split: jax.sharding.NamedSharding):  # type: ignore[no-untyped-def]
    return jax.jit(lambda feat_nd, indices_em: feat_nd[indices_em], out_shardings=split)
