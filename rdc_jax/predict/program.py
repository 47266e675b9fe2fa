"""The command line: from two folders to class names."""

import argparse
import logging
import os
import pathlib
import sys

from rdc_jax.methods.views import Views
from rdc_jax.predict.answers import Answers, sum_up
from rdc_jax.predict.classify import Options, classify
from rdc_jax.predict.embedding import Embedder, embed_support
from rdc_jax.predict.formats import FORMATS, render, render_page
from rdc_jax.predict.pictures import find_queries, open_support
from rdc_jax.runtime.arguments import messages
from rdc_jax.runtime.compiled import keep_compiled
from rdc_jax.runtime.errors import UserError
from rdc_jax.runtime.files import write_text
from rdc_jax.runtime.progress import Progress

OK, SOME_UNREADABLE = 0, 1

_log = logging.getLogger(__name__)
_TRANSDUCTIVE: dict[str, bool | str] = {"auto": "auto", "always": True, "never": False}


def run(arguments: argparse.Namespace) -> int:
    """Classify the pictures and write the answers.

    Returns:
      The exit code: 0, or 1 when some pictures could not be read.
    """
    with messages(quiet=arguments.quiet, verbose=arguments.verbose):
        # Everything is opened and checked before the long work begins.
        source, queries = open_support(arguments.support), find_queries(arguments.query)
        for path in filter(None, (arguments.out, arguments.html)):
            _check_writable(pathlib.Path(path))
        for note in source.notes:
            level = logging.INFO if note.problem else logging.DEBUG
            _log.log(level, "%s: %s", note.kind, note.text)
        options = Options(
            method=arguments.method,
            transductive=_TRANSDUCTIVE[arguments.transductive],
            temperature=arguments.temperature,
            reject_below=arguments.reject_below,
            unknown_above=arguments.unknown_above,
            batch_size=arguments.batch_size,
        )
        views = Views.from_text(arguments.views, arguments.layers)
        if arguments.compile_cache:
            keep_compiled()
        total = len(source) + len(queries)
        with Progress(total, unit="pictures", shown=not arguments.quiet) as progress:
            embedder = Embedder(
                arguments.checkpoint,
                arguments.image_size,
                views=views.asked_by(options.comparing),
                thumbnails=arguments.html is not None,
                advance=progress.advance,
            )
            _log.debug(
                "%d labelled pictures of %d classes, %d to classify, %s",
                *(len(source), len(source.class_names), len(queries), embedder),
            )
            support = embed_support(embedder, source)
            query = embedder(queries.items())
        answers = classify(support, query, options, backbone=str(embedder))
        _write(answers, arguments)
    complete = len(support.labels) == len(source) and not query.unreadable
    return OK if complete else SOME_UNREADABLE


def _check_writable(path: pathlib.Path) -> None:
    if not path.absolute().parent.is_dir():
        raise UserError(f"cannot write {path}: its folder is not there; make it")
    if path.is_dir():
        raise UserError(f"cannot write {path}: it is a folder; name a file in it")


def _write(answers: Answers, arguments: argparse.Namespace) -> None:
    """Write the answers as asked, and what is to be said of them to the log."""
    suffix = pathlib.Path(arguments.out or "").suffix.lower().removeprefix(".")
    form = arguments.format or (suffix if suffix in FORMATS else "table")
    if arguments.out is None:
        colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        sys.stdout.write(render(answers, form, colour=colour))
    else:
        text = render(answers, form)
        write_text(pathlib.Path(arguments.out), text, "choose another place")
        _log.info("answers: %s", arguments.out)
    for line in sum_up(answers):
        _log.info("%s", line)
    if arguments.html is not None:
        page = render_page(answers)
        write_text(pathlib.Path(arguments.html), page, "choose another place")
        _log.info("page: %s", arguments.html)
