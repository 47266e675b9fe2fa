"""Every setting is explained on a page."""

import dataclasses
import pathlib
import re

import pytest

import rdc_jax
from rdc_jax.configs import pretrain
from rdc_jax.configs.eval import get_config
from rdc_jax.methods.finetune_options import FinetuneOptions
from rdc_jax.predict.options import parser

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"


def words(page):
    """Words of a page's text that are set as code."""
    text = (DOCS / page).read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return {word for code in re.findall(r"`([^`]+)`", text) for word in code.split()}


def test_fields_of_a_pretraining():
    known = words("pretraining.md")
    missing = [
        name
        for name in pretrain.get_config("paper").to_dict()
        if not {f"--config.{name}", f"--config.{name}.*"} & known
    ]
    assert missing == []


def test_fields_of_an_evaluation():
    known = words("evaluation.md")
    missing = [
        name
        for name in get_config("demo").to_dict()
        if not {f"config.{name}", f"config.{name}.*"} & known
    ]
    assert missing == []


@pytest.mark.parametrize("options", [rdc_jax.RDCParams, FinetuneOptions])
def test_fields_of_the_method(options):
    text = (DOCS / "method.md").read_text(encoding="utf-8")
    missing = [
        field.name
        for field in dataclasses.fields(options)
        if not re.search(rf"`{field.name}(=[^`]*)?`", text)
    ]
    assert missing == []


def test_flags_of_prediction():
    known = words("predict.md")
    flags = {flag for action in parser()._actions for flag in action.option_strings}
    assert {flag for flag in flags - known if flag not in ("-h", "--help")} == set()
