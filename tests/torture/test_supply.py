"""What is installed beside the package: bounds at both ends, and a lock within them."""

import configparser

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from torture.programs import ROOT

TOOLS = "dev"  # Not for users: versions are the lock's.
NOT_LOCKED = {"torch", "tensorflow"}  # CI adds torch; TensorFlow is never needed.


def _requirements(text):
    return [Requirement(line) for line in text.split("\n") if line]


@pytest.fixture(scope="module")
def wanted():
    """Requirements by what asks for them."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    extras = config["options.extras_require"]
    found = {name: _requirements(text) for name, text in extras.items()}
    return found | {"": _requirements(config["options"]["install_requires"])}


@pytest.fixture(scope="module")
def locked():
    lines = (ROOT / ".ci/lock.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split(";")[0].split("==") for line in lines if "==" in line]
    return {canonicalize_name(name.strip()): x.strip() for name, x in pairs}


def test_what_users_install_is_bounded_at_both_ends(wanted):
    for extra in wanted.keys() - {TOOLS}:
        for requirement in wanted[extra]:
            signs = {bound.operator for bound in requirement.specifier}
            assert signs == {">=", "<"}, requirement


def test_the_lock_has_everything_within_its_bounds(wanted, locked):
    for requirement in {x for group in wanted.values() for x in group}:
        if requirement.name not in NOT_LOCKED:
            version = locked[canonicalize_name(requirement.name)]
            assert requirement.specifier.contains(version), requirement
    assert len(locked) > 100
