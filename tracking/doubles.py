"""Runs that are in a store twice: a request arrived although its answer did not, or two imports
into one server ran at once."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import reduce
from typing import TYPE_CHECKING

from tracking import bundle
from tracking.runs import better_run, quote, search
from tracking.store import Store

if TYPE_CHECKING:
    from mlflow.entities import Run


def one_of_each(store: Store, sweep_id: str) -> dict[str, Run]:
    """The sweep's runs in the store, by what names them everywhere.

    Of a run that came with bundles and is there twice one stays, and the jobs hang on it; the
    others go to MLflow's bin. What was recorded here is not touched. Raises what MLflow raises.
    """
    every: dict[str, list[Run]] = defaultdict(list)
    for run in search(store, f"tags.`sweep.id` = '{quote(sweep_id)}'"):
        every[_key(run, sweep_id)].append(run)
    hung = Counter(run.data.tags.get(bundle.PARENT_TAG) for runs in every.values() for run in runs)
    kept = {key: _best(runs, hung) for key, runs in every.items()}
    gone = {
        run.info.run_id
        for key, runs in every.items()
        for run in runs
        if run is not kept[key] and _came(run)
    }
    for run in kept.values():
        if run.data.tags.get(bundle.PARENT_TAG) in gone and _came(run):
            parent_id = kept[sweep_id].info.run_id
            store.client.set_tag(run.info.run_id, bundle.PARENT_TAG, parent_id)
    for run_id in gone:
        store.client.delete_run(run_id)
    return kept


def _key(run: Run, sweep_id: str) -> str:
    tags = run.data.tags
    job = tags.get("job.digest", "") if bundle.PARENT_TAG in tags else ""
    return f"{sweep_id}/{job}" if job else sweep_id


def _best(runs: list[Run], hung: Counter[str | None]) -> Run:
    """One that was recorded here, else one that jobs hang on, else a finished one or the later."""
    runs = [run for run in runs if not _came(run)] or runs
    most = max(hung[run.info.run_id] for run in runs)
    runs = [run for run in runs if hung[run.info.run_id] == most]
    return reduce(lambda one, other: better_run(one, other)[0], runs)


def _came(run: Run) -> bool:
    return bundle.SOURCE_TAG in run.data.tags
