"""Real sweeps of one store side by side: real models, a few characters, two machines' names."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from pipeline import sweep
from pipeline.progress import Show
from pipeline.weights import SHIPPED, load_target, save_model
from tests.tracking_store import project
from tracking.__main__ import main
from tracking.compare.matching import CLOCKS_ONLY

GRID = ("draft=bigram", "k=1,2", "seed=0", "tokens=24", "draws=50", "timing.pairs=2", "n_jobs=1")
Found = dict[str, Any]


def weights_in(folder: Path, nudge: float = 0.0) -> Path:
    """What ships, with one number of the target's made larger."""
    for part in ("target", "bigram"):
        shutil.copytree(SHIPPED / part, folder / part)
    if nudge:
        model, vocabulary, card = load_target(folder)
        parameters = dict(model.named_parameters())
        last = parameters[[*parameters][-1]]
        last.data.flatten()[0] += nudge
        shutil.rmtree(folder / "target")
        save_model(folder, "target", model, vocabulary, card)
    return folder


def ran(root: Path, machine: str, weights: Path, *more: str) -> None:
    out = io.StringIO()
    words = [*GRID, f"tracking.machine={machine}", f"target.weights={weights}", *more]
    assert sweep.main(words, root=root, show=Show(Console(file=out))) == 0, out.getvalue()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """attic and cellar have the same weights in different folders; tower has others, and counted
    only."""
    root = project(tmp_path_factory.mktemp("real"))
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        ran(root, "attic", weights_in(root / "here" / "own"))
        ran(root, "cellar", weights_in(root / "elsewhere" / "mine"))
        ran(root, "tower", weights_in(root / "nudged", 0.5), "timing=skip")
        yield root


def compared(root: Path, *machines: str) -> Found:
    out = io.StringIO()
    with redirect_stdout(out):
        assert main(["--root", str(root), "compare", "--json", "--machine", *machines]) == 0
    found: Found = json.loads(out.getvalue())
    return found


def test_two_machines_with_the_same_weights_agree_and_their_timings_meet(root: Path) -> None:
    found = compared(root, "attic", "cellar")
    assert found["sentences"]["Counts"] == [
        "2 of 2 jobs agree: the same weights, code and configuration."
    ]
    timings = [(row["draft"], row["k"], row["machine"]) for row in found["timings"]]
    assert timings == [("bigram", k, machine) for k in (1, 2) for machine in ("attic", "cellar")]
    assert all("target" not in row for row in found["timings"])


def test_a_nudged_weight_is_named_as_the_cause_with_the_place_and_the_margin(root: Path) -> None:
    found = compared(root, "attic", "tower")
    assert found["counts"]["matched"] == 2
    assert found["counts"]["agreeing"] < 2
    first = found["counts"]["disagreements"][0]
    what = [difference["what"] for difference in first["differences"]]
    assert what[0] == "weights" and CLOCKS_ONLY.issuperset(what[1:])
    assert first["parting"]["one"] != first["parting"]["other"]
    position, margins = first["closest"]["position"], first["closest"]["margins"]
    assert position is not None and position <= first["parting"]["position"]
    assert all(0 < margin <= 1 for margin in margins)
    told = " ".join(found["sentences"]["Counts"])
    assert "It comes of the weights, which differ: " in told
    assert [(fact["label"], fact["counted"]) for fact in found["untimed"]] == [("tower", 2)]
