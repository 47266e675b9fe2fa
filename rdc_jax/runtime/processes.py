"""Processes and devices: who writes, and where arrays live.

A batch is sharded over a mesh of devices, everything else is replicated. ``jit`` sees
global arrays, so losses, gradients and batch-norm statistics are those of the global
batch, whatever the number of devices.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from rdc_jax.runtime.errors import UserError, first_line

PyTree = Any


class Layout(NamedTuple):
    """Where arrays live.

    Attributes:
      sharded: For arrays whose first axis is the batch.
      replicated: For arrays of which every device has a copy.
    """

    sharded: NamedSharding
    replicated: NamedSharding

    @property
    def mesh(self) -> Mesh:
        """The devices."""
        return cast(Mesh, self.sharded.mesh)


def join_processes(
    coordinator: str | None, num_processes: int | None, process_id: int | None
) -> None:
    """Make this process one of several; call before anything touches a device.

    Args:
      coordinator: ``host:port`` of process 0. ``auto`` asks the cluster (Slurm, TPU
        pods, ...); None or empty means a process on its own.
      num_processes: Number of processes (not with ``auto``).
      process_id: Number of this one (not with ``auto``).

    Raises:
      UserError: Half of the settings are missing, or the others cannot be reached.
    """
    if not coordinator:
        return
    try:
        if coordinator == "auto":
            jax.distributed.initialize()
        elif num_processes is None or process_id is None:
            raise UserError(
                "--coordinator needs --num_processes and --process_id (or auto)"
            )
        else:
            jax.distributed.initialize(coordinator, num_processes, process_id)
    except (RuntimeError, ValueError) as error:
        raise UserError(f"cannot join {coordinator}: {first_line(error)}") from error


def make_layout(devices: Sequence[jax.Device] | None = None) -> Layout:
    """Lay a mesh over devices; by default, over all of all processes."""
    mesh = Mesh(np.array(devices or jax.devices()), ("batch",))
    return Layout(
        sharded=NamedSharding(mesh, PartitionSpec("batch")),
        replicated=NamedSharding(mesh, PartitionSpec()),
    )


def check_batch_size(batch_size: int, source: str) -> None:
    """Refuse a batch that does not divide among the devices.

    Args:
      batch_size: Images a step.
      source: The setting that this number comes from, for the message.
    """
    devices = jax.device_count()
    if batch_size % devices:
        raise UserError(
            f"a step's {batch_size} images cannot be split over {devices} devices: "
            f"make {source} a multiple of {devices}"
        )


def put_batch(layout: Layout, local: PyTree) -> PyTree:
    """Make global arrays; ``local`` has this process's rows, in NumPy arrays."""
    return jax.tree.map(
        lambda x: jax.make_array_from_process_local_data(layout.sharded, x), local
    )


def any_process(flag: bool) -> bool:
    """Tell whether the flag is up in any process; all must call this together."""
    if jax.process_count() == 1:
        return flag
    return bool(np.any(multihost_utils.process_allgather(np.asarray(flag))))


def is_first() -> bool:
    """Tell whether this process is the one that writes logs."""
    return jax.process_index() == 0


def broadcast_from_first(value: Any) -> Any:
    """Give the first process's JSON-able value to all; they must call this together."""
    if jax.process_count() == 1:
        return value
    text = json.dumps(value).encode() if is_first() else b""
    size = int(multihost_utils.broadcast_one_to_all(np.asarray(len(text))))
    buffer = np.zeros(size, np.uint8)
    buffer[: len(text)] = np.frombuffer(text, np.uint8)
    return json.loads(bytes(multihost_utils.broadcast_one_to_all(buffer)))
