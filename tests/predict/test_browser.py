"""The page as a browser shows it; skipped where there is no Chromium."""

import pytest
from browser import overflow, violations

from rdc_jax.predict.__main__ import main


@pytest.fixture
def page_url(folders, checkpoint, tmp_path):
    path = tmp_path / "page.html"
    flags = {"support": folders.support, "query": folders.query, "html": path}
    flags |= {"checkpoint": checkpoint, "reject_below": 0.6, "unknown_above": 0.7}
    with pytest.raises(SystemExit):
        main([f"--{name}={value}" for name, value in flags.items()])
    return path.as_uri()


def test_the_page_is_quiet_fits_and_is_accessible(page_url, open_url):
    for size, scheme in (("laptop", "light"), ("phone", "dark")):
        # The page forbids scripts, and the audit is one.
        page = open_url(page_url, size, scheme, bypass_csp=True)
        assert overflow(page) <= 0
        assert violations(page) == []
        assert page.faults == []


@pytest.mark.slow
def test_pictures_can_be_filtered_by_keyboard(page_url, open_url):
    page = open_url(page_url)
    cards = page.locator(".card")
    assert cards.count() == 35
    page.focus("#show-all")
    page.keyboard.press("ArrowRight")
    shown = page.locator(".card:visible").count()
    assert 0 < shown < 35
    assert shown == page.locator(".card .rejected").count()
    page.check("#show-unknown")
    unknown = page.locator(".card:visible").count()
    assert 0 < unknown < 35
    assert unknown == page.locator(".card .unknown").count()
    page.check("#show-all")
    page.check("#class-1")
    chosen = page.locator("label:has(#class-1)").inner_text()
    name, count = chosen.rstrip(")").split(" (")
    assert page.locator(".card:visible").count() == int(count)
    assert set(page.locator(".card:visible h3").all_inner_texts()) == {name}
