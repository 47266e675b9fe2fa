"""What processes of one run must agree on."""

import jax
import numpy as np
from jax.experimental import multihost_utils


def agreed(number: int) -> int:
    """Give the first process's number to all of them; they must call this together."""
    if jax.process_count() == 1:
        return number
    return int(multihost_utils.broadcast_one_to_all(np.asarray(number)))
