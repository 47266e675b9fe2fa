"""The page as a file: what is in it, and what is told when it cannot be written."""

import html.parser
import logging
import re
import subprocess
import sys

import pytest
from reporting.made import (
    foreign,
    make_results,
    make_task,
    pair,
    row,
    write_hardest,
    write_run,
)

from rdc_jax.reporting import __main__ as program
from rdc_jax.reporting import report
from rdc_jax.runtime.errors import UserError


@pytest.fixture(scope="module")
def workdir(tmp_path_factory):
    results = make_results()
    path = tmp_path_factory.mktemp("run")
    return write_run(path, results, make_task(results))


@pytest.fixture(scope="module")
def page(workdir):
    path = report.write(workdir)
    assert path == workdir / "report.html"
    return path.read_text()


def headings(page, level):
    return re.findall(rf"<h{level}[^>]*>(.*?)</h{level}>", page)


def test_sections_are_in_order(page):
    assert headings(page, 1) == ["Made up (84 px)"]
    assert headings(page, 2) == [
        "Summary",
        "Accuracy",
        "Gains on the same tasks",
        "Classes",
        "Neighbours",
        "Warnings",
        "Example tasks",
        "Settings and origin",
        "Glossary",
    ]


def test_contents_lead_to_the_sections(page):
    found = set(re.findall(r'href="#([^"]+)"', page))
    assert len(found) > 8
    assert all(f'id="{anchor}"' in page for anchor in found)


def test_tags_close_and_ids_are_unique(page):
    open_tags, ids = [], []
    void = {"meta", "link", "img"}

    class Parser(html.parser.HTMLParser):
        def handle_starttag(self, tag, attrs):
            ids.extend(value for name, value in attrs if name == "id")
            if tag not in void:
                open_tags.append(tag)

        def handle_startendtag(self, tag, attrs):
            ids.extend(value for name, value in attrs if name == "id")

        def handle_endtag(self, tag):
            assert open_tags.pop() == tag

    Parser().feed(page)
    assert not open_tags
    assert len(ids) == len(set(ids)) > 15


def test_the_page_needs_no_network_and_tells_no_place(page):
    assert "http" not in page.replace("http-equiv", "")
    assert "src=" not in page
    assert "ann" not in page.split("config.datasets")[1].split("</tr>")[0]
    assert "/home" not in page and "secret" not in page


def test_numbers_and_words_are_there(page):
    assert "1-shot: RDC helps" in page and "5-shot: RDC hurts" in page
    assert "+3.00" in page and "± 0.50" in page
    assert '<span class="badge">paper, 224 px</span>' in page
    assert "c0ffee" in page and "1.2.3" in page
    assert "RDC loses to NPC + l2 norm on cub (1.00 ± 0.50 points)" in page


def test_the_same_results_give_the_same_page(workdir, page):
    assert report.write(workdir).read_text() == page


def test_names_cannot_write_into_the_page(tmp_path):
    bad = "<script>alert(1)</script>"
    results = make_results(pair(bad, 1, (1.0, 0.5)))
    results |= {"title": bad, "warnings": [bad]}
    made = make_task(results, dataset=bad, names=(bad, "b", "c"))
    page = report.write(write_run(tmp_path, results, made)).read_text()
    assert "alert(1)" in page and "<script>alert" not in page
    assert page.count("<script>") == 1


def test_what_is_not_there_has_no_section(tmp_path):
    results = make_results([row("cub", 1, "npc", 40.0)])
    results |= {"neighbours": [], "warnings": []}
    del results["curves"], results["classes"]  # as written by earlier versions
    for name in ("macro_f1", "macro_f1_ci95"):
        del results["rows"][0][name]
    page = report.write(write_run(tmp_path, results)).read_text()
    assert headings(page, 2) == [
        "Summary",
        "Accuracy",
        "Warnings",
        "Settings and origin",
        "Glossary",
    ]
    assert "there is no gain to show" in page
    assert "None: no method" in page


def test_queries_of_no_class_have_a_section(tmp_path):
    results = make_results(
        [foreign(r) for r in pair("cub", 1, (1.0, 0.5))], distractor_queries=15
    )
    page = report.write(write_run(tmp_path, results)).read_text()
    assert "None of the classes" in headings(page, 2)
    assert "Each task had 15 more images" in page and "Queries of no class" in page


def test_steps_have_a_section_where_they_were_recorded(tmp_path):
    curves = [
        {"dataset": "cub", "shot": 1, "method": "rdc_ft", "step": step}
        | {"accuracy": 50.0, "ci95": 1.0}
        for step in (0, 1)
    ]
    rows = pair("cub", 1, (1.0, 0.5), method="rdc_ft")
    results = make_results(rows, curves=curves)
    page = report.write(write_run(tmp_path, results)).read_text()
    assert "Steps of fine-tuning" in headings(page, 2)
    assert "config.finetune" in page


def test_the_hardest_images_are_shown_where_predictions_were_kept(tmp_path):
    results = write_hardest(tmp_path, make_results())
    page = report.write(write_run(tmp_path, results)).read_text()
    assert "Hardest images" in headings(page, 2)
    assert page.count('src="data:image/jpeg;base64,') == 8
    assert "wrong in 75% of 4 tasks" in page and "a&lt;b&gt;.jpg" in page
    (tmp_path / "hardest.npz").write_bytes(b"")
    with pytest.raises(UserError, match=r"hardest\.npz is not of these results"):
        report.write(tmp_path)
    (tmp_path / "hardest.npz").unlink()
    with pytest.raises(UserError, match=r"No such file.*run_eval\.py command again"):
        report.write(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "results.json is not there: give the work directory"),
        ("{", "cannot read"),
        ('{"format": 99}', "is not of this version"),
        ("[]", "is not of this version"),
        ('{"format": 1, "rows": []}', "has no results"),
    ],
)
def test_mistakes_are_told_in_one_line(tmp_path, content, message):
    if content is not None:
        (tmp_path / "results.json").write_text(content)
    with pytest.raises(UserError, match=message) as caught:
        report.write(tmp_path)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "report.html").exists()


def test_a_place_that_cannot_be_written_is_told(workdir, tmp_path):
    with pytest.raises(UserError, match=r"missing is no folder.*give another --out"):
        report.write(workdir, tmp_path / "missing" / "report.html")


def test_a_page_that_cannot_be_replaced_is_told(tmp_path):
    workdir = write_run(tmp_path, make_results([row("cub", 1, "npc", 40.0)]))
    (workdir / "report.html").mkdir()
    with pytest.raises(UserError, match=r"cannot write .*give another --out"):
        report.write(workdir)


def test_the_program_prints_where_the_page_is(workdir, tmp_path, monkeypatch, capsys):
    out = tmp_path / "page.html"
    monkeypatch.setattr(sys, "argv", ["reporting", str(workdir), f"--out={out}"])
    program.main()
    assert capsys.readouterr().out.strip() == str(out)
    assert out.read_text().startswith("<!doctype html>")


def test_without_the_extra_one_line_says_how_to_get_it(
    workdir, tmp_path, monkeypatch, caplog
):
    monkeypatch.setattr(report, "_EXTRA", ("no_such_package",))
    with pytest.raises(UserError, match=r"needs no_such_package: pip install 'rdc-jax"):
        report.write(workdir)
    with caplog.at_level(logging.INFO, "rdc_jax"):
        report.after_run(tmp_path)
    assert len(caplog.records) == 1
    assert "pip install 'rdc-jax[report]'" in caplog.text
    assert not (tmp_path / "report.html").exists()


def test_a_run_ends_with_its_report(tmp_path, caplog):
    workdir = write_run(tmp_path, make_results([row("cub", 1, "npc", 40.0)]))
    with caplog.at_level(logging.INFO, "rdc_jax"):
        report.after_run(workdir)
    assert f"report: {workdir / 'report.html'}" in caplog.text
    assert (workdir / "report.html").is_file()


def run_python(code, *arguments):
    command = [sys.executable, "-c", code, *map(str, arguments)]
    subprocess.run(command, check=True, timeout=120)


def test_the_package_can_be_imported_without_the_extra():
    run_python(
        "import sys; sys.modules.update(dict.fromkeys(('jinja2', 'matplotlib', "
        "'sklearn', 'threadpoolctl')));"
        "from rdc_jax.reporting import report"
    )


def test_a_page_needs_results_alone(tmp_path):
    workdir = write_run(tmp_path, make_results([row("cub", 1, "npc", 40.0)]))
    run_python(
        "import sys; from rdc_jax.reporting import report; report.write(sys.argv[1]);"
        "used = {m for m in sys.modules if m.startswith('rdc_jax.')};"
        "parts = {m.split('.')[1] for m in used};"
        "assert parts == {'core', 'reporting', 'runtime'}, parts;"
        "from jax._src import xla_bridge; assert not xla_bridge._backends",
        workdir,
    )


def test_a_run_of_one_task_has_no_intervals(tmp_path):
    rows = pair("my photos", 1, (9.0, None))
    rows = [row | {"ci95": None, "episodes": 1} for row in rows]
    write_run(tmp_path, make_results(rows) | {"warnings": []})
    text = report.write(tmp_path).read_text()
    assert "RDC makes no clear difference" in text and "too few tasks" in text
    assert not re.search(r"± (0|None)|None points", text)
