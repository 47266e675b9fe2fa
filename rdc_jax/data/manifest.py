"""Episodes as a file, so that other programs can run the very same tasks.

The file is JSON: the settings, the fingerprint of the data, the arrays as lists, and a
SHA-256 over all of it that is checked when the file is read.
"""

import dataclasses
import json
import os
import pathlib
from typing import Any

import numpy as np
from jaxtyping import Integer

from rdc_jax.data.episodes import Episodes, EpisodeSpec, sample_episodes
from rdc_jax.runtime import checksums
from rdc_jax.runtime.errors import UserError


@dataclasses.dataclass(frozen=True)
class Manifest:
    """Episodes and everything that they are a function of.

    Attributes:
      spec: The shape of a task.
      seed: The seed of the tasks.
      dataset: Name of the data set.
      data_fingerprint: Identity of the data set's content.
      numbers: The episodes' numbers.
      episodes: The episodes themselves.
    """

    spec: EpisodeSpec
    seed: int
    dataset: str
    data_fingerprint: str
    numbers: Integer[np.ndarray, "e"]
    episodes: Episodes

    def to_json(self) -> dict[str, Any]:
        """The manifest as plain JSON values, with their SHA-256."""
        content = {
            "spec": dataclasses.asdict(self.spec),
            "seed": self.seed,
            "dataset": self.dataset,
            "data_fingerprint": self.data_fingerprint,
            "numbers": self.numbers.tolist(),
            "episodes": {k: v.tolist() for k, v in self.episodes._asdict().items()},
        }
        return {**content, "sha256": checksums.of_json(content)}

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the JSON file."""
        pathlib.Path(path).write_text(json.dumps(self.to_json()))

    def verify(
        self, labels: Integer[np.ndarray, "n"], *, data_fingerprint: str
    ) -> None:
        """Raise a ``UserError`` unless this data set gives these very episodes."""
        if data_fingerprint != self.data_fingerprint:
            raise UserError(
                f"the manifest was made of another version of {self.dataset} "
                f"(fingerprint {self.data_fingerprint[:12]}, not "
                f"{data_fingerprint[:12]}); use the same images, or make it again"
            )
        ours = sample_episodes(
            labels,
            self.spec,
            seed=self.seed,
            dataset=self.dataset,
            episodes=self.numbers,
        )
        if not all(map(np.array_equal, ours, self.episodes)):
            raise UserError(
                f"the manifest's episodes of {self.dataset} are not those of "
                f"seed {self.seed}; it was made by another program: make it again"
            )


def make_manifest(
    labels: Integer[np.ndarray, "n"],
    spec: EpisodeSpec,
    *,
    seed: int,
    dataset: str,
    episodes: range | Integer[np.ndarray, "e"],
    data_fingerprint: str,
) -> Manifest:
    """Sample episodes and note what they are made of.

    >>> import numpy as np
    >>> labels = np.repeat(np.arange(5), 20)
    >>> manifest = make_manifest(labels, EpisodeSpec(), seed=0, dataset="cub",
    ...                          episodes=range(10), data_fingerprint="ab12")
    >>> manifest.verify(labels, data_fingerprint="ab12")
    """
    numbers = np.asarray(episodes, np.int64)
    sampled = sample_episodes(
        labels, spec, seed=seed, dataset=dataset, episodes=numbers
    )
    return Manifest(spec, seed, dataset, data_fingerprint, numbers, sampled)


def read_manifest(path: str | os.PathLike[str]) -> Manifest:
    """Read a manifest; a file that was changed or cut off is a ``UserError``."""
    try:
        content = json.loads(pathlib.Path(path).read_text())
        sha256 = content.pop("sha256")
        intact = sha256 == checksums.of_json(content)
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        raise UserError(f"{path} is not an episode manifest: {error}") from error
    if not intact:
        raise UserError(f"{path} was changed after it was written; make it again")
    arrays = {k: np.array(v, np.int32) for k, v in content.pop("episodes").items()}
    numbers = np.array(content.pop("numbers"), np.int64)
    spec = EpisodeSpec(**content.pop("spec"))
    return Manifest(spec=spec, numbers=numbers, episodes=Episodes(**arrays), **content)
