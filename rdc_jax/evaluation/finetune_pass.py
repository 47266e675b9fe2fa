"""One method that fine-tunes, on the images of one data set."""

import functools
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int, UInt8

from rdc_jax.core.batching import chunk_size
from rdc_jax.core.prototypes import predictions
from rdc_jax.data.episodes import EpisodeSampler
from rdc_jax.data.transforms import resize_size
from rdc_jax.evaluation.programs import Programs, PyTree
from rdc_jax.methods.adapt import Finetuner, State, Task


class Steps:
    """The finetuner's functions of one task, as arrays of images, labels and a key.

    The labels of queries are used to count right answers, and given to no finetuner.
    One of these serves all data sets: what is compiled for it is used again.

    Args:
      name: Of the method.
      finetuner: What the method makes of the network.
      support_size: Support images, which come first.

    Attributes:
      options: Of the finetuner.
    """

    def __init__(self, name: str, finetuner: Finetuner, support_size: int) -> None:
        self._name, self._finetuner = name, finetuner
        self._support_size = support_size
        self.options = finetuner.options

    @property
    def columns(self) -> tuple[str, ...]:
        """What is counted: right answers after recorded steps, then after the last."""
        recorded = (f"{self._name}@{step}" for step in self.options.recorded)
        return (*recorded, self._name)

    def _task(self, images_nhwc: Array, labels_n: Array, key: Array) -> Task:
        s = self._support_size
        return Task(images_nhwc[:s], labels_n[:s], images_nhwc[s:], key)

    def check(self, variables: PyTree, images: int) -> None:
        """Try the functions on the shapes of a task.

        Args:
          variables: Of the network.
          images: Of a task.

        Raises:
          UserError: The finetuner does not fit the network.
        """
        side = resize_size(self._finetuner.image_size)
        shapes = _shapes(images, (side, side, 3))

        def one_step(
            variables: PyTree, images: Array, labels: Array, key: Array
        ) -> Int[Array, ""]:
            state = self.begin(variables, images, labels, key)
            state = self.step(variables, state, images, labels, key, 0)
            return self.count(variables, state, images, labels, key)

        jax.eval_shape(one_step, variables, *shapes)

    def begin(self, variables: PyTree, *task: Array) -> State:
        """State before the first step."""
        return self._finetuner.init(variables, self._task(*task))

    def step(
        self,
        variables: PyTree,
        state: State,
        images_nhwc: Array,
        labels_n: Array,
        key: Array,
        number: Array | int,
    ) -> State:
        """State after one more step."""
        task = self._task(images_nhwc, labels_n, key)
        return self._finetuner.step(variables, state, task, jnp.asarray(number))

    def count(
        self,
        variables: PyTree,
        state: State,
        images_nhwc: Array,
        labels_n: Array,
        key: Array,
    ) -> Int[Array, ""]:
        """Right answers."""
        task = self._task(images_nhwc, labels_n, key)
        dist_qc = self._finetuner.classify(variables, state, task)
        right_q = predictions(dist_qc) == labels_n[self._support_size :]
        return right_q.sum().astype(jnp.int32)

    def features(
        self,
        variables: PyTree,
        state: State,
        images_nhwc: Array,
        labels_n: Array,
        key: Array,
    ) -> Float[Array, "n d"]:
        """Features of the task's images."""
        task = self._task(images_nhwc, labels_n, key)
        return self._finetuner.features(variables, state, task)

    def train(
        self, variables: PyTree, images_nhwc: Array, labels_n: Array, key: Array
    ) -> Int[Array, " m"]:
        """All of it in one program."""
        task = (images_nhwc, labels_n, key)
        options = self.options
        state, counts, done = self.begin(variables, *task), [], 0
        for stop in (*options.recorded, options.steps):
            state = lax.fori_loop(
                done,
                stop,
                lambda number, state: self.step(variables, state, *task, number),
                state,
            )
            counts.append(self.count(variables, state, *task))
            done = stop
        return jnp.stack(counts)


class FinetunePass:
    """Trains on tasks, as many at a time as there is memory for, and judges.

    A CPU takes one task a device: its cores are busy with one, and more of them would
    not go faster. Steps are driven from Python there, because XLA's convolutions are
    slow inside of loops on CPU; elsewhere a compiled loop spares the round trips.

    Args:
      steps: Functions of one task.
      variables: Of the network.
      images: All images of the data set, decoded.
      sampler: Of its episodes.
      seed: Of what is random in training.
    """

    ahead = 0  # Tasks take seconds: each is put on record at once.

    def __init__(
        self,
        steps: Steps,
        variables: PyTree,
        images: UInt8[np.ndarray, "n h w 3"],
        sampler: EpisodeSampler,
        *,
        seed: int,
    ) -> None:
        self._steps, self._variables = steps, variables
        self._images, self._sampler, self._seed = images, sampler, seed
        self._first: Float[np.ndarray, "n d"] | None = None

    def most(self, episodes: int) -> int:
        """Go by the intermediates of one step."""
        if jax.default_backend() == "cpu":
            return 1
        return self.fitting(episodes)

    def fitting(self, episodes: int, budget: int | None = None) -> int:
        """How many tasks fit into a device's memory (see ``chunk_size``)."""
        spec = self._sampler.spec
        n = spec.support_size + spec.query_size
        shapes = _shapes(n, self._images.shape[1:], episodes=(episodes,))

        def one_step(images: Array, labels: Array, key: Array) -> PyTree:
            state = self._steps.begin(self._variables, images, labels, key)
            return self._steps.step(self._variables, state, images, labels, key, 0)

        return chunk_size(one_step, *shapes, budget=budget)

    def __call__(self, numbers: Int[np.ndarray, " e"], programs: Programs) -> Array:
        """Train on episodes."""
        variables, task = self._put(numbers, programs)
        loop = self._steps.options.loop
        if loop == "auto":
            loop = "python" if jax.default_backend() == "cpu" else "compiled"
        if loop == "compiled":
            return programs(self._steps.train, variables, *task, shared=[0])
        counts = []
        for state in self._states(variables, task, programs):
            counts.append(
                programs(self._steps.count, variables, state, *task, shared=[0])
            )
        if numbers[0] == 0:
            self._first = self._features(variables, state, task, programs)
        return jnp.stack(counts, axis=1)

    def first_features(self, programs: Programs) -> Float[np.ndarray, "n d"]:
        """Features of the first episode's images after training.

        They are kept when steps are driven from Python and the episode is trained on;
        else it is trained on now.
        """
        if self._first is None:
            variables, task = self._put(np.zeros(programs.devices, int), programs)
            *_, state = self._states(variables, task, programs)
            self._first = self._features(variables, state, task, programs)
        return self._first

    def _features(
        self,
        variables: PyTree,
        state: State,
        task: tuple[Array, ...],
        programs: Programs,
    ) -> Float[np.ndarray, "n d"]:
        feat_end = programs(self._steps.features, variables, state, *task, shared=[0])
        return np.asarray(feat_end[0])

    def _put(
        self, numbers: Int[np.ndarray, " e"], programs: Programs
    ) -> tuple[PyTree, tuple[Array, ...]]:
        """The network and the tasks, on the devices."""
        tasks, key = self._sampler(numbers), jax.random.key(self._seed)
        keys_e = jax.vmap(functools.partial(jax.random.fold_in, key))(numbers)
        task = (self._images[tasks.indices], tasks.labels, keys_e)
        variables = jax.device_put(self._variables, programs.copied)
        return variables, jax.device_put(task, programs.split)

    def _states(
        self, variables: PyTree, task: tuple[Array, ...], programs: Programs
    ) -> Iterator[State]:
        """States after the recorded steps and the last, driven from Python.

        A state must be used before the next one is asked for, which takes its memory.
        """
        steps, options = self._steps, self._steps.options
        state = programs(steps.begin, variables, *task, shared=[0])
        for number in range(options.steps):
            if number in options.recorded:
                yield state
            at = jax.device_put(np.int32(number), programs.copied)
            state = programs(
                steps.step, variables, state, *task, at, shared=[0, 5], donated=[1]
            )
        yield state


def _shapes(
    images: int, image: tuple[int, ...], *, episodes: tuple[int, ...] = ()
) -> tuple[jax.ShapeDtypeStruct, ...]:
    """Of the images, the labels and the key of tasks."""
    return (
        jax.ShapeDtypeStruct((*episodes, images, *image), np.uint8),
        jax.ShapeDtypeStruct((*episodes, images), np.int32),
        jax.ShapeDtypeStruct(episodes, jax.random.key(0).dtype),
    )
