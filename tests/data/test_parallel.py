"""The threaded map: order, laziness, errors."""

import itertools
import threading

import pytest

from rdc_jax.data.parallel import threaded_map


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 1000])
@pytest.mark.parametrize("workers", [1, 3])
def test_order_is_kept_at_awkward_sizes(count, workers):
    mapped = threaded_map(lambda x: x * x, range(count), workers=workers)
    assert list(mapped) == [x * x for x in range(count)]


def test_endless_input_is_consumed_a_little_at_a_time():
    pulled = []

    def numbers():
        for number in itertools.count():
            pulled.append(number)
            yield number

    mapped = threaded_map(str, numbers(), workers=2, batch=4)
    assert [next(mapped) for _ in range(10)] == [str(n) for n in range(10)]
    mapped.close()
    assert len(pulled) < 60


def test_several_threads_work():
    barrier = threading.Barrier(2, timeout=10)
    list(threaded_map(lambda _: barrier.wait(), range(2), workers=2, batch=1))


def test_an_error_reaches_the_caller():
    def fail(number):
        if number == 70:
            raise ValueError("seventy")
        return number

    with pytest.raises(ValueError, match="seventy"):
        list(threaded_map(fail, range(1000), batch=8))
