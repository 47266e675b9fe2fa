"""Learned feature-wise transformation: noise that makes one domain teach another.

Tseng et al., "Cross-Domain Few-Shot Classification via Learned Feature-Wise
Transformation", ICLR 2020, as its published code has it.
"""

import dataclasses
import functools
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import optax
from flax import linen as nn
from jaxtyping import Array, Float, Int, PRNGKeyArray

from rdc_jax.models.feature_wise import COLLECTION, FeatureWise
from rdc_jax.models.heads import linear
from rdc_jax.models.model import Model, Variables
from rdc_jax.pretrain.objectives import base
from rdc_jax.pretrain.options import Options
from rdc_jax.runtime.config_values import one_of
from rdc_jax.runtime.errors import UserError

# Parts of ``params`` beside those of the other objective.
_NOISE, _AUXILIARY = COLLECTION, "auxiliary"
_STAGES = 20  # Of a run, in which the auxiliary loss fades.

Gradients = tuple[tuple[Float[Array, ""], base.Aux], Variables]


class AuxiliaryHead(nn.Module):
    """A classifier of the base classes, of three layers.

    Attributes:
      num_classes: Number of logits.
    """

    num_classes: int

    @nn.compact
    def __call__(self, feat_bd: Float[Array, "b d"]) -> Float[Array, "b c"]:
        """Compute logits of features."""
        for name in ("hidden1", "hidden2"):
            feat_bd = nn.relu(linear(feat_bd.shape[1], name=name)(feat_bd))
        return linear(self.num_classes, name="logits")(feat_bd)


@dataclasses.dataclass(frozen=True)
class LearnedFeatureWise(base.Wrapper):
    """An episodic objective on one domain, whose noise is learned for another.

    With weights theta and noise phi, a step takes the loss of a task of the seen domain
    with noise, moves theta' = theta - inner_rate * its gradient, and takes the loss of
    a task of the unseen domain at theta', in eval mode and without noise. Theta follows
    the gradient of the first loss and of an auxiliary one, phi that of the second.

    Attributes:
      num_classes: Base classes of the training source.
      task_size: Images of a task.
      domains: Which batches it takes.
      inner_rate: Of the step to theta'.
      noise_rate: Learning rate of phi.
      noise_decay: Weight decay of phi.
      fade: Factor of the auxiliary loss from one stage to the next.
      stage: Steps of a stage.
    """

    num_classes: int
    task_size: int
    domains: base.Domains
    inner_rate: float
    noise_rate: float
    noise_decay: float
    fade: float
    stage: int

    own_metrics: ClassVar[tuple[str, ...]] = ("unseen_loss", "auxiliary_loss")

    @property
    def batches(self) -> base.Batches:
        """Images and tasks of several domains."""
        return "domains"

    def init(self, key: PRNGKeyArray, size: int) -> Variables:
        """Draw the other objective's weights and those of the auxiliary head."""
        variables = self.inner.init(key, size)
        images = jnp.zeros((1, size, size, 3))
        feat_bd, _, _ = Model(self.spec, variables).apply(images)
        head = AuxiliaryHead(self.num_classes)
        own = {
            _NOISE: variables.pop(COLLECTION)["backbone"],
            _AUXILIARY: head.init(jax.random.fold_in(key, 1), feat_bd)["params"],
        }
        return {**variables, "params": {**variables["params"], **own}}

    def optimiser(
        self, of_run: optax.GradientTransformation
    ) -> optax.GradientTransformation:
        """Move theta as the run says, and phi by Adam."""
        of_noise = optax.chain(
            optax.add_decayed_weights(self.noise_decay), optax.adam(self.noise_rate)
        )

        def labels(params: Variables) -> dict[str, str]:
            return {part: "phi" if part == _NOISE else "theta" for part in params}

        return optax.partition({"theta": of_run, "phi": of_noise}, labels)

    def loss(
        self,
        variables: Variables,
        batch: base.Batch,
        key: PRNGKeyArray,
        *,
        train: bool = True,
    ) -> tuple[Float[Array, ""], base.Aux]:
        """Compute the loss of the task of the seen domain."""
        theta, phi, _ = _split_params(variables["params"])
        _, seen, _ = self._split_batch(batch)
        changed = {"params": theta, COLLECTION: {"backbone": phi}}
        return self.inner.loss({**variables, **changed}, seen, key, train=train)

    def gradients(
        self,
        variables: Variables,
        batch: base.Batch,
        key: PRNGKeyArray,
        step: Int[Array, ""],
    ) -> Gradients:
        """Give the loss of the seen domain, and the directions of theta and of phi."""
        theta, phi, head = _split_params(variables["params"])
        image, _, unseen = self._split_batch(batch)

        def seen_loss(theta: Any, phi: Any) -> tuple[Array, base.Aux]:
            params = {**theta, _NOISE: phi, _AUXILIARY: head}
            return self.loss({**variables, "params": params}, batch, key)

        (loss, aux), along = jax.value_and_grad(seen_loss, has_aux=True)(theta, phi)
        moved = jax.tree.map(lambda t, g: t - self.inner_rate * g, theta, along)

        def unseen_loss(theta: Any) -> Array:
            # Eval mode: the running statistics, which have just seen the other task.
            changed = {"params": theta, "batch_stats": aux.batch_stats}
            return self.inner.loss({**variables, **changed}, unseen, key, train=False)[
                0
            ]

        unseen_value, direction = jax.value_and_grad(unseen_loss)(moved)

        def gradient(theta: Any) -> Any:
            # To theta as well, which is not used: the convolutions' own gradient can
            # be differentiated forwards only where it is one of theta.
            return jax.grad(lambda t, p: seen_loss(t, p)[0], argnums=(0, 1))(theta, phi)

        # d unseen(theta') / d phi = -inner_rate d/de [grad_phi seen](theta + e v) with
        # v = grad unseen(theta'): no second-order graph is kept.
        _, (_, mixed) = jax.jvp(gradient, (theta,), (direction,))
        extra, (of_theta, of_head) = self._auxiliary(variables, image, step)
        grads = {
            **jax.tree.map(jnp.add, along, of_theta),
            _NOISE: jax.tree.map(lambda m: -self.inner_rate * m, mixed),
            _AUXILIARY: of_head,
        }
        own = {"unseen_loss": unseen_value, "auxiliary_loss": extra}
        return (loss, aux._replace(metrics=aux.metrics | own)), grads

    def _auxiliary(
        self, variables: Variables, batch: base.Batch, step: Int[Array, ""]
    ) -> tuple[Array, Any]:
        """Loss of classifying base classes in eval mode, and its faded gradients."""

        def loss_of(theta: Any, head: Any) -> Array:
            model = Model(self.spec, {**variables, "params": theta})
            feat_bd, _, _ = model.apply(batch.images)
            classifier = AuxiliaryHead(self.num_classes)
            logits_bc: Any = classifier.apply({"params": head}, feat_bd)
            return base.classify(logits_bc, batch.labels, {})[0]

        theta, _, head = _split_params(variables["params"])
        loss, grads = jax.value_and_grad(loss_of, argnums=(0, 1))(theta, head)
        weight = self.fade ** (step // self.stage)
        return loss, jax.tree.map(lambda g: weight * g, grads)

    def _split_batch(self, batch: base.Batch) -> list[base.Batch]:
        """Images of base classes, the task of the seen and of the unseen domain."""
        first = self.domains.images
        second = first + self.task_size
        cuts = (slice(first), slice(first, second), slice(second, None))
        return [base.Batch(batch.images[cut], batch.labels[cut]) for cut in cuts]


def _split_params(params: Variables) -> tuple[Variables, Variables, Variables]:
    """Theta, phi, and the auxiliary head."""
    rest = {**params}
    phi, head = rest.pop(_NOISE), rest.pop(_AUXILIARY)
    return rest, phi, head


@base.register("lft")
def lft(
    options: Options,
    num_classes: int,
    *,
    inner: str = "protonet",
    domains: tuple[str, ...] = (),
    split: str = "train",
    redraw: str = "epoch",
    images: int = 16,
    scale: float = 0.3,
    shift: float = 0.5,
    shortcuts: bool = True,
    inner_rate: float = 1e-3,
    noise_rate: float = 1e-3,
    noise_decay: float = 1e-8,
    fade: float = 0.9,
) -> LearnedFeatureWise:
    """Noise on features, learned over several source domains (Tseng et al. 2020)."""
    one_of("method, lft(redraw)", redraw, ("epoch", "step"))
    if not options.steps_per_epoch:
        raise UserError(
            "lft redraws domains and fades by the epoch: set --config.steps_per_epoch"
        )
    every = options.steps_per_epoch if redraw == "epoch" else 1
    # The authors' advice for one source: take it twice.
    names, split = (domains, split) if domains else ((options.source,), options.split)
    norm = functools.partial(FeatureWise, scale=scale, shift=shift, shortcuts=shortcuts)
    noisy = dataclasses.replace(options, last_norm=norm)
    task, total = options.episode, options.epochs * options.steps_per_epoch
    return LearnedFeatureWise(
        base.get_objective(inner)(noisy, num_classes),
        num_classes=num_classes,
        task_size=task.support_size + task.query_size,
        domains=base.Domains(names, split, images, every),
        inner_rate=inner_rate,
        noise_rate=noise_rate,
        noise_decay=noise_decay,
        fade=fade,
        stage=max(1, total // _STAGES),
    )
