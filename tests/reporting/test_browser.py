"""The page in a browser: headless Chromium, wherever one is installed."""

import pytest
from browser import SIZES, overflow, violations
from reporting.made import make_results, make_task, row, write_hardest, write_run

from rdc_jax.reporting import report

MINUS = "\N{MINUS SIGN}"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A page with every section."""
    gains = {"cub": (3.0, 0.5), "my photos": (-0.5, 0.4), "isic": (9.5, 1.0)}
    rows, curves = [], []
    for place, (name, gain) in enumerate(gains.items()):
        base = 40.0 + place
        rows.append(row(name, 1, "npc_l2", base))
        rows.append(row(name, 1, "rdc", base + gain[0], gain))
        rows.append(row(name, 1, "rdc_ft", base + 1, (1.0, 2.0)))
        rows.append(row(name, 5, "npc_l2", base))
        rows.append(row(name, 5, "rdc", base + 1, (1.0, 0.5)))
        curves += [
            {"dataset": name, "shot": 1, "method": "rdc_ft", "step": step}
            | {"accuracy": base + step, "ci95": 0.5}
            for step in (0, 1)
        ]
    results = make_results(rows, curves=curves)
    made = [make_task(results, dataset=name) for name in ("cub", "isic")]
    workdir = tmp_path_factory.mktemp("run")
    write_run(workdir, write_hardest(workdir, results), *made)
    return report.write(workdir).as_uri()


@pytest.fixture
def open_page(open_url, address):
    """Open the page at a size and scheme."""
    return lambda size="laptop", scheme="light": open_url(address, size, scheme)


def column(page, table, place):
    cells = page.locator(f"{table} tbody tr > :nth-child({place})")
    return [text.split("±")[0].strip(" ▲●▼\n") for text in cells.all_inner_texts()]


def heading(page, table, name):
    return page.locator(f"{table} th[scope=col]").filter(has_text=name)


def test_it_opens_without_a_fault_or_a_request(open_page):
    page = open_page()
    assert page.title() == "Made up (84 px) · rdc_jax report"
    assert page.faults == []
    fetched = [url for url in page.requests_made if not url.startswith("data:")]
    assert fetched == [page.url]


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_every_section_is_seen(open_page, size):
    page = open_page(size)
    links = page.get_by_role("navigation").get_by_role("link").all()
    assert len(links) == 11
    for link in links:
        link.click()
        section = page.locator(link.get_attribute("href"))
        assert section.get_by_role("heading").first.is_visible()
        assert section.bounding_box()["height"] > 60
    assert page.faults == []


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_nothing_is_wider_than_the_screen(open_page, size):
    page = open_page(size)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert overflow(page) == 0


@pytest.mark.slow
def test_figures_are_drawn(open_page):
    page = open_page()
    figures = page.get_by_role("img")
    assert figures.count() > 8
    for figure in page.locator("figure > svg:visible").all()[:8]:
        assert figure.bounding_box()["width"] > 200


@pytest.mark.slow
def test_tables_sort_by_a_click_and_back(open_page):
    page, table = open_page(), "#gains .scroll:first-child table"
    gain = heading(page, table, "gain")
    assert gain.get_attribute("aria-sort") == "none"
    gain.get_by_role("button").click()
    assert gain.get_attribute("aria-sort") == "descending"
    values = [float(v.replace(MINUS, "-")) for v in column(page, table, 3)]
    assert values == sorted(values, reverse=True) and values[0] == 9.5
    assert page.locator("#sorted").inner_text() == "Sorted by gain, descending."
    gain.get_by_role("button").click()
    assert gain.get_attribute("aria-sort") == "ascending"
    values = [float(v.replace(MINUS, "-")) for v in column(page, table, 3)]
    assert values == sorted(values) and values[0] == -0.5


@pytest.mark.slow
def test_tables_sort_by_the_keyboard(open_page):
    page, table = open_page(), "#gains .scroll:first-child table"
    name, gain = (heading(page, table, text) for text in ("data set", "gain"))
    gain.get_by_role("button").click()
    name.get_by_role("button").focus()
    page.keyboard.press("Enter")
    assert name.get_attribute("aria-sort") == "ascending"
    assert gain.get_attribute("aria-sort") == "none"
    names = column(page, table, 1)
    assert names == sorted(names) and names[0] == "cub"


@pytest.mark.slow
def test_rows_without_a_number_come_last(open_page):
    page, table = open_page(), "#accuracy .scroll:first-child table"
    button = heading(page, table, "my photos").get_by_role("button")
    for _ in range(2):  # the paper has no number for these, up and down
        button.click()
        values = column(page, table, 3)
        assert values[-1] == "" and values[0] != ""


@pytest.mark.slow
def test_dark_is_dark(open_page):
    colour = "getComputedStyle(document.body).backgroundColor"
    light, dark = (open_page(scheme=s).evaluate(colour) for s in ("light", "dark"))
    assert light == "rgb(255, 255, 255)"
    assert sum(map(int, dark[4:-1].split(","))) < 120


@pytest.mark.slow
def test_accuracies_of_both_shots_stand_side_by_side(open_page):
    page = open_page()
    one, five = page.locator("#accuracy .scroll").all()
    assert one.bounding_box()["y"] == five.bounding_box()["y"]


@pytest.mark.slow
def test_paper_is_light_and_has_the_settings(open_page):
    page = open_page(scheme="dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == (
        "rgb(255, 255, 255)"
    )
    assert not page.get_by_role("navigation").is_visible()
    assert page.get_by_text("config.seed").bounding_box()["height"] > 5


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_it_is_accessible(open_page, size, scheme):
    page = open_page(size, scheme)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert violations(page) == []
