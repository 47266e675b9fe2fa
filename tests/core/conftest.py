import pytest


@pytest.fixture(scope="module", autouse=True)
def _as_users_compile(request):
    """Kernels are held to oracles as users run them; structure is not."""
    marks = request.node.iter_markers("usefixtures")
    if not any("compiled_quickly" in mark.args for mark in marks):
        request.getfixturevalue("optimised")


# Of test_contract.py: shards, each on a device of its own.
_EIGHT_DEVICES = (
    "test_shard_map_over_eight_devices_equals_one_by_one",
    "test_shard_map_follows_the_iterated_subspace_too",
    "test_a_mesh_by_sharding_alone_equals_one_by_one",
)


def pytest_itemcollected(item):
    """Mark what needs eight devices."""
    if getattr(item, "originalname", None) in _EIGHT_DEVICES:
        item.add_marker(pytest.mark.devices8)
