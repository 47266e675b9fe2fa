"""The options of Ranking Distance Calibration: every reading of the paper."""

import dataclasses
from typing import Literal, get_args

import jax

Distance = Literal["euclidean", "squared_max"]
Base = Literal["reciprocal", "nearest"]
Overlap = Literal[">=", ">"]
Subspace = Literal["tanh", "linear", "gaussian", "polynomial", "sigmoid", "none"]
KernelInput = Literal["l2", "raw"]
Solver = Literal["auto", "iterate", "exact"]
Linkage = Literal["mean", "min"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class RDCParams:
    """Parameters of RDC; the defaults are the paper's values and our default readings.

    A pytree with one leaf, ``lam``, which may be traced, differentiated or vmapped;
    everything else decides shapes or branches and is static. The re-ranking of Zhong
    et al. (2017) is ``RDCParams(distance="squared_max", overlap=">", labels=False,
    subspace="none")``, equal up to ties: NumPy's argsort is unstable there, and a
    duplicate may take the row's own first place; here the row itself comes first and
    ties go to the lowest index.

    Example:
      >>> import rdc_jax
      >>> rdc_jax.RDCParams(k=6).lam
      0.5

    Attributes:
      k: Neighbours of a row, itself not counted.
      k2: Ranks that query expansion averages over, the row itself included.
      lam: Weight of the plain distance against the Jaccard distance (Eq. 8).
      dim: Dimensions of the subspace, the paper's p.
      distance: ``euclidean`` (Eq. 3), or ``squared_max``: squared and divided by the
        row's maximum, as in Zhong's code.
      base: R(i, k) as ``reciprocal`` neighbours, or the ``nearest`` ones, as Eq. 4 is
        printed.
      overlap: A half set joins when its overlap is ``>=`` or ``>`` two thirds (Eq. 4).
      labels: Support rows drop supports of other classes and share the sets of their
        own.
      normalize: Encoded rows (Eq. 5) sum to one; printed without.
      subspace: The second space: ``tanh`` (Eq. 9-10), kernel PCA with a ``linear``,
        ``gaussian``, ``polynomial`` or ``sigmoid`` kernel, or ``none``.
      kernel_input: The kernel sees ``l2``-normalised rows or ``raw`` ones.
      centre: Subtract the task's mean from the kernel's input (tanh only; kernel PCA
        always centres in its feature space).
      solver: How the tanh subspace is found, see ``tanh_subspace``; ``auto``
        iterates where that is as good as a full decomposition.
      linkage: Distance to a class: ``mean`` or ``min`` over its supports.
    """

    k: int = 10
    k2: int = 8
    lam: float | jax.Array = 0.5
    dim: int = 64
    distance: Distance = "euclidean"
    base: Base = "reciprocal"
    overlap: Overlap = ">="
    labels: bool = True
    normalize: bool = True
    subspace: Subspace = "tanh"
    kernel_input: KernelInput = "l2"
    centre: bool = True
    solver: Solver = "auto"
    linkage: Linkage = "mean"

    def __post_init__(self) -> None:
        for name in ("k", "k2", "dim"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"RDCParams.{name} must be an int >= 1, got {value!r}")
        for name in ("labels", "normalize", "centre"):
            value = getattr(self, name)
            if not isinstance(value, bool):
                raise ValueError(f"RDCParams.{name} must be a bool, got {value!r}")
        for name, kind in _CHOICES.items():
            value = getattr(self, name)
            if value not in get_args(kind):
                allowed = ", ".join(map(repr, get_args(kind)))
                raise ValueError(
                    f"RDCParams.{name} must be one of {allowed}; got {value!r}"
                )


_CHOICES = {
    "distance": Distance,
    "base": Base,
    "overlap": Overlap,
    "subspace": Subspace,
    "kernel_input": KernelInput,
    "solver": Solver,
    "linkage": Linkage,
}

jax.tree_util.register_dataclass(
    RDCParams,
    data_fields=["lam"],
    meta_fields=[f.name for f in dataclasses.fields(RDCParams) if f.name != "lam"],
)
