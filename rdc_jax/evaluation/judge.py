"""One episode: what each method gets right, and how its neighbours look."""

import dataclasses

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from rdc_jax.core.prototypes import predictions
from rdc_jax.evaluation import diagnostics
from rdc_jax.methods import Episode, FeatureMethod, Settings
from rdc_jax.runtime.errors import UserError


@dataclasses.dataclass(frozen=True)
class Judge:
    """Counts of one episode, as a function of its features and labels.

    The labels of queries are used here, and by no method: an ``Episode`` lacks them.

    Attributes:
      methods: To be judged.
      settings: Of the methods.
      support_size: Support rows, which come first.
    """

    methods: tuple[FeatureMethod, ...]
    settings: Settings
    support_size: int

    @property
    def columns(self) -> tuple[str, ...]:
        """What the counts are: right answers by method, then diagnostics."""
        names = tuple(method.name for method in self.methods)
        return names + (diagnostics.COLUMNS if self.diagnoses else ())

    @property
    def diagnoses(self) -> bool:
        """Whether there are neighbour sets to look at."""
        return any(method.calibrates for method in self.methods)

    def __call__(
        self, feat_nd: Float[Array, "n d"], labels_n: Int[Array, " n"]
    ) -> Int[Array, " m"]:
        """Count; whole numbers, so that sums are exact in any order."""
        s = self.support_size
        episode = Episode(feat_nd[:s], labels_n[:s], feat_nd[s:])
        counts = [
            (self._answers(method, episode) == labels_n[s:]).sum()
            for method in self.methods
        ]
        if self.diagnoses:
            counts += diagnostics.count(feat_nd, labels_n, s, self.settings.rdc)
        return jnp.stack(counts).astype(jnp.int32)

    def _answers(self, method: FeatureMethod, episode: Episode) -> Int[Array, " q"]:
        dist_qc = method.classify(episode, self.settings)
        expected = (len(episode.query), self.settings.num_classes)
        if jnp.shape(dist_qc) != expected:
            raise UserError(
                f"method {method.name} gives {jnp.shape(dist_qc)} for {expected}, one "
                "distance for each query and class: mend the method"
            )
        return predictions(dist_qc)
