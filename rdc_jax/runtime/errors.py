"""Errors that users can fix, and how the command lines show them."""

import sys
from collections.abc import Callable


class UserError(Exception):
    """An error that the user can fix: a wrong setting, a missing file, a full disk.

    The message is one line: what is wrong, with the value, and what to do.
    """


def first_line(error: Exception) -> str:
    """Give the first line of an error's message, or its kind where it has none.

    >>> first_line(ValueError("no room" + chr(10) + "at all")), first_line(KeyError())
    ('no room', 'KeyError')
    """
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:200]


def guard(main: Callable[[], None], *, debug: bool = False) -> None:
    """Run a program's ``main`` and turn its errors into exit codes.

    A ``UserError`` prints one line to stderr and exits with 2; Ctrl-C exits with
    130. With ``debug`` the exception passes through, traceback and all.
    """
    if debug:
        return main()
    try:
        main()
    except UserError as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
