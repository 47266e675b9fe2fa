"""Every promise of docs/reliability.md names tests that exist and can fail."""

import ast
import re

import pytest
from torture.programs import ROOT

PAGE = (ROOT / "docs/reliability.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
PATHS = sorted({path for path, _ in NAMED.findall(PAGE)})
# What makes a test fail, by a part of its name; the last is a helper that asserts.
CHECKS = ("assert", "raises", "answer_or_line")


def functions(path):
    """The functions of a file, by name."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {x.name: x for x in ast.walk(tree) if isinstance(x, ast.FunctionDef)}


def can_fail(name, there, seen=()):
    """Whether a function checks something, itself or by another one of its file."""
    nodes = [*ast.walk(there[name])]
    words = [x.id for x in nodes if isinstance(x, ast.Name)]
    words += [x.attr for x in nodes if isinstance(x, ast.Attribute)]
    words += [
        "raises" for x in nodes if isinstance(x, ast.keyword) and x.arg == "check"
    ]
    if any(isinstance(x, ast.Assert) for x in nodes):
        return True
    if any(check in word for check in CHECKS for word in words):
        return True
    inner = (there.keys() & words) - {name, *seen}
    return any(can_fail(x, there, (name, *seen)) for x in inner)


@pytest.mark.parametrize("path", PATHS)
def test_named_tests_exist_and_can_fail(path):
    there = functions(path)
    named = {name for file, name in NAMED.findall(PAGE) if file == path and name}
    assert named <= there.keys()
    named = named or {name for name in there if name.startswith("test_")}
    assert named and not [name for name in named if not can_fail(name, there)]


def test_a_test_that_checks_nothing_is_seen(tmp_path):
    (tmp_path / "idle.py").write_text("def test_a(): b()\ndef b(): return 1\n")
    assert not can_fail("test_a", functions(tmp_path / "idle.py"))


def test_every_row_of_a_table_names_a_test():
    promises, _, _ = PAGE.partition("## The last long run")
    rows = [line for line in promises.splitlines() if line.startswith("| ")]
    rows = [line for line in rows if "held by" not in line]
    assert len(rows) > 30
    assert all(NAMED.search(line) for line in rows)
