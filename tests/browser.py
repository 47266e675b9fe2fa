"""A headless Chromium, wherever one is installed, and what is asked of a page."""

import contextlib
import os
import shutil

import pytest

SIZES = {"laptop": (1280, 800), "phone": (390, 844)}
_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


@contextlib.contextmanager
def started():
    """The browser, of the system or of playwright; skips where there is none."""
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    found = [path for name in _NAMES if (path := shutil.which(name))]
    # Chromium refuses its sandbox to root, as in containers.
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    with api.sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(
                executable_path=found[0] if found else None, args=flags
            )
        except api.Error as error:
            pytest.skip(f"no Chromium here: {str(error).splitlines()[0]}")
        yield browser
        browser.close()


def new_page(browser, stack, size, scheme, **options):
    """A blank page; what goes wrong in it, and what it fetches, is noted."""
    width, height = SIZES[size]
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=scheme,
        reduced_motion="reduce",
        **options,
    )
    stack.callback(context.close)
    page = context.new_page()
    page.faults, page.requests_made = [], []
    page.on("console", lambda message: page.faults.append(message.text))
    page.on("pageerror", lambda error: page.faults.append(str(error)))
    page.on("request", lambda request: page.requests_made.append(request.url))
    return page


def overflow(page):
    """Pixels by which a page is wider than its window."""
    wide = "document.documentElement.scrollWidth - window.innerWidth"
    return page.evaluate(wide)


def violations(page, *, known=()):
    """What an audit for accessibility (axe-core) finds beside what is known."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    found = axe.Axe().run(page).response["violations"]
    found = [(fault["id"], fault["nodes"][0]["html"]) for fault in found]
    return [fault for fault in found if fault[0] not in known]
