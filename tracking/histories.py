"""Every point of every metric of many runs, read in as few requests as the store allows."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from tracking.payload import Point
from tracking.store import Store

if TYPE_CHECKING:
    from mlflow.entities import Metric, Run

_CHUNK = 200  # runs a question: databases bound its length
_EVERY = 2**31 - 1
_THREADS = 8


def histories(store: Store, runs: Sequence[Run]) -> dict[str, list[Point]]:
    """By run id, in the order of name, step and time. Raises what MLflow raises."""
    found: dict[str, list[Point]] = {run.info.run_id: [] for run in runs}
    # a database answers for many runs at once; a server has to be asked for each metric of each
    database = store.client._tracking_client.store
    if hasattr(database, "get_metric_history_bulk"):
        _from_database(database, runs, found)
    else:
        _from_server(store, runs, found)
    for points in found.values():
        points.sort(key=lambda point: (point.name, point.step, point.time_ms))
    return found


def _from_database(database: Any, runs: Sequence[Run], found: dict[str, list[Point]]) -> None:
    for start in range(0, len(runs), _CHUNK):
        chunk = runs[start : start + _CHUNK]
        ids = [run.info.run_id for run in chunk]
        for name in sorted({name for run in chunk for name in run.data.metrics}):
            for metric in database.get_metric_history_bulk(ids, name, _EVERY):
                found[metric.run_id].append(_point(metric))


def _from_server(store: Store, runs: Sequence[Run], found: dict[str, list[Point]]) -> None:
    wanted = [(run.info.run_id, name) for run in runs for name in run.data.metrics]
    with ThreadPoolExecutor(_THREADS) as pool:
        answers = pool.map(lambda pair: store.client.get_metric_history(*pair), wanted)
        for (run_id, _), metrics in zip(wanted, answers, strict=True):
            found[run_id] += [_point(metric) for metric in metrics]


def _point(metric: Metric) -> Point:
    return Point(metric.key, metric.value, metric.timestamp, metric.step)
