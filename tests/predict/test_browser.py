"""The page as a browser shows it; skipped where there is no Chromium."""

import shutil

import pytest

from rdc_jax.predict.__main__ import main

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


@pytest.fixture
def page_url(folders, checkpoint, tmp_path):
    path = tmp_path / "page.html"
    flags = {"support": folders.support, "query": folders.query, "html": path}
    flags |= {"checkpoint": checkpoint, "reject_below": 0.6}
    with pytest.raises(SystemExit):
        main([f"--{name}={value}" for name, value in flags.items()])
    return path.as_uri()


@pytest.fixture
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"]
        )
        yield browser
        browser.close()


def test_the_page_is_quiet_fits_and_is_accessible(page_url, browser):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    for width, scheme in ((1366, "light"), (390, "dark")):
        context = browser.new_context(
            viewport={"width": width, "height": 800},
            color_scheme=scheme,
            bypass_csp=True,  # for axe itself, which is a script
        )
        page, said = context.new_page(), []
        page.on("console", lambda message, said=said: said.append(message.text))
        page.on("pageerror", lambda error, said=said: said.append(str(error)))
        page.goto(page_url)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        results = axe.Axe().run(page)
        assert results.violations_count == 0, results.generate_report()
        assert said == []


def test_pictures_can_be_filtered_by_keyboard(page_url, browser):
    page = browser.new_page()
    page.goto(page_url)
    cards = page.locator(".card")
    assert cards.count() == 35
    page.focus("#show-all")
    page.keyboard.press("ArrowRight")
    shown = page.locator(".card:visible").count()
    assert 0 < shown < 35
    assert shown == page.locator(".card .rejected").count()
