"""The pages, figures and views that a comparison and a sweep have."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from tests.compared import assert_alone, nudged, on_machine, side_by_side, timed, without
from tests.records_factory import make_record, make_sweep
from tests.tracking_store import client, runs, sweep_in
from tracking import names
from tracking.compare.breakeven import constant_acceptance, full_cost, points
from tracking.compare.data import as_data
from tracking.compare.figures import figures
from tracking.compare.log import Output, as_note
from tracking.compare.terminal import show
from tracking.page import sweep_page
from tracking.printable import is_printable
from tracking.views import jobs_view, share_jobs_view

WITH_COSTS = [timed(make_record("int8", 4), (0.8, 0.9), c=0.5, v=1.2, o=0.1)]


@pytest.mark.parametrize("k", [1, 4, 8])
@pytest.mark.parametrize("a", [0.0, 0.3, 0.97, 1.0])
def test_the_acceptance_that_gives_a_yield_is_found_again(a: float, k: int) -> None:
    assert constant_acceptance(sum(a**i for i in range(k + 1)), k) == pytest.approx(a, abs=1e-6)


def test_a_point_on_the_break_even_line_neither_gains_nor_loses() -> None:
    """The predicted speedup is above 1 exactly where acceptance is above the panel's line."""
    found = side_by_side(on_machine("attic", WITH_COSTS), on_machine("cellar", WITH_COSTS))
    (line,) = found.lines
    row = line.cells[0]
    assert row is not None and row.tokens_per_pass is not None and row.predicted is not None
    cost = full_cost(row)
    assert cost is not None
    assert row.tokens_per_pass / (1 + row.k * cost) == pytest.approx(row.predicted)
    assert [point.cost for point in points(found.lines)] == [cost, cost]


def test_the_map_is_drawn_only_where_the_whole_cost_is_known() -> None:
    known = side_by_side(on_machine("attic", WITH_COSTS), on_machine("cellar", WITH_COSTS))
    assert set(figures(known)) == {"ranges", "costs", "breakeven"}
    partly = [without(record, "cost/o") for record in WITH_COSTS]
    unknown = side_by_side(on_machine("attic", partly), on_machine("cellar", partly))
    assert set(figures(unknown)) == {"ranges", "costs"}
    untimed = make_sweep(seeds=(0,), pairs=0)
    nothing = side_by_side(on_machine("attic", untimed), on_machine("cellar", untimed))
    assert figures(nothing) == {}
    assert "12 of 12 jobs agree" in Output.of(nothing).html


def test_points_of_machines_that_lie_on_each_other_are_all_seen_in_the_map() -> None:
    apart = [timed(make_record("int8", 4), (0.8, 0.9), c=0.1, v=1.2, o=0.1)]
    sides = (("attic", WITH_COSTS), ("cellar", WITH_COSTS), ("tower", WITH_COSTS), ("shed", apart))
    found = side_by_side(*(on_machine(name, jobs) for name, jobs in sides))
    (axes,) = figures(found)["breakeven"].axes
    marks = [line for line in axes.lines if line.get_marker() != "None"]
    sizes = [mark.get_markersize() for mark in marks]
    assert len(marks) == 4
    assert sizes[0] > sizes[1] > sizes[2] == sizes[3]


@pytest.mark.filterwarnings("ignore:Glyph")
def test_a_name_with_the_signs_of_a_formula_is_drawn_as_it_is() -> None:
    jobs = [replace(r, params=r.params | {"draft": r"$\frac{$"}) for r in WITH_COSTS]
    found = side_by_side(on_machine("$x_{$", jobs), on_machine("cellar", jobs))
    assert set(Output.of(found).files) >= {"figures/ranges.png", "figures/breakeven.png"}
    (axes,) = figures(found)["ranges"].axes
    assert r"\frac" in axes.get_yticklabels()[0].get_text()


def test_every_column_has_its_bars_in_the_figure() -> None:
    found = side_by_side(on_machine("attic"), on_machine("cellar"))
    (axes,) = figures(found)["ranges"].axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        line.name for line in found.lines
    ]
    assert len(axes.collections) == 24  # a bar a line and column


def test_what_comes_from_a_store_is_escaped_in_a_page() -> None:
    hostile = on_machine("<script>alert(1)</script>")
    page = Output.of(side_by_side(hostile, on_machine("cellar"))).html
    assert "<script" not in page and "&lt;script&gt;" in page
    report = sweep_page("<b>", "# <script>alert(1)</script>\n\n[x](javascript:alert(1))", {})
    assert "<script" not in report and "<b>" not in report and "href=" not in report


def test_a_page_asks_for_nothing_from_elsewhere() -> None:
    page = Output.of(side_by_side(on_machine("attic"), on_machine("cellar"))).html
    assert_alone(page)


def test_a_sweep_has_a_page_of_its_own_in_the_store(tmp_path: Path) -> None:
    recorder = sweep_in(tmp_path)
    recorder.log_job(make_record())
    report = recorder.report([make_record()], {"id": "s1"})
    summary = report.summary()
    summary["jobs"][0]["tags"]["load.state"] = "light"
    recorder.close_sweep("FINISHED", {}, report.markdown(), summary, report.figures())
    parent, _ = runs(recorder)
    page = Path(client(recorder).download_artifacts(parent.info.run_id, "report.html"))
    text = page.read_text(encoding="utf-8")
    assert text.count("data:image/png;base64,") == len(report.figures()) > 2
    assert "<table>" in text and "int8 k=4 is" in text
    assert parent.data.tags["load.state"] == "light"


def test_the_note_holds_the_table_and_stays_within_mlflows_limit() -> None:
    jobs = make_sweep(ks=tuple(range(1, 17)), seeds=(0,))
    found = side_by_side(*(on_machine(f"machine-{n}", jobs) for n in range(4)))
    assert "| int8 k=1 |" in as_note(found)
    assert found.name.startswith("compare machine-0 idle | machine-1 idle")
    assert len(found.name) <= 80


def test_the_data_is_json_with_null_for_what_is_not_known() -> None:
    jobs = [without(record, "cost/o") for record in make_sweep(seeds=(0,))]
    found = side_by_side(on_machine("attic", jobs), on_machine("cellar", jobs))
    data = json.loads(json.dumps(as_data(found), allow_nan=False))
    assert data["counts"]["matched"] == data["counts"]["agreeing"] == 12
    assert data["timings"][0]["o"] is None
    assert data["columns"][0]["told"]["name"] == "attic"


@pytest.mark.parametrize(("columns", "width", "parts"), [(2, 80, 1), (5, 80, 3), (5, 120, 2)])
def test_the_terminal_keeps_within_its_width_and_cuts_nothing(
    columns: int, width: int, parts: int, capsys: pytest.CaptureFixture[str]
) -> None:
    found = side_by_side(*(on_machine(f"machine-{n}") for n in range(columns)))
    show(found, Console(width=width, color_system=None))
    told = capsys.readouterr().out
    assert max(len(line) for line in told.splitlines()) <= width
    assert told.count("gains most on") == parts
    rows = [line for line in told.splitlines() if "(" in line and line.startswith("int8 k=")]
    assert len(rows) == 4 * parts
    assert all(line.rstrip().endswith("not told apart") for line in rows)
    assert all(f"machine-{n} idle" in told for n in range(columns))
    assert "…" not in told


FLIPPING = [timed(make_record("int8", k), (1.3, 1.4)) for k in (1, 2, 4)]
FLIPPED = [
    timed(make_record("int8", k), ratios)
    for k, ratios in ((1, (0.8, 0.9)), (2, (0.9, 1.2)), (4, (1.3, 1.4)))
]


def test_verdicts_and_flips_are_read_without_colour(capsys: pytest.CaptureFixture[str]) -> None:
    found = side_by_side(on_machine("attic", FLIPPING), on_machine("cellar", FLIPPED))
    show(found, Console(width=80, color_system=None))
    told = " ".join(capsys.readouterr().out.split())
    assert "int8 k=1 ** 1.35 (1.30-1.40) > 0.85 (0.80-0.90) < attic idle" in told
    assert "int8 k=2 * 1.35 (1.30-1.40) > 1.05 (0.90-1.20) ~ attic idle" in told
    assert "int8 k=4 1.35 (1.30-1.40) > 1.35 (1.30-1.40) > not told apart" in told
    assert "> faster than plain decoding there, < slower, ~ not told apart from it or" in told
    assert "**: faster than plain decoding in one column, slower in another." in told
    assert "*: faster in one column, not told apart in another." in told


def test_the_page_and_the_note_mark_both_kinds_of_flips() -> None:
    found = side_by_side(on_machine("attic", FLIPPING), on_machine("cellar", FLIPPED))
    page, note = Output.of(found).html, as_note(found)
    assert '<tr class="whole"><th>int8 k=1 **</th>' in page
    assert '<tr class="half"><th>int8 k=2 *</th>' in page
    assert "| **int8 k=1** |" in note and "| *int8 k=2* |" in note and "| int8 k=4 |" in note


def test_a_comparison_in_which_nothing_flips_explains_no_marks(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show(side_by_side(on_machine("attic"), on_machine("cellar")), Console(width=80))
    assert "*" not in capsys.readouterr().out


def test_the_range_is_called_an_interval_where_it_is_one() -> None:
    plain = side_by_side(on_machine("attic"), on_machine("cellar"))
    assert "from 7 pairs on" not in as_note(plain)
    own = {"time/speedup_low": 0.90, "time/speedup_high": 0.92}
    job = make_record("int8", 4, pairs=30, noise=0.3)
    job = replace(job, metrics=job.metrics | own)
    adaptive = side_by_side(on_machine("attic", [job]), on_machine("cellar", [job]))
    assert "smallest to the largest ratio of a pair; from 7 pairs on it is the" in as_note(adaptive)


def test_the_states_of_load_are_told_by_their_bounds() -> None:
    found = side_by_side(on_machine("attic"), on_machine("cellar"))
    bounds = "idle where other programs take less than 5% of the CPU, light below 25%, else busy"
    assert bounds in as_note(found) and bounds in Output.of(found).html
    assert names.TAGS["load.state"].meaning == bounds


def test_a_sweep_that_only_counted_is_listed_with_the_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    untimed = on_machine("tower", make_sweep(seeds=(0,), pairs=0), load=None)
    found = side_by_side(on_machine("attic"), untimed, on_machine("cellar"))
    show(found, Console(width=80, color_system=None))
    told = " ".join(capsys.readouterr().out.split())
    assert "tower: sweep sweep-tower, 12 jobs counted, none timed" in told
    assert "sweep-tower, 12 jobs counted, none timed</td>" in Output.of(found).html
    assert [fact["label"] for fact in as_data(found)["untimed"]] == ["tower"]


KNOWN = {
    "machine.cpu": "Quick 9",
    "machine.memory_bytes": str(16 * 2**30),
    "machine.governor": "powersave",
    "machine.frequency_mhz": "800-4200",
    "machine.power": "battery",
    "machine.virtual": "kvm",
    "machine.python": "3.12.1",
}


def test_what_is_known_of_the_machines_is_told_and_nothing_else(
    capsys: pytest.CaptureFixture[str],
) -> None:
    bare = on_machine("cellar", None, **{"machine.virtual": "no"})
    found = side_by_side(on_machine("attic", None, **KNOWN), bare)
    show(found, Console(width=200, color_system=None))
    told = capsys.readouterr().out
    assert "Quick 9, 16.0 GiB, virtual machine kvm, Python 3.12.1, power battery, gov" in told
    assert "governor powersave, MHz 800-4200" in told
    assert "cellar idle: sweep sweep-cellar, 12 timed jobs; noise" in told
    page = Output.of(found).html
    for heading in ("memory", "virtual machine", "Python", "power", "governor", "MHz"):
        assert f"<th>{heading}</th>" in page
    assert "<td>16.0 GiB</td>" in page and "<td>800-4200</td>" in page
    assert "<th>torch</th>" not in page and "<th>cores</th>" not in page


def test_nothing_that_comes_from_a_store_is_obeyed_by_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    evil = "\x1b[31mPWN\x07\u202e"
    jobs = [
        replace(r, name=r.name + evil, params=r.params | {"draft": evil, "verify": evil})
        for r in make_sweep(("int8",), (1, 4), (0,))
    ]
    tags = {name: evil for name in (*KNOWN, "code.digest", "weights.digest", "machine.torch")}
    other = [nudged(r, text=evil) for r in [*jobs, make_record("bigram", 2)]]
    other[0] = replace(other[0], params=other[0].params | {"threads": evil})
    one = on_machine("a" + evil, jobs, sweep_id="s1" + evil, **tags)
    show(side_by_side(one, on_machine("b" + evil, other, sweep_id="s2")), Console(width=90))
    told = capsys.readouterr().out
    assert "\\x1b[31mPWN\\x07\\u202e" in told
    assert not [c for c in told if not is_printable(c) and c != "\n"]


def test_a_name_is_printed_as_it_is_whatever_is_in_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = side_by_side(on_machine("[bold]a[/]"), on_machine("b"))
    show(found, Console(width=120, color_system=None))
    assert "[bold]a[/] idle  " in capsys.readouterr().out


def test_the_view_shows_known_names_and_only_one_sweeps_jobs() -> None:
    state = json.loads(jobs_view("s1"))
    for column in state["selectedColumns"]:
        kind, _, name = column.partition(".")
        assert name.strip("`") in (names.METRICS if kind == "metrics" else names.TAGS)
    assert "tags.`sweep.id` = 's1'" in state["searchFilter"]
    sections = {section["uuid"]: section["name"] for section in state["compareRunSections"]}
    for chart in state["compareRunCharts"]:
        side = names.METRICS[chart["metricKey"]].side
        assert sections[chart["metricSectionId"]].startswith(f"{side}: ")


def test_the_view_is_kept_with_the_experiment(tmp_path: Path) -> None:
    recorder = sweep_in(tmp_path)
    store = recorder.open()
    address = share_jobs_view(store, "s1")
    assert address.endswith("viewStateShareKey=jobs-s1")
    tags = store.client.get_experiment(store.experiment_id).tags
    assert tags["mlflow.sharedViewState.jobs-s1"] == jobs_view("s1")


def test_a_job_names_a_machine_more_closely_than_its_sweep_did() -> None:
    job = replace(make_record(), tags=make_record().tags | {"machine.blas": "mkl"})
    found = side_by_side(on_machine("attic", [job]), on_machine("cellar", [make_record()]))
    assert [fact.told.get("blas") for fact in found.facts] == ["mkl", None]
