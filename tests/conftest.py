"""Settings that every test shares: 8 fake CPU devices, and the optional real data."""

import contextlib
import os
import pathlib

import browser
import compiling
import pytest

# Must be set before jax starts its backend; tests of sharding need several devices.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
_FLAG = "--xla_force_host_platform_device_count=8"
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {_FLAG}".strip()

_ROOT = pathlib.Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_dir() -> pathlib.Path:
    """Real images and a real checkpoint, where a developer has put them."""
    path = pathlib.Path(os.environ.get("RDC_JAX_SHARED", _ROOT.parent / "shared"))
    if not (path / "data").is_dir():
        pytest.skip(f"no real data in {path} (set RDC_JAX_SHARED to use some)")
    return path


@pytest.fixture(scope="module")
def compiled_quickly():
    """For tests of structure: shapes, masks, transformations."""
    with compiling.quickly():
        yield


@pytest.fixture(scope="module")
def chromium():
    """A headless browser; the test is skipped where there is none.

    Of a module, not of the session: while it runs, nothing else can use asyncio.
    """
    with browser.started() as running:
        yield running


@pytest.fixture
def open_url(chromium):
    """Open an address at a size and scheme; see ``browser.new_page``."""
    with contextlib.ExitStack() as stack:

        def open_url(url, size="laptop", scheme="light", **options):
            page = browser.new_page(chromium, stack, size, scheme, **options)
            page.goto(url)
            return page

        yield open_url
