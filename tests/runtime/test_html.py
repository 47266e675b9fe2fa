"""Templates of pages."""

import sys

import jinja2
import pytest

from rdc_jax.runtime import html


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with a template."""
    templates = tmp_path / "pages_of_a_test" / "templates"
    templates.mkdir(parents=True)
    (templates.parent / "__init__.py").touch()
    (templates / "page.html").write_text("<p>{{ name }}</p>")
    monkeypatch.syspath_prepend(tmp_path)
    yield "pages_of_a_test"
    sys.modules.pop("pages_of_a_test", None)


def test_names_are_escaped(package):
    page = html.template(package, "page.html").render(name="<b> & co")
    assert page == "<p>&lt;b&gt; &amp; co</p>"


def test_a_forgotten_name_is_an_error(package):
    with pytest.raises(jinja2.UndefinedError):
        html.template(package, "page.html").render()
