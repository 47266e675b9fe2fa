"""Image folders: ``root/<class>/<image>``, with or without split folders above.

Names are sorted, so that the order of the file system does not matter; links may not
leave the folder; files that are skipped are noted.
"""

import collections
import os
import pathlib

from rdc_jax.data.decode import EXTENSIONS
from rdc_jax.data.image_set import ImageSet, Note, from_classes
from rdc_jax.data.names import find_splits, printable, sort_key
from rdc_jax.runtime.errors import UserError

_LAYOUT = "expected <folder>/<class>/<image> or <folder>/{train,val,test}/<class>/..."


def open_folder(
    folder: str | os.PathLike[str],
    *,
    name: str,
    split: str = "all",
    confine: str | os.PathLike[str] | None = None,
) -> ImageSet:
    """Open ``folder/<class>/<image>``; classes without images are noted.

    Links must stay inside the folder ``confine``, which is ``folder`` by default.

    Raises:
      UserError: There is no image in any class.
    """
    root = pathlib.Path(folder).resolve()
    listing = Listing(pathlib.Path(confine or root).resolve())
    rows, loose = [], []
    for entry in listing.entries(root):
        if entry.is_dir():
            images = _images(entry, listing)
            rows += [(os.path.join(entry.name, image), entry.name) for image in images]
        elif is_image(entry.name):
            loose.append(entry.name)
        else:
            listing.ignore(entry)
    notes = listing.notes
    if not rows:
        where = printable(str(root))
        first = f" (first: {notes[0].text})" if notes else ""
        fault = f"no images in the class folders of {where}{first}"
        if not root.is_dir():
            fault = f"{where} is not a folder"
        elif loose:
            fault = f"{where} holds images but no class folders"
        raise UserError(f"{fault}; {_LAYOUT}")
    if loose:
        like = f", like {len(loose) - 1} more" if len(loose) > 1 else ""
        text = f"{root / loose[0]}: beside the class folders{like}"
        notes.append(Note("skipped", printable(text)))
    if ignored := sorted(listing.ignored.items()):
        kinds = ", ".join(f"{n} {kind}" for kind, n in ignored)
        notes.append(Note("ignored", f"not images: {kinds}", problem=False))
    return from_classes(name, split, root, rows, notes)


def split_folders(root: pathlib.Path) -> dict[str, pathlib.Path]:
    """Find the folders of ``train``, ``val`` and ``test``, as far as they exist.

    A folder named ``train`` is a split only when it holds folders itself; one that
    holds images is a class of trains.
    """
    return find_splits(root, "", class_folders)


def class_folders(folder: pathlib.Path) -> list[str]:
    """Names of the visible folders inside ``folder``, sorted; empty if it is none."""
    try:
        with os.scandir(folder) as entries:
            names = [e.name for e in entries if not _hidden(e.name) and e.is_dir()]
    except OSError:
        return []
    return sorted(names, key=sort_key)


def is_image(name: str) -> bool:
    """Whether a file's name says that it is an image."""
    return os.path.splitext(name)[1].lower() in EXTENSIONS


class Listing:
    """Lists folders in sorted order, and remembers what it passed over.

    Attributes:
      confine: Links must stay inside this folder, which is resolved.
      notes: What was skipped, and why.
      ignored: How many files of each kind were no images.
    """

    def __init__(self, confine: pathlib.Path) -> None:
        self.confine = confine
        self.notes: list[Note] = []
        self.ignored: collections.Counter[str] = collections.Counter()

    def entries(self, folder: str | pathlib.Path) -> list[os.DirEntry[str]]:
        """What is visible in a folder and may be read."""
        try:
            with os.scandir(folder) as listed:
                entries = sorted(listed, key=lambda entry: sort_key(entry.name))
        except OSError as error:
            text = f"{printable(str(folder))}: {error.strerror}"
            self.notes.append(Note("skipped", text))
            return []
        visible = []
        for entry in entries:
            if _hidden(entry.name):
                self.ignored["hidden"] += 1
            elif fault := _link_fault(entry, self.confine):
                self.skip(entry, fault)
            else:
                visible.append(entry)
        return visible

    def skip(self, entry: os.DirEntry[str], why: str) -> None:
        """Note a fault of the data."""
        self.notes.append(Note("skipped", f"{printable(entry.path)}: {why}"))

    def ignore(self, entry: os.DirEntry[str]) -> None:
        """Count a file that is no image."""
        self.ignored[printable(os.path.splitext(entry.name)[1].lower()) or "bare"] += 1


def _images(folder: os.DirEntry[str], listing: Listing) -> list[str]:
    """Names of the image files of one class."""
    images = []
    for entry in listing.entries(folder.path):
        if entry.is_dir():
            listing.skip(entry, "a folder inside a class is not read")
        elif not is_image(entry.name):
            listing.ignore(entry)
        elif not entry.is_file():  # reading a pipe would wait for ever
            listing.skip(entry, "a pipe, socket or device is not read")
        else:
            images.append(entry.name)
    if not images:
        text = f"class '{printable(folder.name)}' has no images"
        listing.notes.append(Note("empty class", text))
    return images


def _link_fault(entry: os.DirEntry[str], confine: pathlib.Path) -> str | None:
    """Why a link must not be followed; none where the entry may be read."""
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


def _hidden(name: str) -> bool:
    return name.startswith(".") or name == "__MACOSX"
