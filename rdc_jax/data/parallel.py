"""An ordered parallel map in bounded memory, for decoding and hashing files."""

import collections
import concurrent.futures
import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def threaded_map(
    fn: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    workers: int | None = None,
    batch: int = 64,
) -> Iterator[Result]:
    """Map ``fn`` over ``items`` in threads and yield results in order.

    Reading, hashing and decoding release the interpreter's lock, so threads use all
    cores. A few batches of items are in flight at once, never the whole input.

    >>> list(threaded_map(abs, [-2, 1, -3], batch=2))
    [2, 1, 3]
    """
    workers = workers or os.cpu_count() or 1
    remaining = iter(items)
    pending: collections.deque[concurrent.futures.Future[list[Result]]]
    pending = collections.deque()
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        try:
            while chunk := list(itertools.islice(remaining, batch)):
                pending.append(pool.submit(lambda part: [fn(x) for x in part], chunk))
                if len(pending) > 2 * workers:
                    yield from pending.popleft().result()
            while pending:
                yield from pending.popleft().result()
        finally:  # an error, or a consumer that stops early
            for future in pending:
                future.cancel()
