"""The data sets of a run and their tasks, checked before any long work."""

import functools
import pathlib
from collections.abc import Callable, Mapping

import jax
import numpy as np
from jaxtyping import Array, Float32, Int, Int32

from rdc_jax.data.distractor_queries import DistractorQueries
from rdc_jax.data.image_set import ImageSet
from rdc_jax.data.open import open_source
from rdc_jax.data.pixels import PixelCache, pixel_cache
from rdc_jax.data.squares import Square
from rdc_jax.data.tasks import Tasks, TaskSampler
from rdc_jax.evaluation import features
from rdc_jax.evaluation.confusion import Answered
from rdc_jax.evaluation.options import Options
from rdc_jax.methods import Task
from rdc_jax.methods.views import Views
from rdc_jax.models.model import Model
from rdc_jax.runtime.errors import UserError

Numbers = Int[np.ndarray, " e"]
Rows = Callable[[Int[np.ndarray, "e n"]], Array | np.ndarray]


class DataSet:
    """A data set to evaluate on.

    Args:
      images: Where its images come from.
      options: Of the run.
      square: How its images are decoded.
      cache_dir: For decoded images and features.

    Attributes:
      samplers: What makes its tasks, by shot.

    Raises:
      UserError: It has too few images.
    """

    def __init__(
        self,
        images: ImageSet,
        options: Options,
        square: Square,
        cache_dir: pathlib.Path,
    ) -> None:
        self.images, self.name, self.square = images, images.name, square
        self._options, self._cache_dir = options, cache_dir
        self.samplers = self._samplers(images.labels)
        self._others = self._distractors(images.labels)

    @functools.cached_property
    def pixels(self) -> PixelCache:
        """Its images, decoded, at the size that the test transform crops from.

        Where images are left out, tasks are drawn from the rest.

        Raises:
          UserError: An image cannot be decoded.
        """
        pixels = decode(self.images, self._options, self.square, self._cache_dir)
        if len(pixels) < len(self.images):
            self.samplers = self._samplers(pixels.labels)
            self._others = self._distractors(pixels.labels)
        return pixels

    def features(
        self, model: Model, views: Views | None
    ) -> Float32[np.ndarray, "n ..."]:
        """What a model makes of all images, computed once; see ``features.embed``."""
        size = self._options.image_size
        return features.embed(self.pixels, model, views, size, self._cache_dir)

    def tasks(
        self, shot: int, numbers: Numbers, rows: Rows, sharding: jax.sharding.Sharding
    ) -> tuple[Task, Int[Array, "e q"]]:
        """Make tasks, and the labels of their queries, which no method gets.

        Args:
          shot: Labelled images a class.
          numbers: Of the tasks.
          rows: From numbers of images to their features or pixels.
          sharding: Where the tasks go.
        """
        sampler, made = self.samplers[shot], self.sample(shot, numbers)
        s = sampler.spec.support_size
        task = Task(
            rows(made.indices[:, :s]),
            made.labels[:, :s],
            rows(made.indices[:, s:]),
            num_classes=sampler.spec.way,
            key=_keys(jax.random.key(self._options.seed), numbers),
        )
        return jax.device_put((task, made.labels[:, s:]), sharding)

    def sample(self, shot: int, numbers: Numbers) -> Tasks:
        """Draw tasks, with queries of other classes if these are asked for."""
        sampler = self.samplers[shot]
        supports = sampler.spec.support_size
        return self._others(sampler(numbers), numbers, supports=supports)

    def answered(
        self, shot: int, answers: Mapping[str, Int[np.ndarray, "e q"]]
    ) -> Answered:
        """Put answers, by method, beside the first tasks that they are of."""
        sampler, pixels = self.samplers[shot], self.pixels
        made = self.sample(shot, np.arange(self._options.episodes))
        queries = np.s_[:, sampler.spec.support_size :]
        return Answered(
            class_names=pixels.class_names,
            image_names=[self.images.ids[row] for row in pixels.rows],
            image_classes=pixels.labels,
            pixels=pixels.images,
            classes=made.classes,
            images=made.indices[queries],
            labels=made.labels[queries],
            answers=answers,
        )

    def _distractors(self, labels: Int32[np.ndarray, " n"]) -> DistractorQueries:
        options = self._options
        return DistractorQueries(
            labels,
            options.distractor_queries,
            way=options.way,
            seed=options.seed,
            dataset=self.name,
        )

    def _samplers(self, labels: Int32[np.ndarray, " n"]) -> dict[int, TaskSampler]:
        options = self._options
        return {
            shot: TaskSampler(
                labels,
                options.spec(shot),
                seed=options.seed,
                dataset=self.name,
                class_names=self.images.class_names,
            )
            for shot in options.shots
        }


class Source:
    """The data set that distractors are drawn from (``config.source``).

    Args:
      options: Of the run.
      square: How its images are decoded.
      cache_dir: For decoded images.

    Raises:
      UserError: It is missing, or was not asked for.
    """

    def __init__(
        self, options: Options, square: Square, cache_dir: pathlib.Path
    ) -> None:
        if not options.source:
            raise UserError(
                "config.source is empty: give the data set that the distractors of "
                "each task are drawn from, as in --config.source=miniimagenet"
            )
        self.square = square
        self._options, self._cache_dir = options, cache_dir
        self.images = open_source(
            options.source, data_dir=options.data_dir or None, split="train"
        )

    @functools.cached_property
    def pixels(self) -> PixelCache:
        """Its images, decoded."""
        return decode(self.images, self._options, self.square, self._cache_dir)

    def draw(self, numbers: Numbers, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Draw images and their labels for each task, by its number alone."""
        seed = self._options.seed
        streams = [np.random.Philox(key=[seed, number]) for number in numbers]
        indices_em = np.stack(
            [
                np.random.RandomState(stream).choice(len(self.pixels), count, False)
                for stream in streams
            ]
        )
        return self.pixels.images[indices_em], self.pixels.labels[indices_em]


def open_datasets(
    options: Options, square: Square, cache_dir: pathlib.Path
) -> list[DataSet]:
    """Open the data sets and see whether tasks can be drawn from them.

    Raises:
      UserError: One is missing, has too few images, or has the name of another.
    """
    datasets: dict[str, DataSet] = {}
    for spec in options.datasets:
        data_dir = options.data_dir or None
        images = open_source(spec, data_dir=data_dir, split=options.split)
        if images.name in datasets:
            raise UserError(
                f"config.datasets has two data sets called {images.name!r}, the second "
                f"as {spec!r}: evaluate them in two work directories"
            )
        datasets[images.name] = DataSet(images, options, square, cache_dir)
    return list(datasets.values())


def decode(
    images: ImageSet, options: Options, square: Square, cache_dir: pathlib.Path
) -> PixelCache:
    """Decode a data set, or find it decoded in the cache.

    Raises:
      UserError: An image cannot be decoded.
    """
    return pixel_cache(
        images, square, cache_dir, skip_unreadable=options.skip_unreadable
    )


@jax.jit
def _keys(key: Array, numbers: Array) -> Array:
    """A key for each task."""
    return jax.vmap(jax.random.fold_in, (None, 0))(key, numbers)
