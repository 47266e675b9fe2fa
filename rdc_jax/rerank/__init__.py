"""k-reciprocal re-ranking for retrieval, of large galleries in bounded memory.

The package is also the function: ``rdc_jax.rerank(query, gallery)``, whether or not
somebody has imported ``rdc_jax.rerank``. ``python -m rdc_jax.rerank`` is its program.
"""

import inspect
import sys
import types
from typing import Any

from rdc_jax.rerank.index import ZHONG, Index, build_index, rerank
from rdc_jax.rerank.metrics import Labels, Scores, nearest_rows, score, summary

__all__ = [
    "ZHONG",
    "Index",
    "Labels",
    "Scores",
    "build_index",
    "nearest_rows",
    "rerank",
    "score",
    "summary",
]

__signature__ = inspect.signature(rerank)


class _CallablePackage(types.ModuleType):
    """Since an import of the package binds its name in ``rdc_jax``, it is called."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return rerank(*args, **kwargs)


sys.modules[__name__].__class__ = _CallablePackage
