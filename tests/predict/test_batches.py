import numpy as np
import pytest

from rdc_jax.predict.batches import bucket, content_order, even_batches


def test_batches_are_a_partition_into_nearly_equal_parts():
    for count in (1, 7, 150, 151, 1000):
        batches = list(even_batches(np.arange(count), 150))
        assert len(batches) == -(-count // 150)
        assert np.concatenate(batches).tolist() == list(range(count))
        sizes = [len(batch) for batch in batches]
        assert max(sizes) <= 150 and max(sizes) - min(sizes) <= 1


def test_the_order_follows_content_and_not_place():
    rows = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    shuffled = rows[np.random.default_rng(1).permutation(50)]
    assert (rows[content_order(rows)] == shuffled[content_order(shuffled)]).all()
    assert not (content_order(rows) == np.arange(50)).all()


@pytest.mark.parametrize("n", [1, 8, 9, 100, 150, 700])
def test_buckets_hold_what_they_are_for_and_little_more(n):
    assert n <= bucket(n) <= max(8, 1.5 * n)


def test_buckets_are_few():
    assert len({bucket(n) for n in range(1, 1025)}) == 15
