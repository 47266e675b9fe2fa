"""Every config of the paper's tables and figures can be read."""

import importlib
import pathlib

import pytest

from rdc_jax.evaluation import table
from rdc_jax.evaluation.options import Options

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "configs/paper"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py"))


def read(name, variant):
    module = importlib.import_module(f"configs.paper.{name}")
    config = module.get_config(variant)
    config.checkpoint = "x"
    return Options.from_config(config.to_dict())


@pytest.mark.parametrize("variant", ["paper", "reduced"])
@pytest.mark.parametrize("name", NAMES)
def test_it_is_a_variation_of_the_evaluation(name, variant):
    options = read(name, variant)
    assert options.episodes == {"paper": 2000, "reduced": 1000}[variant]
    assert options.image_size == {"paper": 224, "reduced": 84}[variant]
    assert options.baseline in {method.name for method in options.methods}


@pytest.mark.parametrize("name", NAMES)
def test_the_documentation_has_it(name):
    page = (FOLDER.parent.parent / "docs/paper.md").read_text()
    assert f"configs/paper/{name}.py" in page


@pytest.mark.parametrize(
    ("name", "shot", "count"),
    [("table1", 1, 3), ("sweep_lambda", 5, 6), ("sweep_alpha", 1, 7), ("table5", 5, 3)],
)
def test_methods_meet_the_published_numbers_by_name(name, shot, count):
    methods = {method.name for method in read(name, "paper").methods}
    published = {r["method"] for r in table.published()["rows"] if r["shot"] == shot}
    assert len(methods & published) == count == len(methods)
