"""Where TFDS keeps prepared data sets, and the command that prepares one."""

import difflib
import os
import pathlib
import re

from rdc_jax.runtime.errors import UserError

_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")


def find_prepared(
    dataset: str, data_dir: str | os.PathLike[str] | None = None
) -> pathlib.Path:
    """Find the folder of the newest prepared version of a TFDS data set.

    Args:
      dataset: TFDS's name, with or without a config.
      data_dir: Looked at first; then TFDS's default folder.

    Returns:
      The version's folder.

    Raises:
      UserError: It is not there; the message has the command that prepares it.
    """
    bases = [pathlib.Path(data_dir)] if data_dir else []
    bases.append(_default_dir())
    for base in bases:
        if versions := _versions(base / dataset):
            return versions[-1]
        configs = [f.name for f in _folders(base / dataset) if _versions(f)]
        if len(configs) == 1:
            return _versions(base / dataset / configs[0])[-1]
        if configs:
            raise UserError(
                f"tfds:{dataset} has the configs {', '.join(sorted(configs))}; "
                f"choose one, as in tfds:{dataset}/{min(configs)}"
            )
    raise UserError(_not_found(dataset, data_dir, bases))


def prepare_command(dataset: str, data_dir: str | os.PathLike[str] | None) -> str:
    """The command that downloads and prepares a data set in a readable format."""
    where = f", data_dir={str(data_dir)!r}" if data_dir else ""
    return (
        "pip install 'rdc-jax[prepare]' && python -c "
        f'"import tensorflow_datasets as tfds; tfds.builder({dataset!r}{where}, '
        "file_format='array_record').download_and_prepare()\""
    )


def _versions(folder: pathlib.Path) -> list[pathlib.Path]:
    """Prepared versions in ``folder``, oldest first."""
    found = [
        (tuple(map(int, match.groups())), path)
        for path in _folders(folder)
        if (match := _VERSION.fullmatch(path.name))
        and (path / "dataset_info.json").is_file()
        and (path / "features.json").is_file()
    ]
    return [path for _, path in sorted(found)]


def _folders(folder: pathlib.Path) -> list[pathlib.Path]:
    return [p for p in folder.iterdir() if p.is_dir()] if folder.is_dir() else []


def _default_dir() -> pathlib.Path:
    default = os.environ.get("TFDS_DATA_DIR") or "~/tensorflow_datasets"
    return pathlib.Path(default).expanduser()


def _not_found(
    dataset: str, data_dir: str | os.PathLike[str] | None, bases: list[pathlib.Path]
) -> str:
    import tensorflow_datasets as tfds

    known = tfds.list_builders(with_community_datasets=False)
    name = dataset.split("/")[0]
    looked = " or ".join(str(base) for base in bases)
    if name in known:
        command = prepare_command(dataset, data_dir)
        return f"tfds:{dataset} is not prepared in {looked}; prepare it: {command}"
    close = difflib.get_close_matches(name, known, n=3)
    hint = (
        f"did you mean {' or '.join(close)}?" if close else "see tfds.list_builders()"
    )
    return f"tfds:{dataset} is neither in {looked} nor in TFDS's catalogue; {hint}"
