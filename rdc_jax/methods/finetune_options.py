"""What fine-tuning on a task is told: every reading of the paper's Algorithm 1."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from rdc_jax.runtime.config_values import at_least, numbers, one_of

TARGETS = ("each_step", "fixed")
BATCH_NORMS = ("batch", "running", "updated")
LOOPS = ("auto", "python", "compiled")


@dataclasses.dataclass(frozen=True, kw_only=True)
class FinetuneOptions:
    """How a network is fitted to one task.

    Attributes:
      steps: Full-batch steps, the paper's T.
      optimiser: ``adam`` (the paper's) or ``sgd``.
      learning_rate: Of each step. The paper's is 1e-3, for weights grown in 400 epochs
        without weight decay; smaller weights want smaller steps (docs/appendix.md).
      relative: Multiply a tensor's steps by the root mean square of its entries: a
        rate that means the same for weights of any size.
      alpha: Extra weight of neighbours in the loss (Eq. 11).
      tau: Temperature of the soft distributions (Eq. 12).
      sign: -1: near is likely; 1: as the paper prints it.
      include_self: Keep each image's distance to itself in its distribution.
      target: Calibrated distances computed anew at ``each_step``, or ``fixed`` at the
        first one.
      batch_norm: Statistics that normalise. ``updated``: those of the batch while
        training, then the running ones as training has updated them, which is what
        torch does with ``train()`` and then ``eval()``; the task's ``batch`` in both;
        or the checkpoint's ``running`` ones in both.
      layers: Modules that train, as in ``("block3", "block4")``, or ``("*norm*",)``;
        empty: all of them; ``("none",)``: only what the objective adds.
      lora: Rank of the changes to matrices: 0 for any change.
      augment: Each step sees the images through the random train transform.
      dtype: Of the network's computation: ``float32`` or ``bfloat16``.
      record: Steps after which the accuracy is noted too.
      loop: Steps driven from ``python`` or in one ``compiled`` loop; ``auto``: the
        former on CPU, where convolutions inside of loops are slow.
    """

    steps: int = 20
    optimiser: str = "adam"
    learning_rate: float = 1e-4
    relative: bool = False
    alpha: float = 0.5
    tau: float = 3.0
    sign: int = -1
    include_self: bool = False
    target: str = "each_step"
    batch_norm: str = "updated"
    layers: tuple[str, ...] = ()
    lora: int = 0
    augment: bool = False
    dtype: str = "float32"
    record: tuple[int, ...] = ()
    loop: str = "auto"

    def __post_init__(self) -> None:
        at_least("finetune.steps", self.steps, 1)
        at_least("finetune.learning_rate", self.learning_rate, 0.0)
        at_least("finetune.lora", self.lora, 0)
        at_least("finetune.alpha", self.alpha, 0.0)
        at_least("finetune.tau", self.tau, 1e-6)
        for step in self.record:
            at_least("finetune.record", step, 0)
        one_of("finetune.optimiser", self.optimiser, ("adam", "sgd"))
        one_of("finetune.sign", self.sign, (-1, 1))
        one_of("finetune.target", self.target, TARGETS)
        one_of("finetune.batch_norm", self.batch_norm, BATCH_NORMS)
        one_of("finetune.dtype", self.dtype, ("float32", "bfloat16"))
        one_of("finetune.loop", self.loop, LOOPS)

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
