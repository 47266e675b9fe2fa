"""LAPACK's threads, which compete with XLA's for the cores of a CPU.

XLA's decompositions on CPU are SciPy's LAPACK. Its threads are of no use for matrices
as small as a task's, and wait for work by spinning on the cores that XLA needs. The
iterated subspace has nothing that LAPACK would give to threads; kernel PCA, the exact
subspace and some transductive methods do.
"""

import contextlib
import importlib
from collections.abc import Iterator

import threadpoolctl


@contextlib.contextmanager
def one_lapack_thread() -> Iterator[None]:
    """Make SciPy's LAPACK use one thread; NumPy's keeps its own.

    The same for a whole process is ``OPENBLAS_NUM_THREADS=1`` in its environment.

    Example:
      >>> from rdc_jax.runtime.threads import one_lapack_thread
      >>> with one_lapack_thread():
      ...     pass  # evaluate(support, labels, query)
    """
    importlib.import_module("scipy.linalg")  # XLA loads it as late as it can.
    controller = threadpoolctl.ThreadpoolController()
    blas = controller.select(user_api="blas").info()
    scipy = [x["filepath"] for x in blas if "scipy" in x["filepath"]]
    with controller.select(filepath=scipy).limit(limits=1):
        yield
