"""How much torture: small numbers by default, more from the environment.

``make torture`` sets them. All choices follow from the seed, which it draws anew.
"""

import collections
import logging
import os

KILLS = int(os.environ.get("RDC_JAX_KILLS", "54"))
DAMAGES = int(os.environ.get("RDC_JAX_DAMAGES", "12"))  # of each kind of file
CASES = int(os.environ.get("RDC_JAX_CASES", "20"))  # of each property
SEED = int(os.environ.get("RDC_JAX_TORTURE_SEED", "0"))

# What was done in this session, for the summary at its end.
tally: collections.Counter[str] = collections.Counter()
programs_peak = 0  # Kilobytes of the largest program that was stopped or ran through.


def count(what, number=1):
    """Add to the tally, and tell pytest's log at once (``--log-file``)."""
    tally[what] += number
    logging.getLogger(__name__).warning("%d %s", number, what)
