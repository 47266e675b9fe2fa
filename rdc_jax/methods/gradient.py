"""Adaptation by gradient: steps on the images of one task."""

import abc
import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jaxtyping import Array, Float, Int, Key

from rdc_jax.data.transforms import test_batch, train_batch
from rdc_jax.methods import kept
from rdc_jax.methods.adapt import Adaptation, on_features, test_images
from rdc_jax.methods.base import Task
from rdc_jax.methods.finetune_options import FinetuneOptions
from rdc_jax.methods.npc import nearest_prototype
from rdc_jax.methods.state import State, with_backbone
from rdc_jax.methods.trainable import divide, frozen_stages
from rdc_jax.methods.tuned import epoch
from rdc_jax.models.model import Model
from rdc_jax.runtime.errors import UserError

PyTree = Any

_LORA = 1  # Folded into a task's key for the factors of low-rank changes.


@dataclasses.dataclass(frozen=True, kw_only=True)
class GradientAdaptation(Adaptation):
    """Minimises a loss by steps: a subclass has ``loss``, maybe the others.

    Stages of the network before the first weight that trains normalise by the
    checkpoint's statistics, and run once a task; with ``finetune.augment`` each step.

    Attributes:
      finetune: How the loss is minimised.
      sees: Which images the loss is of, in the order of its features: ``support``,
        ``query``, ``distractors``; a class attribute.
    """

    sees: ClassVar[tuple[str, ...]] = ("support", "query")

    finetune: FinetuneOptions = FinetuneOptions()

    def start(
        self, key: Key[Array, ""], feat_nd: Float[Array, "n d"], task: Task
    ) -> tuple[PyTree, PyTree]:
        """Make the head's parameters, and what the loss keeps of the start.

        Args:
          key: For what is random in them.
          feat_nd: Features before training, supports first, as the first step has them.
          task: The task.
        """
        del key, feat_nd, task
        return {}, None

    def renewed(
        self, targets: PyTree, feat_nd: Float[Array, "n d"], task: Task
    ) -> PyTree:
        """What the loss keeps, given a step's features, which carry no gradient."""
        del feat_nd, task
        return targets

    def part(self, targets: PyTree, rows: Int[Array, " b"]) -> PyTree:
        """What the loss of some images keeps, for small batches.

        Raises:
          UserError: The loss is of all images at once.
        """
        del targets, rows
        raise UserError(f"method {self.name} has no small batches: set batch=0")

    @abc.abstractmethod
    def loss(
        self,
        head_params: PyTree,
        targets: PyTree,
        feat_nd: Float[Array, "n d"],
        out: dict[str, Any],
        task: Task,
    ) -> Float[Array, ""]:
        """Give what a step minimises.

        Args:
          head_params: Parameters on the features; they train too.
          targets: What ``start`` and ``renewed`` kept.
          feat_nd: Features of the images that ``sees`` names, in its order.
          out: The network's intermediates of the same images, by name.
          task: The task, whose rows are images.
        """

    def by_features(
        self, head_params: PyTree, feat_nd: Float[Array, "n d"], task: Task
    ) -> Float[Array, "q c"]:
        """Classify: by nearest prototypes of l2-normalised features (Figure 2)."""
        del head_params
        return nearest_prototype(on_features(task, feat_nd))

    @property
    def steps(self) -> int:
        """``config.finetune.steps``."""
        return self.finetune.steps

    @property
    def recorded(self) -> tuple[int, ...]:
        """``config.finetune.record``."""
        return self.finetune.recorded

    @property
    def step_loop(self) -> str:
        """``config.finetune.loop``."""
        return self.finetune.loop

    def init(self, key: Key[Array, ""], model: Model, task: Task) -> State:
        """Begin with a task.

        Raises:
          UserError: ``finetune.layers`` names modules that are not there.
        """
        spec = dataclasses.replace(model.spec, dtype=self.finetune.dtype)
        model = model.replace(spec=spec)
        images = test_images(task, self.image_size, self._edge(model))
        views = [images, images[:, :, ::-1]] if self.finetune.mirror else [images]
        entered = jnp.stack([self._entered(model, view) for view in views])
        # As the first step will see them: a fixed target is that of the first step.
        feat_nd = self._over_views(model, entered, train=self._by_batch)
        head_params, targets = self.start(key, feat_nd, task)
        frozen, network = self._divided(model, jax.random.fold_in(key, _LORA))
        params = {"network": network, "head": head_params}
        optimiser = self._optimiser().init(params)
        state = State(frozen, entered, params, optimiser, targets)
        return state._replace(kept=kept.first(self.finetune.keep, state.weights))

    def step(self, state: State, task: Task, key: Key[Array, ""]) -> State:
        """Make one step on all images at once, or in small batches."""
        seen, options = self._seen(state, task, key), self.finetune
        if options.batch or options.target_pass == "plain":
            feat_nd = self._for_target(state, seen)
            targets = self.renewed(state.targets, feat_nd, task)
            state = state._replace(targets=targets)
        if not options.batch:
            return self._descend(state, task, seen, state.targets)

        def on_rows(state: State, rows: Int[Array, " b"]) -> State:
            return self._descend(
                state, task, seen[rows], self.part(state.targets, rows)
            )

        return epoch(key, state, len(seen), options.batch, on_rows)

    def _descend(
        self, state: State, task: Task, seen: Float[Array, "n h w c"], targets: PyTree
    ) -> State:
        """Take one step of the optimiser."""
        options = self.finetune
        renews = not options.batch and options.target_pass == "step"

        def loss(params: PyTree) -> tuple[Array, PyTree]:
            model = self._trained(state._replace(params=params).whole)
            feat_nd, out, stats = model.apply(seen, train=self._by_batch)
            new = targets
            if renews:
                new = self.renewed(targets, lax.stop_gradient(feat_nd), task)
            return self.loss(params["head"], new, feat_nd, out, task), (stats, new)

        (value, (stats, new)), grads = jax.value_and_grad(loss, has_aux=True)(
            state.params
        )
        updates, optimiser = self._optimiser().update(
            grads, state.optimiser, state.params
        )
        model = state.model
        if options.batch_norm == "updated" and stats:
            model = model.replace(variables={**model.variables, "batch_stats": stats})
        after = state._replace(
            model=model,
            params=optax.apply_updates(state.params, updates),
            optimiser=optimiser,
            targets=new if renews else state.targets,
        )
        before, left = state.weights, after.weights
        keeping = kept.following(options.keep, state.kept, value, before, left)
        return after._replace(kept=keeping)

    def classify(self, state: State, task: Task) -> Float[Array, "q c"]:
        """Answer by the fitted features."""
        feat_nd = self.features(state, task)
        return self.by_features(state.answering.params["head"], feat_nd, task)

    def adapted(self, state: State) -> Model:
        """The model with the task's weights in it."""
        return state.answering.whole

    def features(self, state: State, task: Task) -> Float[Array, "n d"]:
        """Normalised by the batch's statistics if ``finetune.batch_norm`` says so."""
        del task
        by_batch = self.finetune.batch_norm == "batch"
        return self._over_views(self.adapted(state), state.entered, train=by_batch)

    def _for_target(
        self, state: State, seen: Float[Array, "n h w c"]
    ) -> Float[Array, "n d"]:
        """Features of a step's target, where a pass of their own makes them."""
        if self.finetune.target_pass == "plain":
            return self._over_views(state.whole, state.entered, train=False)
        return self._over_views(state.whole, seen[None], train=self._by_batch)

    def _over_views(
        self, model: Model, entered: Float[Array, "v n h w c"], *, train: bool
    ) -> Float[Array, "n d"]:
        """Features of the task's images, the mean of their views."""
        rest = self._trained(model)
        rows = [rest.apply(view, train=train)[0] for view in entered]
        return jnp.stack(rows).mean(axis=0)

    @property
    def _by_batch(self) -> bool:
        """Whether the images of a step normalise each other."""
        return self.finetune.batch_norm != "running"

    def _edge(self, model: Model) -> int:
        """Of the squares that images are cut out of."""
        return model.preprocessing.edge_at(self.image_size)

    def _seen(
        self, state: State, task: Task, key: Key[Array, ""]
    ) -> Float[Array, "n h w c"]:
        """What a step's part of the network is given of the images it learns from."""
        s = len(task.support)
        parts = {"support": task.support, "query": task.query}
        known = {"support": state.entered[:, :s], "query": state.entered[:, s:]}
        if "distractors" in self.sees:
            parts["distractors"] = task.distractors[0]
        if self.finetune.augment:
            images = jnp.concatenate([parts[name] for name in self.sees])
            keys = jax.random.split(key, len(images))
            views = train_batch(keys, images, self.image_size)
            return self._entered(state.whole, views)
        if "distractors" in self.sees:
            edge = self._edge(state.model)
            views = test_batch(parts["distractors"], self.image_size, edge)
            both = [views, views[:, :, ::-1]][: len(state.entered)]
            entered = [self._entered(state.whole, view) for view in both]
            known["distractors"] = jnp.stack(entered)
        seen = jnp.concatenate([known[name] for name in self.sees], axis=1)
        if not self.finetune.mirror:
            return seen[0]
        rows = jnp.arange(seen.shape[1])
        return seen[jax.random.bernoulli(key, shape=rows.shape).astype(int), rows]

    def _entered(
        self, model: Model, images: Float[Array, "n size size 3"]
    ) -> Float[Array, "n h w c"]:
        """What the stages that do not train make of images."""
        count = self._frozen(model)
        return model.apply(images)[1][model.stages[count - 1]] if count else images

    def _trained(self, model: Model) -> Model:
        """The model without the stages before the first weight that trains."""
        return model.after(self._frozen(model))

    def _frozen(self, model: Model) -> int:
        """How many stages come before the first weight that trains."""
        params = model.variables["params"]["backbone"]
        return frozen_stages(params, self.finetune.layers, model.stages)

    def _divided(self, model: Model, key: Key[Array, ""]) -> tuple[Model, PyTree]:
        """The model without the weights that train, and these."""
        params = model.variables["params"]
        options = self.finetune
        rest, network = divide(params["backbone"], options.layers, options.lora, key)
        return with_backbone(model, rest), network

    def _optimiser(self) -> optax.GradientTransformation:
        rate = self.finetune.learning_rate
        optimiser = optax.adam(rate)
        if self.finetune.optimiser == "sgd":
            optimiser = optax.sgd(rate, momentum=0.9, nesterov=True)
        if decay := self.finetune.weight_decay:
            optimiser = optax.chain(optax.add_decayed_weights(decay), optimiser)
        if self.finetune.relative:
            return optax.chain(optimiser, optax.scale_by_param_block_rms())
        return optimiser
