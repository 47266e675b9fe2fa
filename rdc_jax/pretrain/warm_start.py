"""Starting from the backbone of another checkpoint."""

import jax
import jax.numpy as jnp

from rdc_jax.models.model import read_checkpoint
from rdc_jax.pretrain.state import Variables
from rdc_jax.runtime.errors import UserError


def read_backbone(path: str, arch: str) -> Variables | None:
    """Read the variables whose backbone a run starts from.

    Args:
      path: Checkpoint of ours, or a torch file; empty for none.
      arch: Backbone of the run.

    Returns:
      The variables, or None without a path.

    Raises:
      UserError: It cannot be read, or is of another architecture.
    """
    if not path:
        return None
    variables, metadata = read_checkpoint(path)
    if metadata["arch"] != arch:
        raise UserError(
            f"{path} is a {metadata['arch']}, the run's backbone is a {arch}: "
            f"set --config.arch={metadata['arch']}, or another --config.init_from"
        )
    return variables


def with_backbone(variables: Variables, given: Variables) -> Variables:
    """Replace the backbone of some variables by that of others.

    Args:
      variables: Of a run's network.
      given: Of the same backbone, with any head or none.

    Returns:
      The variables with the given backbone.
    """
    return {
        name: {
            **tree,
            "backbone": jax.tree.map(jnp.asarray, given[name]["backbone"]),
        }
        for name, tree in variables.items()
    }
