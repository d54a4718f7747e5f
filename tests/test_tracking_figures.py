"""Three figures that a person can read, without a window, a display or global state."""

from __future__ import annotations

import io
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from tests.records_factory import make_failed, make_record, make_sweep
from tracking.drawing import COLOURS, MARKERS, spread
from tracking.figures import figures
from tracking.predictions import _label_points
from tracking.rows import rows


@pytest.fixture(scope="module")
def drawn() -> dict[str, Figure]:
    return figures(rows(make_sweep()))


def test_a_sweep_gives_three_figures_as_wide_as_the_page(drawn: dict[str, Figure]) -> None:
    assert list(drawn) == ["acceptance", "speedup", "prediction"]
    for figure in drawn.values():
        assert figure.get_figwidth() * figure.dpi == 900
        out = io.BytesIO()
        figure.savefig(out, format="png")
        assert out.getvalue().startswith(b"\x89PNG")


def test_nothing_written_is_cut_off_at_the_edge(drawn: dict[str, Figure]) -> None:
    for figure in drawn.values():
        figure.canvas.draw()
        inked = figure.get_tightbbox()
        width_in, height_in = figure.get_size_inches()
        assert inked.x0 >= 0 and inked.x1 <= width_in
        assert inked.y0 >= 0 and inked.y1 <= height_in


def test_each_draft_is_named_at_its_line(drawn: dict[str, Figure]) -> None:
    for name in ("acceptance", "speedup"):
        for axes in drawn[name].axes:
            labels = {text.get_text(): text for text in axes.texts}
            assert {"bigram", "int8", "int4"} <= set(labels)
            assert labels["bigram"].get_color() == COLOURS[0]


def test_one_is_marked_and_so_is_the_noise(drawn: dict[str, Figure]) -> None:
    (axes,) = drawn["speedup"].axes
    assert [1.0, 1.0] in [np.asarray(line.get_ydata()).tolist() for line in axes.lines]
    assert axes.texts[-1].get_text() == "noise: plain decoding against itself 0.96-1.05"


def test_a_prediction_panels_labels_hide_no_marker(drawn: dict[str, Figure]) -> None:
    for axes in drawn["prediction"].axes:
        markers = [line.get_zorder() for line in axes.lines if line.get_marker() in MARKERS]
        assert markers and max(text.get_zorder() for text in axes.texts) < min(markers)
        assert not any(text.get_path_effects() for text in axes.texts)


def test_a_points_label_stands_where_no_other_point_is() -> None:
    def beside(*points: tuple[str, float, float]) -> dict[str, str]:
        axes = Figure().subplots()
        _label_points(axes, [(k, x, y, y, y) for k, x, y in points], (0.4, 1.4))
        return {text.get_text(): text.get_horizontalalignment() for text in axes.texts}

    assert beside(("1", 0.7, 1.0), ("2", 0.85, 1.0)) == {"k=1": "right", "k=2": "left"}
    assert beside(("1", 0.7, 1.0), ("2", 0.85, 1.2)) == {"k=1": "left", "k=2": "left"}
    assert beside(("1", 0.7, 1.0), ("2", 0.95, 1.0)) == {"k=1": "left", "k=2": "left"}
    assert beside(("1", 0.5, 1.0), ("2", 0.65, 1.0))["k=1"] == "left"  # no room at the edge


def test_only_what_was_measured_is_drawn() -> None:
    assert list(figures(rows(make_sweep(pairs=0)))) == ["acceptance"]
    assert figures(rows([make_failed()])) == {}
    assert figures([]) == {}
    assert len(figures(rows([make_record("int8", 4)]))) == 3
    assert "acceptance" in figures(rows([make_record("bigram", 0)]))


def test_names_at_line_ends_are_moved_apart_and_no_further_than_needed() -> None:
    assert spread([0.0, 1.0], 0.1) == [0.0, 1.0]
    assert spread([0.5, 0.5], 0.2) == pytest.approx([0.4, 0.6])
    moved = spread([0.50, 0.52, 0.90, 0.51], 0.1)
    assert moved[2] == 0.90
    assert all(b - a >= 0.1 - 1e-12 for a, b in pairwise(sorted(moved)))
    assert sorted(range(4), key=lambda i: moved[i]) == [0, 3, 1, 2]
    assert spread([], 0.1) == []


def test_drawing_needs_no_pyplot_and_so_no_display() -> None:
    code = (
        "import io, sys\n"
        "from tests.records_factory import make_sweep\n"
        "from tracking.figures import figures\n"
        "from tracking.rows import rows\n"
        "figures(rows(make_sweep(seeds=(0,))))['speedup'].savefig(io.BytesIO())\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    project = Path(__file__).resolve().parents[1]
    subprocess.run([sys.executable, "-c", code], cwd=project, check=True, capture_output=True)
