"""What differs between tasks that a model is fitted to by gradient."""

from typing import Any, NamedTuple

from jaxtyping import Array, Float

from rdc_jax.methods.kept import Kept
from rdc_jax.methods.trainable import merge
from rdc_jax.models.model import Model

PyTree = Any


class State(NamedTuple):
    """A task's progress.

    Attributes:
      model: What does not train, and the running statistics.
      entered: What the part that trains is given for the task's images, supports first:
        of the stages before it, or the images themselves; of their mirror images too,
        if these are seen.
      params: The network's weights that train (``network``), and those of what sits on
        the features (``head``).
      optimiser: State of the optimiser.
      targets: What the loss keeps from step to step.
      kept: Weights for the answer, where these are not the last ones.
    """

    model: Model
    entered: Float[Array, "v n h w c"]
    params: PyTree
    optimiser: PyTree
    targets: PyTree
    kept: Kept | None = None

    @property
    def weights(self) -> PyTree:
        """What may answer in the place of what the last step leaves."""
        return self.params, self.model.variables.get("batch_stats", {})

    @property
    def answering(self) -> "State":
        """The state with the weights that answer."""
        if self.kept is None:
            return self
        params, stats = self.kept.weights
        changed = {"batch_stats": stats} if stats else {}
        model = self.model.replace(variables={**self.model.variables, **changed})
        return self._replace(model=model, params=params)

    @property
    def whole(self) -> Model:
        """The model with the weights of the last step."""
        rest = self.model.variables["params"]["backbone"]
        return with_backbone(self.model, merge(rest, self.params["network"]))


def with_backbone(model: Model, backbone: PyTree) -> Model:
    """Give the model with other weights of its backbone."""
    params = {**model.variables["params"], "backbone": backbone}
    return model.replace(variables={**model.variables, "params": params})
