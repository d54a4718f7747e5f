"""Imports go down or sideways, never up; each package knows only what it may know."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

FLOORS = {
    # words and pure functions: numpy, and scipy's special functions; no torch
    0: "record_form records theory verify sampling exactness leak summary timing pairs ratios"
    " verdicts alike headlines advice privacy",
    # models, their state, their weights
    1: "engine text corpus tree_cache cache lane_cache prefixes context one_text many_texts"
    " lane_texts reading model programs compiled compiled_text compiled_heads heads quantize"
    " drafts weights",
    # decoding, counting, timing, training
    2: "proposal decode counts tree_proposal tree_decode tree_rounds tree_counts clocks rounds"
    " costs checkpoint fitting parts learned train choose_layers",
    # one job
    3: "spec workbench memory timed distribution ties estimate job",
    # the sweep over jobs
    4: "anonymous config compose explain plan store lock idle stop pool progress journal recording"
    " nulls origin phases run ending sweep resume asked check_distribution same_text rule_gains",
    # what measures the engine itself: nothing imports it
    5: "bench",
}
FLOOR = {name: floor for floor, names in FLOORS.items() for name in names.split()}
HEAVY = {
    0: {"torch", "mlflow", "hydra", "omegaconf", "joblib"},
    1: {"mlflow", "hydra", "omegaconf", "joblib"},
    2: {"mlflow", "hydra", "omegaconf", "joblib"},
    3: {"mlflow", "hydra", "omegaconf", "joblib"},
    4: {"mlflow", "torch"},
    5: {"mlflow"},
}


def modules(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def imports(path: Path) -> Iterator[str]:
    """Full names of what a file imports anywhere in it, and of what only type checkers read."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide the floor"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def first_part(path: Path) -> str:
    """`pipeline/drafts/base.py` -> drafts; `pipeline/job.py` -> job."""
    return path.relative_to(ROOT / "pipeline").with_suffix("").parts[0]


@pytest.mark.parametrize("path", modules("pipeline"), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_of_pipeline_never_go_up(path: Path) -> None:
    own = first_part(path)
    if own == "__init__":
        assert not list(imports(path))
        return
    assert own in FLOOR, f"{own} has no floor: give it one in this table"
    for name in imports(path):
        top, *rest = name.split(".")
        assert top != "tracking", f"{own} imports {name}: the recorder is named in conf/tracking"
        assert top not in HEAVY[FLOOR[own]], f"{own} is on floor {FLOOR[own]} and imports {name}"
        if top == "pipeline" and rest:
            assert FLOOR[rest[0]] <= FLOOR[own], f"{own} imports {name}, which is above it"


@pytest.mark.parametrize("path", modules("tracking"), ids=lambda p: str(p.relative_to(ROOT)))
def test_tracking_knows_records_and_what_is_private_and_nothing_else_of_pipeline(
    path: Path,
) -> None:
    for name in imports(path):
        assert name.split(".")[0] not in {"torch", "hydra", "omegaconf", "joblib"}, name
        if name.startswith("pipeline"):
            assert name.startswith(("pipeline.records", "pipeline.privacy")), name


def test_every_floor_of_the_table_exists() -> None:
    there = {first_part(path) for path in modules("pipeline")} - {"__init__"}
    assert set(FLOOR) == there


@pytest.mark.parametrize(
    "module, absent",
    [
        ("pipeline.job", "mlflow hydra omegaconf joblib matplotlib tracking torch._inductor"),
        ("pipeline.sweep", "mlflow torch matplotlib tracking"),
        ("tracking.recorder", "mlflow torch hydra matplotlib"),
    ],
)
def test_importing_a_module_does_not_load_what_it_need_not(module: str, absent: str) -> None:
    code = f"import sys, {module}; print(*[m for m in {absent.split()!r} if m in sys.modules])"
    told = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (told.returncode, told.stdout.strip(), told.stderr) == (0, "", "")
