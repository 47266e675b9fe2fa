"""Progress bars: on a terminal, unless the program was told to be quiet."""

import logging
import sys


def enabled() -> bool:
    """Tell whether bars should be drawn on stderr.

    >>> import logging
    >>> logging.getLogger("rdc_jax").setLevel(logging.WARNING)  # as --quiet does
    >>> enabled()
    False
    >>> logging.getLogger("rdc_jax").setLevel(logging.NOTSET)
    """
    return sys.stderr.isatty() and logging.getLogger("rdc_jax").level <= logging.INFO
