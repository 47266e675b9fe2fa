"""What fine-tuning on a task is told: every reading of the paper's Algorithm 1."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from rdc_jax.runtime.config_values import at_least, numbers, one_of

TARGETS = ("each_step", "fixed", "mean")
BATCH_NORMS = ("batch", "running", "updated")

_CHOICES = {
    "optimiser": ("adam", "sgd"),
    "keep": ("last", "best", "mean"),
    "sign": (-1, 1),
    "target": TARGETS,
    "target_pass": ("step", "plain"),
    "rows": ("all", "queries"),
    "total": ("mean", "sum"),
    "attention": ("both", "target", "original"),
    "trained": ("l2", "raw"),
    "batch_norm": BATCH_NORMS,
    "dtype": ("float32", "bfloat16"),
    "loop": ("auto", "python", "compiled"),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class FinetuneOptions:
    """How a network is fitted to one task.

    Attributes:
      steps: Full-batch steps, the paper's T.
      optimiser: ``adam`` (the paper's) or ``sgd``.
      learning_rate: Of each step. The paper's is 1e-3, for weights grown in 400 epochs
        without weight decay; smaller weights want smaller steps (docs/appendix.md).
      weight_decay: Multiple of the weights that is added to the gradient, as in torch.
      batch: Images at a time: a step goes through all of them once, in random order, to
        a target made before it; 0: all at once.
      keep: Weights that answer: those of the ``last`` step, those whose loss was
        ``best``, or their ``mean`` over the steps.
      relative: Multiply a tensor's steps by the root mean square of its entries: a
        rate that means the same for weights of any size.
      alpha: Extra weight of neighbours in the loss (Eq. 11).
      tau: Temperature of the soft distributions (Eq. 12).
      sign: -1: near is likely; 1: as the paper prints it.
      include_self: Keep each image's distance to itself in its distribution.
      target: Calibrated distances computed anew at ``each_step``, ``fixed`` at the
        first one, or the ``mean`` over the steps so far.
      target_pass: Features of the target: those of the ``step`` itself, or ``plain``
        ones, of images without augmentation and by running statistics.
      labelled: In the target two supports of one class are at distance 0, of two
        classes as far apart as any images of the task.
      rows: Images whose distributions the loss compares: ``all``, or the ``queries``.
      total: The loss is their ``mean`` or their ``sum``.
      tau_squared: The loss is multiplied by τ² (Eq. 12).
      attention: Which distances neighbours weigh more in: ``both`` (Eq. 11), the
        ``target``, or the ``original`` ones.
      trained: D_o of ``l2``-normalised rows or of ``raw`` ones.
      batch_norm: Statistics that normalise. ``updated``: those of the batch while
        training, then the running ones as training has updated them, which is what
        torch does with ``train()`` and then ``eval()``; the task's ``batch`` in both;
        or the checkpoint's ``running`` ones in both.
      layers: Modules that train, as in ``("block3", "block4")``, or ``("*norm*",)``;
        empty: all of them; ``("none",)``: only what the objective adds.
      lora: Rank of the changes to matrices: 0 for any change.
      augment: Each step sees the images through the random train transform.
      mirror: Each step sees an image or its mirror image, by chance; both answer.
      dtype: Of the network's computation: ``float32`` or ``bfloat16``.
      record: Steps after which the accuracy is noted too.
      loop: Steps driven from ``python`` or in one ``compiled`` loop; ``auto``: the
        former on CPU, where convolutions inside of loops are slow.
    """

    steps: int = 20
    optimiser: str = "adam"
    learning_rate: float = 1e-4
    weight_decay: float = 0.0
    batch: int = 0
    keep: str = "last"
    relative: bool = False
    alpha: float = 0.5
    tau: float = 3.0
    sign: int = -1
    include_self: bool = False
    target: str = "each_step"
    target_pass: str = "step"
    labelled: bool = False
    rows: str = "all"
    total: str = "mean"
    tau_squared: bool = True
    attention: str = "both"
    trained: str = "l2"
    batch_norm: str = "updated"
    layers: tuple[str, ...] = ()
    lora: int = 0
    augment: bool = False
    mirror: bool = False
    dtype: str = "float32"
    record: tuple[int, ...] = ()
    loop: str = "auto"

    def __post_init__(self) -> None:
        at_least("finetune.steps", self.steps, 1)
        at_least("finetune.learning_rate", self.learning_rate, 0.0)
        at_least("finetune.lora", self.lora, 0)
        at_least("finetune.weight_decay", self.weight_decay, 0.0)
        at_least("finetune.batch", self.batch, 0)
        at_least("finetune.alpha", self.alpha, 0.0)
        at_least("finetune.tau", self.tau, 1e-6)
        for step in self.record:
            at_least("finetune.record", step, 0)
        for name, choices in _CHOICES.items():
            one_of(f"finetune.{name}", getattr(self, name), choices)

    @property
    def recorded(self) -> tuple[int, ...]:
        """Steps to note, in order, without those after the last and the last itself."""
        return tuple(sorted(step for step in {*self.record} if step < self.steps))

    @classmethod
    def from_config(cls, fields: Mapping[str, Any]) -> "FinetuneOptions":
        """Read ``config.finetune``, whose lists are comma-separated words."""
        values = {**fields}
        layers = values.pop("layers")
        record = values.pop("record")
        return cls(
            layers=tuple(word.strip() for word in layers.split(",") if word.strip()),
            record=numbers("finetune.record", record) if record else (),
            **values,
        )
