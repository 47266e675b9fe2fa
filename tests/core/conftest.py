import pytest


@pytest.fixture(scope="module", autouse=True)
def _as_users_compile(request):
    """Kernels are held to oracles as users run them; structure is not."""
    marks = request.node.iter_markers("usefixtures")
    if not any("compiled_quickly" in mark.args for mark in marks):
        request.getfixturevalue("optimised")
