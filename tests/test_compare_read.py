"""What a comparison reads of a store."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from tracking.compare.read import StoredSweeps
from tracking.store import Store

RUNS, PAIRS = [f"run{n:03}" for n in range(150)], 400


def bulk(run_ids: list[str], key: str, most: int) -> list[Any]:
    """As MLflow's own: run by run, and no more than `most` in all."""
    points = [
        SimpleNamespace(run_id=run, step=step, value=1.0 + step)
        for run in sorted(run_ids)
        for step in range(PAIRS)
    ]
    return points[:most]


def test_however_many_pairs_were_timed_every_run_has_all_its_ratios() -> None:
    inner = SimpleNamespace(store=SimpleNamespace(get_metric_history_bulk=bulk))
    store = SimpleNamespace(client=SimpleNamespace(_tracking_client=inner))
    found = StoredSweeps(cast(Store, store))._ratios(RUNS)
    assert sorted(found) == RUNS
    assert {len(ratios) for ratios in found.values()} == {PAIRS}
