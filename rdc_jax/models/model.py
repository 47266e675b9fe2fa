"""A whole model: backbone, head, decoder, and how they were trained."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn
from flax.errors import ScopeParamShapeError
from jaxtyping import Array, ArrayLike, Float

from rdc_jax.models.decoders import DECODERS
from rdc_jax.models.heads import HEADS
from rdc_jax.models.heads.episode import Inputs
from rdc_jax.models.host import HostNetwork
from rdc_jax.models.preprocessing import Preprocessing
from rdc_jax.models.spec import Apply
from rdc_jax.models.spec import Spec as Spec
from rdc_jax.models.spec import Variables as Variables
from rdc_jax.runtime import checksums
from rdc_jax.runtime.errors import UserError

# What checkpoints note of their training, in words.
_TRAINING = {
    "source": "on {}",
    "num_classes": "{} classes",
    "method": "{}",
    "image_size": "{} px",
    "epoch": "epoch {}",
    "step": "step {:,}",
    "score": "validation {:.2f}%",
}


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["variables"],
    meta_fields=["spec"],
    drop_fields=["metadata"],
)
@dataclasses.dataclass(frozen=True)
class Model:
    """A network with its weights: ``model(images)`` gives features.

    A pytree whose leaves are the weights, so that ``jit`` and ``grad`` take it; the
    metadata are dropped there.

    Attributes:
      spec: What it computes.
      variables: ``params`` and ``batch_stats``, each with a ``backbone`` and maybe a
        ``head`` and a ``decoder``.
      metadata: What the checkpoint notes: ``arch`` and, where known, ``method`` (the
        objective it was trained by), ``source``, ``image_size``, ``step``, …
    """

    spec: Spec
    variables: Variables
    metadata: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def arch(self) -> str:
        """Name of the architecture."""
        return self.spec.arch

    @property
    def backbone(self) -> nn.Module | Apply:
        """The network that gives features, a linen module as a rule."""
        return self.spec.backbone

    @property
    def stages(self) -> tuple[str, ...]:
        """What of the network can be left out; empty where it is known as a whole."""
        return getattr(self.backbone, "stages", ())

    @property
    def preprocessing(self) -> Preprocessing:
        """What is done to images before the network."""
        return self.spec.preprocessing

    @property
    def on_host(self) -> bool:
        """Whether the network is a function of NumPy arrays, which jit cannot take."""
        return isinstance(self.spec.network, HostNetwork)

    @property
    def head(self) -> nn.Module | None:
        """What was trained on the features."""
        name, options = self.spec.head, dict(self.spec.head_options)
        return HEADS.make(name, **options) if name else None

    @property
    def decoder(self) -> nn.Module | None:
        """What was trained to make images of features."""
        name, options = self.spec.decoder, dict(self.spec.decoder_options)
        return DECODERS.make(name, **options) if name else None

    @property
    def training(self) -> str:
        """How it was trained, as far as the checkpoint says; may be empty."""
        return ", ".join(
            text.format(self.metadata[name])
            for name, text in _TRAINING.items()
            if self.metadata.get(name) is not None
        )

    @functools.cached_property
    def fingerprint(self) -> str:
        """Digest of what decides on features: the network, its weights, its colours."""
        digest = checksums.of_tree(self.variables_of("backbone"))
        spec, colours = self.spec, self.preprocessing.colours
        more = [*([dict(spec.arch_options)] if spec.arch_options else []), *colours]
        if isinstance(spec.network, HostNetwork):
            more.append(spec.network.fingerprint)
        return checksums.of_json([self.arch, digest, *more])

    @functools.cached_property
    def whole_fingerprint(self) -> str:
        """Digest of all weights; ``fingerprint`` where there is a backbone alone."""
        if not (self.spec.head or self.spec.decoder):
            return self.fingerprint
        digest = checksums.of_tree(self.variables)
        spec = self.spec
        parts = [spec.head, spec.head_options, spec.decoder, spec.decoder_options]
        return checksums.of_json([self.arch, *parts, digest])

    def __call__(self, images: Float[ArrayLike, "b h w 3"]) -> Float[Array, "b d"]:
        """Compute the features of normalised images of any size; jitted."""
        return self.embed(images) if self.on_host else _embed(self, images)

    def embed(self, images: Float[ArrayLike, "b h w 3"]) -> Float[Array, "b d"]:
        """Compute features by the running statistics, each image by itself; pure."""
        return self.apply(images)[0]

    def apply(
        self,
        images: Float[ArrayLike, "b h w c"],
        train: bool = False,
        key: jax.Array | None = None,
    ) -> tuple[Float[Array, "b d"], dict[str, Any], dict[str, Any]]:
        """Apply the backbone; a pure function.

        Args:
          images: Normalised by ImageNet's statistics, whatever the network's own are;
            after stages that are left out, what these give.
          train: Normalise by the batch's statistics, and update the running ones.
          key: Of the random stream ``noise``, for networks that draw in training.

        Returns:
          The features; the network's intermediates, by name; and ``batch_stats`` as
          this batch leaves them, in the layout of ``variables``.
        """
        network, inner = self.backbone, self.variables_of("backbone")
        stats, old = inner.get("batch_stats", {}), self.variables.get("batch_stats", {})
        images = jnp.asarray(images)
        if not self.spec.start:
            images = self.preprocessing.renormalised(images)
        out: Any
        if not isinstance(network, nn.Module):
            out, stats = network(inner, images, train)
        else:
            rngs = {} if key is None else {"noise": key}
            changes = ["batch_stats"] if train and stats else []
            out, updates = network.apply(
                inner, images, train=train, rngs=rngs, mutable=changes
            )
            stats = {**stats, **updates.get("batch_stats", {})}
        features, named = out if isinstance(out, tuple) else (out, {})
        return features, named, ({**old, "backbone": stats} if stats else old)

    def after(self, count: int) -> "Model":
        """Give the model without its first stages, for what the last of these gives.

        Example:
          >>> import jax.numpy as jnp
          >>> from rdc_jax import models
          >>> model = models.load_backbone("packaged")
          >>> features, named, _ = model.apply(jnp.ones((1, 84, 84, 3)))
          >>> rest = model.after(4)  # The stem and three blocks.
          >>> bool((rest.apply(named[model.stages[3]])[0] == features).all())
          True

        Args:
          count: How many of ``stages``.
        """
        return self.replace(spec=dataclasses.replace(self.spec, start=count))

    def apply_head(self, *inputs: Any, **options: Any) -> Any:
        """Apply the head to what it takes; a pure function.

        Args:
          *inputs: Of the head, such as features.
          **options: Of its call, such as ``train=False``.

        Raises:
          UserError: The model has no head, or one for inputs of another size.
        """
        if self.head is None:
            raise UserError(f"the model ({self.arch}) has no head: load one that has")
        try:
            return self.head.apply(self.variables_of("head"), *inputs, **options)
        except ScopeParamShapeError as error:
            raise UserError(
                f"the weights of the {self.spec.head} head do not fit what the network "
                "gives: images must have the size it was trained at "
                "(--config.image_size)"
            ) from error

    def inputs(
        self,
        kind: Inputs,
        images: Float[ArrayLike, "b h w 3"],
        train: bool = False,
        key: jax.Array | None = None,
    ) -> tuple[Float[Array, "b ..."], dict[str, Any]]:
        """Give what a head or a method takes of the network, with ``batch_stats``.

        Args:
          kind: ``features``, or the float32 ``maps`` of the last block.
          images: As of ``apply``, like what follows.
          train: Normalise by the batch's statistics.
          key: Of the random stream ``noise``.

        Raises:
          UserError: The network has no maps.
        """
        features, named, batch_stats = self.apply(images, train, key)
        if kind == "features":
            return features, batch_stats
        blocks = [name for name in named if name.startswith("block")]
        if not blocks:
            raise UserError(f"the network {self.arch} has no blocks to take maps of")
        last = max(blocks, key=lambda name: int(name.removeprefix("block")))
        return named[last].astype(jnp.float32), batch_stats

    def decode(self, features: Float[Array, "b d"]) -> Float[Array, "b h w 3"]:
        """Make images, with values from 0 to 1, of features; a pure function.

        Raises:
          UserError: The model has no decoder.
        """
        if self.decoder is None:
            raise UserError(
                f"the model ({self.arch}) has no decoder: load one that has"
            )
        images: Any = self.decoder.apply(self.variables_of("decoder"), features)
        return images

    def variables_of(self, part: str) -> Variables:
        """The variables of ``backbone``, ``head`` or ``decoder``, for its module."""
        return {
            kind: tree[part] for kind, tree in self.variables.items() if part in tree
        }

    def replace(self, **changes: Any) -> "Model":
        """Give the same model with other ``variables``, ``spec`` or ``metadata``."""
        return dataclasses.replace(self, **changes)


_embed = jax.jit(lambda model, images: model.embed(images))


def wrap(network: nn.Module | Apply, variables: Variables) -> Model:
    """Make a model of any network.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from flax import linen as nn
      >>> from rdc_jax.models.model import wrap
      >>> class Net(nn.Module):
      ...     @nn.compact
      ...     def __call__(self, images, train):
      ...         return nn.Dense(8)(images.mean(axis=(1, 2)))
      >>> images = jnp.zeros((2, 32, 32, 3))
      >>> wrap(Net(), Net().init(jax.random.key(0), images, train=False))(images).shape
      (2, 8)

    Args:
      network: A linen module called as ``network(images, train=…)``, which gives
        features, or features and a dict of intermediates; or a function ``(variables,
        images, train) -> (features, batch statistics)``.
      variables: ``params``, a dict by module, and maybe ``batch_stats``.
    """
    name = getattr(network, "__name__", type(network).__name__)
    return Model(Spec(name, network=network), as_backbone(variables), {"arch": name})


def as_backbone(variables: Variables) -> Variables:
    """Variables of a network, in the layout of ``Model``."""
    return {kind: {"backbone": tree} for kind, tree in variables.items()}
