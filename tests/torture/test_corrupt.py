"""A damaged file is built again or refused in one line; it never gives a wrong number.

Damage to stored arrays and ledgers at chosen places is in tests/data/test_store and
tests/evaluation/test_ledger; here every kind of file is damaged at random places.
"""

import gc
import random
import shutil

import pytest
from torture import damage, effort
from torture.kinds import KINDS

from rdc_jax.runtime.errors import UserError

_FAST = "ledger"  # One kind of file in every run of the tests; all in CI.


@pytest.fixture(
    scope="module",
    params=[
        name if name == _FAST else pytest.param(name, marks=pytest.mark.slow)
        for name in KINDS
    ],
)
def kind(request, tmp_path_factory):
    """Name of a kind, a folder with whole files of it, and what comes of them."""
    if request.param == "torch file":
        pytest.importorskip("torch", reason="needs the extra [torch]")
    folder = tmp_path_factory.mktemp("whole")
    KINDS[request.param].make(folder)
    return request.param, folder, KINDS[request.param].use(folder)


def _suffer(kind, folder, damaged, case):
    """Damage a copy; gives the files, what was done, and what comes of it."""
    rng = random.Random(f"{effort.SEED} {kind} {case}")
    shutil.copytree(folder, damaged)
    files = sorted(p for p in damaged.rglob("*") if p.is_file() and p.stat().st_size)
    path, harm = rng.choice(files), damage.ALL[case % len(damage.ALL)]
    harm(path, rng)
    what = f"{harm.__name__} {path.relative_to(damaged)} (case {case})"
    try:
        return what, KINDS[kind].use(damaged)
    except UserError as error:
        return what, error


@pytest.mark.filterwarnings("ignore::UserWarning")  # NumPy's, on odd headers
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_damage_never_gives_a_wrong_number(kind, tmp_path):
    name, folder, expected = kind
    for case in range(effort.DAMAGES):
        what, got = _suffer(name, folder, tmp_path / str(case), case)
        if isinstance(got, UserError):
            assert "\n" not in str(got), what
            effort.tally["damages refused in one line"] += 1
        else:
            assert got == expected, what
            effort.tally["damages mended, or of no effect"] += 1
        shutil.rmtree(tmp_path / str(case))
    gc.collect()  # Now, not in another test: what orbax did not await.
