"""Every promise of docs/reliability.md names tests that exist."""

import ast
import re

import pytest
from torture.programs import ROOT

PAGE = (ROOT / "docs/reliability.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


@pytest.mark.parametrize("path", sorted({path for path, _ in NAMED.findall(PAGE)}))
def test_named_tests_exist(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    there = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    named = {name for file, name in NAMED.findall(PAGE) if file == path and name}
    assert named <= there


def test_every_row_of_a_table_names_a_test():
    promises, _, _ = PAGE.partition("## The last long run")
    rows = [line for line in promises.splitlines() if line.startswith("| ")]
    rows = [line for line in rows if "held by" not in line]
    assert len(rows) > 30
    assert all(NAMED.search(line) for line in rows)
