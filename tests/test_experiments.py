"""Every experiment of conf/experiment runs whole, with few characters."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from pipeline import sweep
from pipeline.compose import CONF, compose
from pipeline.config import to_spec
from pipeline.progress import Show
from tests.sweeping import Result
from tests.tracking_store import project

# without some of their points, but with every draft, rule and shape that they have
FEWER = {
    "family": ("k=1,auto",),
    "quick": (),
    "reference": ("k=1,8", "seed=0"),
    "rules": ("seed=0",),
    "tree_rules": ("draft=bigram,heads",),
    "trees": ("draft=bigram",),
}
SMALL = ("tokens=12", "draws=50", "timing.pairs=2", "timing.piece_tokens=6", "n_jobs=2")
EXPERIMENTS = sorted(path.stem for path in CONF.glob("experiment/*.yaml"))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return project(tmp_path_factory.mktemp("experiments"))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_runs_to_its_table(
    root: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    line = [f"experiment={name}", *FEWER[name], *SMALL]
    out = io.StringIO()
    code = sweep.main(line, root=root, show=Show(Console(file=out, highlight=False)))
    assert code == 0, out.getvalue()
    done = Result(code, out.getvalue(), root)
    asked = {to_spec(one.config).name for one in compose(line)}
    assert {job["name"] for job in done.summary["jobs"]} == asked
    assert {job["status"] for job in done.summary["jobs"]} == {"done"}
    assert len(done.summary["rows"]) > 1 and done.summary["conclusion"]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_says_how_many_jobs_it_has_and_how_long_they_take(name: str) -> None:
    text = (CONF / "experiment" / f"{name}.yaml").read_text(encoding="utf-8")
    comment = " ".join(line[1:].strip() for line in text.splitlines() if line.startswith("#"))
    assert re.search(r"(\d+) jobs, .*?\bminutes?\b", comment), comment
    said = next(int(found[1]) for found in re.finditer(r"(\d+) jobs", comment))
    assert said == len(compose([f"experiment={name}"]))
