"""The documentation as a site: built strictly, and as a browser shows it."""

import functools
import http.server
import pathlib
import re
import subprocess
import sys
import threading

import pytest
from browser import SIZES, overflow, violations

pytestmark = pytest.mark.slow

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOADED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["']?(https?:)?//"""
    r"""|<link\b(?![^>]*rel=["']?(?:canonical|next|prev))[^>]*href=["']?(https?:)?//"""
    r"""|url\(\s*["']?(https?:)?//|@import\s+["'](https?:)?//""",
    re.IGNORECASE,
)
# Of the theme's own markup: a search dialog without a name (its field has one), the
# same landmark around each copy button, and wide tables on a phone, which scroll and
# which browsers now let the keyboard reach without being told.
KNOWN = ("aria-dialog-name", "landmark-unique", "scrollable-region-focusable")
# The front page, one with figures and tables, one made from docstrings, a notebook.
PAGES = ("index.html", "method.html", "api.html", "notebooks/arrays.html")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site; warnings, dead links and anchors among them, are errors."""
    pytest.importorskip("mkdocs", reason="needs the extra [docs]")
    pytest.importorskip("mkdocstrings", reason="needs the extra [docs]")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    done = subprocess.run(
        [*command, f"--site-dir={folder}"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def address(site):
    """The site behind a server, which its search needs."""

    class Silent(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *unused):
            pass

    handler = functools.partial(Silent, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_every_page_is_built(site):
    sources = {path.stem for path in (ROOT / "docs").glob("*.md")}
    assert sources <= {path.stem for path in site.glob("*.html")}
    assert not list(site.rglob("*.py"))


def test_notebooks_are_pages_with_their_file(site):
    notebooks = {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert notebooks == {path.stem for path in site.glob("notebooks/*.html")}
    for name in notebooks:
        page = (site / "notebooks" / f"{name}.html").read_text(encoding="utf-8")
        assert f'href="{name}.ipynb"' in page
        assert (site / "notebooks" / f"{name}.ipynb").exists()


def test_nothing_comes_from_another_host(site):
    for path in [*site.rglob("*.html"), *site.rglob("*.css")]:
        found = LOADED.search(path.read_text(encoding="utf-8"))
        assert found is None, f"{path.name} loads {found.group(0)}"


def test_no_link_leaves_the_site_for_a_file_of_the_repository(site):
    pages = set(site.glob("*.html")) - {site / "404.html"}  # for any address
    for path in pages:
        for link in re.findall(r'href="([^"#?]+)', path.read_text(encoding="utf-8")):
            if not re.match(r"[a-z]+:", link):
                assert (path.parent / link).exists(), f"{path.name}: {link}"


def test_the_reference_describes_the_public_names(site):
    import rdc_jax

    page = (site / "api.html").read_text(encoding="utf-8")
    missing = [name for name in rdc_jax.__all__ if f"rdc_jax.{name}" not in page]
    assert missing == []


def test_the_reference_shows_examples_as_code(site):
    page = (site / "api.html").read_text(encoding="utf-8")
    assert page.count('class="gp"') > 20
    assert not re.search(r"<p>[^<]*&gt;&gt;&gt;", page)


@pytest.mark.parametrize("name", ["index.html", "api.html"])
def test_what_is_copied_can_be_run(address, open_url, name):
    page = open_url(f"{address}/{name}", "laptop", "light")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    session = page.locator(".highlight:has(.gp)").first
    shown = session.inner_text()
    session.hover()
    session.get_by_role("button").click()
    page.get_by_text("Copied to clipboard").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()").splitlines()
    assert ">>> " in shown and copied
    typed = [
        line[4:] for line in shown.splitlines() if line.startswith((">>> ", "... "))
    ]
    assert [line.rstrip() for line in copied] == [line.rstrip() for line in typed]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_quiet_fits_and_is_accessible(address, open_url, name):
    for size, scheme in zip(SIZES, ("light", "dark"), strict=True):
        page = open_url(f"{address}/{name}", size, scheme)
        assert page.get_by_role("heading", level=1).is_visible()
        assert overflow(page) <= 0
        assert violations(page, known=KNOWN) == []
        assert page.faults == []
        assert all(url.startswith((address, "data:")) for url in page.requests_made)
