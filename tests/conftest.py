"""What every test shares: fake devices, compiling, cases, the optional real data."""

import contextlib
import os
import pathlib

import browser
import compiling
import hypothesis
import pytest
from hypothesis.database import DirectoryBasedExampleDatabase

_ROOT = pathlib.Path(__file__).resolve().parent.parent

# Must be set before jax starts its backend. Two fake devices will do for most tests of
# sharding; those marked devices8 run in a process of their own (test_devices.py).
DEVICES = int(os.environ.get("RDC_JAX_TEST_DEVICES", "2"))
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["XLA_FLAGS"] = compiling.xla_flags(DEVICES)
compiling.set_up()

# `ci` draws the same cases every time; `nightly` draws new ones, and keeps what fails.
hypothesis.settings.register_profile("ci", derandomize=True, deadline=None)
hypothesis.settings.register_profile(
    "nightly",
    deadline=None,
    max_examples=1000,
    print_blob=True,
    database=DirectoryBasedExampleDatabase(_ROOT / ".hypothesis" / "examples"),
)
hypothesis.settings.load_profile("ci")


def pytest_configure(config):
    """Before the workers start."""
    if not hasattr(config, "workerinput"):
        compiling.clear_if_large()


def pytest_collection_modifyitems(config, items):
    """Leave tests of eight devices to the process that has as many; it begins."""
    # It takes long, and at the end one worker would wait for the other.
    items.sort(key=lambda item: item.path.name != "test_devices.py")
    if DEVICES < 8:
        away = [item for item in items if item.get_closest_marker("devices8")]
        items[:] = [item for item in items if not item.get_closest_marker("devices8")]
        config.hook.pytest_deselected(items=away)


@pytest.fixture(scope="session")
def shared_dir() -> pathlib.Path:
    """Real images and a real checkpoint, where a developer has put them."""
    path = pathlib.Path(os.environ.get("RDC_JAX_SHARED", _ROOT.parent / "shared"))
    if not (path / "data").is_dir():
        pytest.skip(f"no real data in {path} (set RDC_JAX_SHARED to use some)")
    return path


@pytest.fixture(scope="session")
def compiled_dir():
    """Where what is compiled is kept, for processes that a test starts."""
    return compiling.folder()


@pytest.fixture(scope="module")
def optimised():
    """For tests of exactness: oracles, parity with other libraries, accuracy."""
    with compiling.fully():
        yield


@pytest.fixture(scope="module")
def compiled_quickly():
    """For tests of structure, in folders whose tests are otherwise of exactness."""


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
