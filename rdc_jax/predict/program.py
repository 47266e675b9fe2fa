"""The command line: from two folders to class names."""

import argparse
import os
import pathlib
import sys
from typing import Any, NamedTuple

import numpy as np
import tqdm

from rdc_jax.data.decode import UnreadableImage
from rdc_jax.data.image_set import ImageSet
from rdc_jax.data.names import printable
from rdc_jax.predict.answers import Answers, Outcome, make_rows, summarize
from rdc_jax.predict.classify import Options, classify
from rdc_jax.predict.embedding import Embedded, Embedder, embed_files, make_embedder
from rdc_jax.predict.formats import FORMATS, render
from rdc_jax.predict.page import render_page
from rdc_jax.predict.pictures import display_name, find_queries, open_support
from rdc_jax.predict.task import Support
from rdc_jax.runtime.errors import UserError
from rdc_jax.runtime.files import write_text

OK, SOME_UNREADABLE = 0, 1

_TRANSDUCTION: dict[str, Any] = {"auto": "auto", "always": True, "never": False}


class Job(NamedTuple):
    """What there is to do, checked as far as that goes without computing."""

    source: ImageSet
    queries: tuple[pathlib.Path, ...]
    embedder: Embedder
    options: Options


class Labelled(NamedTuple):
    """The readable supports, with only the classes that have some."""

    support: Support
    class_names: tuple[str, ...]
    images: list[str]
    thumbnails: tuple[bytes, ...]


def run(arguments: argparse.Namespace) -> int:
    """Classify the pictures and write the answers.

    Args:
      arguments: As ``rdc_jax.predict.options`` parses them.

    Returns:
      The exit code: 0, or 1 when some pictures could not be read.

    Raises:
      UserError: Nothing can be done with this input.
    """
    say = _Voice(arguments)
    job = _prepare(arguments, say)
    labelled, embedded = _embed(job, say, thumbnails=arguments.html is not None)
    answers = classify(
        labelled.support, embedded.features, labelled.class_names, job.options
    )
    outcome = _outcome(job, labelled, embedded, answers, arguments)
    _deliver(outcome, arguments, say)
    for note in (_count(outcome), *answers.notes):
        say.it(note)
    if arguments.html is not None:
        page = render_page(outcome, embedded.thumbnails, labelled.thumbnails)
        write_text(pathlib.Path(arguments.html), page, "choose another place")
        say.it(f"page: {arguments.html}")
    return SOME_UNREADABLE if say.unreadable else OK


class _Voice:
    """What is said on stderr, as the user wishes."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.quiet, self.verbose = arguments.quiet, arguments.verbose
        self.unreadable = 0

    def it(self, text: str) -> None:
        """Say something that matters."""
        if not self.quiet:
            print(text, file=sys.stderr)

    def more(self, text: str) -> None:
        """Say something for those who want to know."""
        if self.verbose:
            print(text, file=sys.stderr)

    def fault(self, error: UnreadableImage) -> None:
        """Report a picture that cannot be read, even when quiet."""
        self.unreadable += 1
        print(f"unreadable: {error.where}: {error.reason}", file=sys.stderr)


def _prepare(arguments: argparse.Namespace, say: _Voice) -> Job:
    """Find everything first: a mistake is told before the long work."""
    source = open_support(arguments.support)
    queries = find_queries(arguments.query)
    for path in filter(None, (arguments.out, arguments.html)):
        if not pathlib.Path(path).absolute().parent.is_dir():
            raise UserError(f"cannot write {path}: its folder is not there; make it")
        if pathlib.Path(path).is_dir():
            raise UserError(f"cannot write {path}: it is a folder; name a file in it")
    for note in source.notes:
        (say.it if note.problem else say.more)(f"{note.kind}: {note.text}")
    embedder = make_embedder(arguments.checkpoint, image_size=arguments.image_size)
    if embedder.assumed:
        say.it(
            "the checkpoint does not note its image size: "
            f"{embedder.image_size} pixels are assumed, --image_size says otherwise"
        )
    say.more(
        f"{len(source)} labelled pictures of {len(source.class_names)} classes, "
        f"{len(queries)} to classify, {_describe(embedder)}"
    )
    options = Options(
        transductive=_TRANSDUCTION[arguments.transduction],
        temperature=arguments.temperature,
        reject_below=arguments.reject_below,
        batch_size=arguments.batch_size,
    )
    return Job(source, queries, embedder, options)


def _embed(job: Job, say: _Voice, *, thumbnails: bool) -> tuple[Labelled, Embedded]:
    """Compute all features in one pass, and report what cannot be read."""
    supports = job.source.paths
    paths = supports + job.queries
    with tqdm.tqdm(  # disable=None: only where stderr is a terminal
        total=len(paths), unit=" pictures", leave=False, disable=say.quiet or None
    ) as bar:
        found = embed_files(job.embedder, paths, thumbnails=thumbnails, tick=bar.update)
    for error in found.unreadable.values():
        say.fault(error)
    first = int(np.searchsorted(found.rows, len(supports)))
    queries = Embedded(
        found.features[first:],
        found.rows[first:] - len(supports),
        found.thumbnails[first:],
        {
            i - len(supports): e
            for i, e in found.unreadable.items()
            if i >= len(supports)
        },
    )
    if not len(queries.rows):
        raise UserError(
            f"none of the {len(job.queries)} pictures to classify is readable"
        )
    return _label(job.source, found, first, say), queries


def _label(source: ImageSet, found: Embedded, count: int, say: _Voice) -> Labelled:
    """The supports that can be read, under labels without gaps."""
    rows = found.rows[:count]
    kept, labels_s = np.unique(source.labels[rows], return_inverse=True)
    names = tuple(source.class_names[i] for i in kept)
    for name in sorted(set(source.class_names) - set(names)):
        say.it(f"class {name} has no readable picture and is left out")
    if len(names) < 2:
        raise UserError("fewer than two classes have readable pictures: add some")
    support = Support(found.features[:count], labels_s.astype(np.int32), len(names))
    images = [printable(source.ids[row]) for row in rows]
    return Labelled(support, names, images, found.thumbnails[:count])


def _outcome(
    job: Job,
    labelled: Labelled,
    embedded: Embedded,
    answers: Answers,
    arguments: argparse.Namespace,
) -> Outcome:
    root = pathlib.Path(arguments.query)
    shown = [display_name(path, root) for path in job.queries]
    images = [shown[row] for row in embedded.rows]
    rows = make_rows(answers, images, labelled.images, labelled.support.labels)
    summary = {
        **summarize(answers, len(labelled.images), job.options.reject_below),
        "backbone": _describe(job.embedder),
    }
    unreadable = [(shown[i], e.reason) for i, e in embedded.unreadable.items()]
    return Outcome(rows, unreadable, summary, answers.notes)


def _count(outcome: Outcome) -> str:
    """Sum up the table, and say what its remarks mean."""
    rejected = sum(row.rejected for row in outcome.rows)
    changed = sum(row.changed for row in outcome.rows)
    parts = [f"{len(outcome.rows)} classified by {outcome.summary['method']}"]
    parts.append(f"{rejected or 'none'} rejected")
    if rejected:
        parts[-1] += f" (below {outcome.threshold}: look at them yourself)"
    if changed:
        parts.append(f"{changed} would be of another class without RDC")
    return "; ".join(parts)


def _describe(embedder: Embedder) -> str:
    arch = getattr(embedder.network, "arch", "own network")
    return f"{arch} at {embedder.image_size} px"


def _deliver(outcome: Outcome, arguments: argparse.Namespace, say: _Voice) -> None:
    form = arguments.format or _form_of(arguments.out)
    if arguments.out is None:
        colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        sys.stdout.write(render(outcome, form, colour=colour))
        return
    write_text(
        pathlib.Path(arguments.out), render(outcome, form), "choose another place"
    )
    say.it(f"answers: {arguments.out}")


def _form_of(out: str | None) -> str:
    """The format that a file's name asks for, else a table.

    >>> _form_of("found.csv"), _form_of("found.txt"), _form_of(None)
    ('csv', 'table', 'table')
    """
    suffix = pathlib.Path(out or "").suffix.lower().removeprefix(".")
    return suffix if suffix in FORMATS else FORMATS[0]
