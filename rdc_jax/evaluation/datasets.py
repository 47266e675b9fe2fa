"""The data sets of a run and their tasks, checked before any long work."""

import functools
import pathlib
from collections.abc import Callable, Mapping, Sequence

import jax
import numpy as np
from jaxtyping import Array, Float32, Int, Int32, UInt8

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
from rdc_jax.runtime.config_values import Shot
from rdc_jax.runtime.errors import UserError

PAIR = ">"
"""Between the data set of the supports and that of the queries."""

Numbers = Int[np.ndarray, " e"]
Rows = Callable[[Int[np.ndarray, "e n"]], Array | np.ndarray]


class DataSet:
    """A data set to evaluate on; or two, of supports and of queries.

    Classes of two data sets are the same if their names are.

    Args:
      images: Where its images come from.
      options: The typed config of the run.
      square: How its images are decoded.
      cache_dir: For decoded images and features.
      queries: Where the queries come from, if ``images`` are for the supports alone.

    Attributes:
      parts: One set of images, or two; they are numbered one after the other.
      name: That of the images; ``supports>queries`` of two.
      class_names: By class id.
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
        queries: ImageSet | None = None,
    ) -> None:
        self.parts = (images,) if queries is None else (images, queries)
        self.name, self.square = PAIR.join(part.name for part in self.parts), square
        names = (name for part in self.parts for name in part.class_names)
        self.class_names = tuple(dict.fromkeys(names))
        self._options, self._cache_dir = options, cache_dir
        labels = [part.labels for part in self.parts]
        self.samplers, self._others = self._drawing(labels)

    @property
    def fingerprints(self) -> dict[str, str]:
        """What identifies the images, by the name of each part."""
        return {part.name: part.fingerprint() for part in self.parts}

    @functools.cached_property
    def pixels(self) -> tuple[PixelCache, ...]:
        """The images of each part, decoded, at the size that is cropped from.

        Where images are left out, tasks are drawn from the rest.

        Raises:
          UserError: An image cannot be decoded.
        """
        arguments = self._options, self.square, self._cache_dir
        each = [decode(part, *arguments) for part in self.parts]
        if sum(map(len, each)) < sum(map(len, self.parts)):
            labels = [pixels.labels for pixels in each]
            self.samplers, self._others = self._drawing(labels)
        return tuple(each)

    def pictures(
        self, rows: Int[np.ndarray, "*shape"]
    ) -> UInt8[np.ndarray, "*shape size size 3"]:
        """Decoded images by their numbers."""
        first, *rest = self.pixels
        if not rest:
            return first.images[rows]
        apart = rows >= len(first)
        pictures = np.empty((*rows.shape, *first.images.shape[1:]), np.uint8)
        pictures[~apart] = first.images[rows[~apart]]
        pictures[apart] = rest[0].images[rows[apart] - len(first)]
        return pictures

    def features(
        self, model: Model, views: Views | None
    ) -> Float32[np.ndarray, "n ..."]:
        """What a model makes of all images, computed once; see ``features.embed``."""
        arguments = model, views, self._options.image_size, self._cache_dir
        first, *rest = [features.embed(part, *arguments) for part in self.pixels]
        return np.concatenate([first, *rest]) if rest else first

    def tasks(
        self, shot: Shot, numbers: Numbers, rows: Rows, sharding: jax.sharding.Sharding
    ) -> tuple[Task, Int[Array, "e q"]]:
        """Make tasks, and the labels of their queries, which no method gets.

        Args:
          shot: Labelled images a class.
          numbers: Which tasks, counted from 0.
          rows: From numbers of images to their features or pixels.
          sharding: Where the tasks go.
        """
        sampler, made = self.samplers[shot], self.sample(shot, numbers)
        s = sampler.spec.support_size
        task = Task(
            rows(made.indices[:, :s]),
            made.labels[:, :s],
            rows(made.indices[:, s:]),
            num_classes=sampler.spec.most_ways,
            key=_keys(jax.random.key(self._options.seed), numbers),
        )
        if self._options.varies:
            mask = made.mask
            task = task.replace(support_mask=mask[:, :s], query_mask=mask[:, s:])
        return jax.device_put((task, made.labels[:, s:]), sharding)

    def sample(self, shot: Shot, numbers: Numbers) -> Tasks:
        """Draw tasks, with queries of other classes if these are asked for."""
        sampler = self.samplers[shot]
        supports = sampler.spec.support_size
        return self._others(sampler(numbers), numbers, supports=supports)

    def answered(
        self, shot: Shot, answers: Mapping[str, Int[np.ndarray, "e q"]]
    ) -> Answered:
        """Put answers, by method, beside the first tasks that they are of."""
        sampler, (*others, pixels) = self.samplers[shot], self.pixels
        made = self.sample(shot, np.arange(self._options.episodes))
        queries = np.s_[:, sampler.spec.support_size :]
        # Of two parts, queries are of the last one; filling is of the first.
        images_eq = made.indices[queries] - sum(map(len, others))
        return Answered(
            class_names=self.class_names,
            image_names=[self.parts[-1].ids[row] for row in pixels.rows],
            image_classes=self._numbered(pixels.labels),
            pixels=pixels.images,
            classes=made.classes,
            images=np.maximum(images_eq, 0),
            labels=made.labels[queries],
            answers=answers,
        )

    def _numbered(self, labels: Int32[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
        """Class ids of the images that queries are drawn from."""
        names = self.parts[-1].class_names
        return np.array([self.class_names.index(name) for name in names])[labels]

    def _drawing(
        self, labels: Sequence[Int32[np.ndarray, " _"]]
    ) -> tuple[dict[Shot, TaskSampler], DistractorQueries]:
        """What draws tasks, by shot, and what draws queries of no class."""
        options, (*others, asked) = self._options, labels
        asked = self._numbered(asked)
        never = [np.full(len(part), -1) for part in others]
        foreign = DistractorQueries(
            np.concatenate([*never, asked]),
            options.distractor_queries,
            way=max(options.spec(shot).most_ways for shot in options.shots),
            seed=options.seed,
            dataset=self.name,
        )
        samplers = {
            shot: TaskSampler(
                labels[0],
                options.spec(shot),
                seed=options.seed,
                dataset=self.name,
                class_names=self.class_names,
                query_labels=asked if others else None,
            )
            for shot in options.shots
        }
        return samplers, foreign


class Source:
    """The data set that distractors are drawn from (``config.source``).

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

    @property
    def num_classes(self) -> int:
        """How many classes its labels tell apart."""
        return len(self.images.class_names)

    @property
    def fingerprint(self) -> str:
        """Of its images."""
        return self.images.fingerprint()

    def check(self, count: int) -> None:
        """Refuse to draw more images a step than there are.

        Raises:
          UserError: There are too few.
        """
        if count > len(self.images):
            raise UserError(
                f"config.source={self._options.source} has {len(self.images)} images, "
                f"fewer than the {count} distractors of a step: ask for fewer"
            )

    def draw(
        self, numbers: Numbers, step: int, count: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw images and their labels for a step of each task, ``[e, count, ...]``.

        A task goes through all images in an order of its own, then in another one: so
        what is drawn depends on the task's number and the step alone.
        """
        passed, place = divmod(step, len(self.pixels) // count)
        indices_em = np.stack(
            [
                self._order(number, passed)[place * count : (place + 1) * count]
                for number in np.asarray(numbers).tolist()
            ]
        )
        return self.pixels.images[indices_em], self.pixels.labels[indices_em]

    def _order(self, number: int, passed: int) -> Int[np.ndarray, " n"]:
        """The order of a task's pass over the images."""
        key, counter = [self._options.seed, number], [0, 0, 0, passed]
        stream = np.random.Philox(key=key, counter=counter)
        return np.random.RandomState(stream).permutation(len(self.pixels))


def open_datasets(
    options: Options, square: Square, cache_dir: pathlib.Path
) -> list[DataSet]:
    """Open the data sets and see whether tasks can be drawn from them.

    Raises:
      UserError: One is missing, has too few images, or has the name of another.
    """
    opened: dict[str, ImageSet] = {}  # By what the user calls them.
    for spec in options.datasets:
        for part in spec.split(PAIR):
            if part in opened:
                continue
            data_dir = options.data_dir or None
            images = open_source(part, data_dir=data_dir, split=options.split)
            if images.name in {other.name for other in opened.values()}:
                raise UserError(
                    f"config.datasets has two data sets called {images.name!r}, the "
                    f"second as {part!r}: evaluate them in two work directories"
                )
            opened[part] = images
    datasets = []
    for spec in options.datasets:
        images, *queries = (opened[part] for part in spec.split(PAIR))
        if len(queries) > 1 or queries == [images]:
            raise UserError(
                f"config.datasets has {spec!r}: give two data sets, as in "
                "'photos>drawings'"
            )
        datasets.append(DataSet(images, options, square, cache_dir, *queries))
    return datasets


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
