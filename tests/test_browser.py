"""Pages as a person sees them: in a real browser, where one is installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.browser import Page, browser, find
from tests.compared import on_machine, side_by_side
from tests.records_factory import make_sweep
from tests.tracking_store import sweep_in
from tracking.compare.log import Output, log
from tracking.recorder import Recorder
from tracking.runs import run_page
from tracking.serve import free_port, served
from tracking.views import share_jobs_view

JOBS = make_sweep(("bigram", "int8"), (1, 4), (0,))
NAMES = {record.name for record in JOBS}
DRAWN = "[...document.images].every(i => i.complete && i.naturalWidth > 100 && i.width > 100)"
BARS = "document.querySelectorAll('.js-plotly-plot svg .bars path').length"
LEAVES = "document.querySelectorAll('body *:not(:has(*))')"
WHOLE = "(e => e.scrollWidth <= e.clientWidth)(document.querySelector('.wide'))"
ASSISTANT = "document.body.innerText.includes('MLflow Assistant')"
# MLflow's page asks who is logged in; without a login its own server answers 404
OF_MLFLOW = ("/mlflow/users/current",)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture(scope="module")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Recorder:
    """A store with a sweep in it."""
    find()
    recorder = sweep_in(tmp_path_factory.mktemp("project"), "s1")
    for record in JOBS:
        recorder.log_job(record)
    report = recorder.report(JOBS, {"id": "s1"})
    recorder.close_sweep("FINISHED", {}, report.markdown(), report.summary(), report.figures())
    return recorder


@pytest.fixture(scope="module")
def mlflow(recorder: Recorder) -> Iterator[str]:
    with served(recorder.check(), free_port(5400)) as page:
        yield page.base


def test_a_comparisons_page_shows_its_figures_and_words_without_an_error(
    page: Page, tmp_path: Path
) -> None:
    comparison = side_by_side(on_machine("attic"), on_machine("cellar", load="busy"))
    file = tmp_path / "compare.html"
    file.write_text(Output.of(comparison).html, encoding="utf-8")
    page.open(file.as_uri())
    page.wait(DRAWN)
    assert page.value("document.images.length") == 3
    assert page.value("document.querySelectorAll('#timings tr').length") == 13
    assert "12 of 12 jobs agree" in page.text()
    assert page.errors == []


@pytest.mark.parametrize("width", [1400, 390])
def test_a_comparisons_page_is_never_wider_than_the_window(
    page: Page, tmp_path: Path, width: int
) -> None:
    comparison = side_by_side(*(on_machine(f"a-rather-long-name-{n}") for n in range(4)))
    file = tmp_path / "compare.html"
    file.write_text(Output.of(comparison).html, encoding="utf-8")
    page.resize(width, 900)
    page.open(file.as_uri())
    page.wait(DRAWN)
    assert page.value("document.documentElement.scrollWidth") <= width
    page.resize(1400, 1000)


def test_a_sweeps_own_page_shows_its_table_and_figures(page: Page, recorder: Recorder) -> None:
    parent, _ = runs_of_sweep(recorder)
    client = recorder.open().client
    file = Path(client.download_artifacts(parent, "report.html"))
    page.open(file.as_uri())
    page.wait(DRAWN)
    figures = client.list_artifacts(parent, "figures")
    assert page.value("document.images.length") == len(figures) > 2
    assert page.value("document.querySelectorAll('table tr').length") == 2 * (1 + len(JOBS))
    page.resize(600, 1000)  # what MLflow's page leaves to an artifact
    assert page.value(WHOLE)
    heights = "new Set([...document.querySelectorAll('tbody tr')].map(r => r.offsetHeight)).size"
    assert page.value(heights) == 1, "a cell is broken into two lines"
    page.resize(1400, 1000)
    assert page.errors == []


def test_mlflow_lists_the_sweep_and_beside_each_other_its_jobs(
    page: Page, recorder: Recorder, mlflow: str
) -> None:
    page.open(mlflow + share_jobs_view(recorder.open(), "s1"))
    listed = "[...document.querySelectorAll('a')].map(a => a.innerText.trim())"
    page.wait(f"{len(NAMES)} === {listed}.filter(t => /seed=0/.test(t)).length")
    assert set(page.value(listed)) >= NAMES
    assert "time/speedup_median" in page.text()
    assert not own(page.errors)


def test_mlflow_draws_charts_by_side_with_what_decides_first(
    page: Page, recorder: Recorder, mlflow: str
) -> None:
    page.open(mlflow + share_jobs_view(recorder.open(), "s1") + "&compareRunsMode=CHART")
    page.wait(f"{BARS} > 0")
    headings = page.value(f"[...{LEAVES}].map(e => e.innerText).filter(t => /^c.*s: /.test(t))")
    assert headings[:2] == ["clocks: is it faster?", "counts: what was accepted"]
    assert not own(page.errors)


@pytest.fixture
def first_visit(tmp_path: Path) -> Iterator[Page]:
    """MLflow opens its assistant then, in a quarter of the window."""
    with browser(tmp_path) as opened:
        opened.resize(1400, 1000)
        yield opened


def test_at_the_first_visit_a_charts_title_is_whole(
    first_visit: Page, recorder: Recorder, mlflow: str
) -> None:
    first_visit.open(mlflow + share_jobs_view(recorder.open(), "s1") + "&compareRunsMode=CHART")
    first_visit.wait(f"{BARS} > 0 && {ASSISTANT}")
    titles = f"[...{LEAVES}].filter(e => /^time.speedup_(median|min|max)$/.test(e.innerText))"
    shown = f"{titles}.filter(e => e.clientWidth > 0).map(e => e.scrollWidth <= e.clientWidth)"
    first_visit.wait(f"{shown}.length > 0")
    assert all(first_visit.value(shown))


def test_at_the_first_visit_the_list_of_jobs_is_whole_up_to_the_acceptance(
    first_visit: Page, recorder: Recorder, mlflow: str
) -> None:
    first_visit.open(mlflow + share_jobs_view(recorder.open(), "s1"))
    edge = "document.querySelector('.ag-center-cols-viewport').getBoundingClientRect().right"
    last = "document.querySelector('[role=columnheader][col-id*=acceptance_rate]')"
    first_visit.wait(f"{ASSISTANT} && {last} !== null")
    whole = f"{last}.getBoundingClientRect().right <= {edge} + 1"
    first_visit.wait(whole, 10)
    assert first_visit.value(whole)


def test_at_the_first_visit_a_sweeps_tables_are_whole(
    first_visit: Page, recorder: Recorder, mlflow: str
) -> None:
    parent, experiment = runs_of_sweep(recorder)
    address = run_page(mlflow, experiment, parent)
    first_visit.open(address.replace("?", "/artifacts/report.html?"))
    first_visit.wait(ASSISTANT)
    with first_visit.inside():
        first_visit.wait(f"document.images.length > 2 && {DRAWN}")
        assert first_visit.value("innerWidth") < 650
        assert first_visit.value(WHOLE)


def test_mlflow_shows_a_sweeps_conclusion_and_its_figures(
    page: Page, recorder: Recorder, mlflow: str
) -> None:
    parent, experiment = runs_of_sweep(recorder)
    page.open(run_page(mlflow, experiment, parent))
    page.wait("document.body.innerText.includes('bigram k=4 is fastest here')")
    page.open("about:blank")
    page.open(run_page(mlflow, experiment, parent).replace("?", "/artifacts/figures/speedup.png?"))
    page.wait("[...document.images].some(i => /speedup|blob:/.test(i.src) && i.naturalWidth > 800)")
    page.open("about:blank")
    page.open(run_page(mlflow, experiment, parent).replace("?", "/artifacts/report.html?"))
    with page.inside():
        page.wait(f"document.images.length > 2 && {DRAWN}")
        assert "bigram k=4 is fastest here" in page.text()
    assert not own(page.errors)


def test_mlflow_renders_a_comparison_that_is_kept_in_it(
    page: Page, recorder: Recorder, mlflow: str
) -> None:
    comparison = side_by_side(on_machine("attic"), on_machine("cellar"))
    store = recorder.open()
    run_id = log(store, comparison, Output.of(comparison))
    address = run_page(mlflow, store.experiment_id, run_id)
    page.open(address.replace("?", "/artifacts/compare.html?"))
    with page.inside():
        page.wait(f"document.images.length === 3 && {DRAWN}")
        assert "12 of 12 jobs agree" in page.text()
    page.open("about:blank")
    page.open(address.replace("?", "/artifacts/compare.csv?"))
    page.wait("document.body.innerText.includes('Previewing the first 24 rows')")
    assert not own(page.errors)


def runs_of_sweep(recorder: Recorder) -> tuple[str, str]:
    """The sweep's run and its experiment."""
    store = recorder.open()
    found = store.client.search_runs([store.experiment_id], "tags.`run.kind` = 'sweep'")
    (parent,) = found
    return str(parent.info.run_id), store.experiment_id


def own(errors: list[str]) -> list[str]:
    """Errors but those that MLflow's page has on any day."""
    return [error for error in errors if not any(known in error for known in OF_MLFLOW)]


def test_a_script_that_fails_and_a_figure_that_is_not_drawn_are_noticed(
    page: Page, tmp_path: Path
) -> None:
    file = tmp_path / "broken.html"
    file.write_text("<img src='none.png'><script>throw Error('oh')</script>", encoding="utf-8")
    page.open(file.as_uri())
    assert not page.value(DRAWN)
    assert any("oh" in error for error in page.errors)


def test_a_browser_that_is_done_leaves_no_process(tmp_path: Path) -> None:
    with browser(tmp_path) as page:
        page.open("about:blank")
        assert using(tmp_path)
    assert using(tmp_path) == []


def using(folder: Path) -> list[str]:
    """The programs that were started with a folder among their arguments."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if str(folder) in " ".join(process.cmdline()):
                found.append(process.name())
    return found
