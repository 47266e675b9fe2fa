"""Image folders: ``root/<class>/<image>``, with or without split folders above.

A folder is read as it is meant, not as the file system lists it: names are sorted,
links may not leave the folder, and whatever is passed over is noted.
"""

import collections
import os
import pathlib
from collections.abc import Iterator

from rdc_jax.data.decode import EXTENSIONS
from rdc_jax.data.files import FileSource, from_classes, sort_key
from rdc_jax.data.source import SPLITS, Note, printable, split_names
from rdc_jax.runtime.errors import UserError

_LAYOUT = "expected <folder>/<class>/<image> or <folder>/{train,val,test}/<class>/..."


def open_folder(
    folder: str | os.PathLike[str],
    *,
    name: str,
    split: str = "all",
    confine: str | os.PathLike[str] | None = None,
) -> FileSource:
    """Open ``folder/<class>/<image>``.

    Args:
      folder: The folder that holds one folder a class.
      name: The data set's name.
      split: What the source calls its split.
      confine: Links must stay inside this folder; ``folder`` itself by default.

    Returns:
      A source with one class for each folder that holds images.

    Raises:
      UserError: There is no image in any class.
    """
    root = pathlib.Path(folder).resolve()
    listing = _Listing(pathlib.Path(confine or root).resolve(), root)
    rows = [
        (os.path.join(entry.name, image), entry.name)
        for entry in listing.folders(root)
        for image in listing.images(entry)
    ]
    if not rows:
        raise UserError(_nothing_found(root, listing))
    return from_classes(name, split, root, rows, listing.summary())


def split_folders(root: pathlib.Path) -> dict[str, pathlib.Path]:
    """Find the split folders of ``root``: split to folder, empty when it has none.

    A folder named ``train`` is a split only when it holds folders itself; one that
    holds images is a class of trains.

    Args:
      root: The data set's folder.

    Returns:
      ``train``, ``val`` and ``test``, as far as they exist, in that order.
    """
    found = {}
    for split in SPLITS:
        for alias in split_names(split):
            if class_folders(root / alias):
                found[split] = root / alias
                break
    return found


def class_folders(folder: pathlib.Path) -> list[str]:
    """Names of the visible folders inside ``folder``, sorted; empty if it is none."""
    try:
        with os.scandir(folder) as entries:
            names = [e.name for e in entries if not _hidden(e.name) and e.is_dir()]
    except OSError:
        return []
    return sorted(names, key=sort_key)


def link_fault(entry: os.DirEntry[str], confine: pathlib.Path) -> str | None:
    """Say why a link must not be followed: broken, circular or out of bounds.

    Args:
      entry: Any directory entry; only links can be at fault.
      confine: The folder that links must stay inside, resolved.

    Returns:
      The reason, or none where the entry may be read.
    """
    if not entry.is_symlink():
        return None
    target = pathlib.Path(os.path.realpath(entry.path))
    if not target.exists():
        return "broken or circular link"
    if not target.is_relative_to(confine):
        return f"link leads outside {printable(str(confine))}"
    if pathlib.Path(entry.path).parent.resolve().is_relative_to(target):
        return "link loops back to a folder above it"
    return None


class _Listing:
    """Walks a folder and remembers what it passed over."""

    def __init__(self, confine: pathlib.Path, root: pathlib.Path):
        self.confine = confine
        self.root = root
        self.notes: list[Note] = []
        self.ignored: collections.Counter[str] = collections.Counter()
        self.loose_images: list[str] = []

    def folders(self, folder: pathlib.Path) -> list[os.DirEntry[str]]:
        """Class folders; loose files beside them are remembered."""
        kept = []
        for entry in self._entries(folder):
            if entry.is_dir():
                kept.append(entry)
            elif _is_image(entry.name):
                self.loose_images.append(entry.name)
            else:
                self._ignore(entry)
        return kept

    def images(self, folder: os.DirEntry[str]) -> list[str]:
        """Names of the image files of one class."""
        kept = []
        for entry in self._entries(pathlib.Path(folder.path)):
            if entry.is_dir():
                self._skip(entry, "a folder inside a class is not read")
            elif not _is_image(entry.name):
                self._ignore(entry)
            elif not entry.is_file():  # reading a pipe would wait for ever
                self._skip(entry, "a pipe, socket or device is not read")
            else:
                kept.append(entry.name)
        if not kept:
            text = f"class '{printable(folder.name)}' has no images"
            self.notes.append(Note("empty class", text))
        return kept

    def summary(self) -> list[Note]:
        """All notes, with one line for everything that was ignored."""
        notes = list(self.notes)
        if self.loose_images:
            text = f"{self.root / self.loose_images[0]}: beside the class folders"
            if more := len(self.loose_images) - 1:
                text += f", like {more} more"
            notes.append(Note("skipped", printable(text)))
        if self.ignored:
            kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(self.ignored.items()))
            notes.append(Note("ignored", f"not images: {kinds}", problem=False))
        return notes

    def _entries(self, folder: pathlib.Path) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as found:
                entries = sorted(found, key=lambda entry: sort_key(entry.name))
        except OSError as error:
            text = f"{printable(str(folder))}: {error.strerror}"
            self.notes.append(Note("skipped", text))
            return
        for entry in entries:
            if _hidden(entry.name):
                self.ignored["hidden"] += 1
            elif fault := link_fault(entry, self.confine):
                self._skip(entry, fault)
            else:
                yield entry

    def _skip(self, entry: os.DirEntry[str], why: str) -> None:
        self.notes.append(Note("skipped", f"{printable(entry.path)}: {why}"))

    def _ignore(self, entry: os.DirEntry[str]) -> None:
        self.ignored[printable(os.path.splitext(entry.name)[1].lower()) or "bare"] += 1


def _hidden(name: str) -> bool:
    return name.startswith(".") or name == "__MACOSX"


def _is_image(name: str) -> bool:
    return os.path.splitext(name)[1].lower() in EXTENSIONS


def _nothing_found(root: pathlib.Path, listing: _Listing) -> str:
    where = printable(str(root))
    if not root.is_dir():
        return f"{where} is not a folder; {_LAYOUT}"
    if listing.loose_images:
        return f"{where} holds images but no class folders; {_LAYOUT}"
    first = f" (first: {listing.notes[0].text})" if listing.notes else ""
    return f"no images in the class folders of {where}{first}; {_LAYOUT}"
