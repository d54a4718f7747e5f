"""A view of MLflow's table of runs: one sweep's jobs, with the columns that matter in front.

MLflow's page keeps a view that is shared as a tag of the experiment, and shows it where its address
names the tag. Sorted by a metric, jobs stand beside each other instead of under their sweep.
"""

from __future__ import annotations

import json
from typing import Any

from tracking.runs import FOR_MODELS, quote
from tracking.store import Store

_TAG = "mlflow.sharedViewState."
_FASTEST_FIRST = "metrics.`time/speedup_median`"
_COLUMNS = {  # and the width in pixels at which neither heading nor figures are cut
    "tags.`verdict`": 90,
    _FASTEST_FIRST: 165,
    "metrics.`count/acceptance_rate`": 158,
    "metrics.`count/tokens_per_pass`": 160,
    "metrics.`cost/c`": 160,
    "metrics.`time/speedup_min`": 150,
    "metrics.`time/speedup_max`": 150,
    "metrics.`cost/predicted`": 150,
    "tags.`load.state`": 100,
}
# What MLflow's page always shows; with these widths the acceptance is whole beside its assistant.
_OF_EVERY_VIEW = {"attributes.`Run Name`": 185, "runDateAndNestInfo": 110}


# Charts by side, what decides first; each is a bar a job.
_CHARTS = {
    "clocks: is it faster?": ("time/speedup_median", "time/speedup_min", "time/speedup_max"),
    "counts: what was accepted": (
        "count/acceptance_rate",
        "count/tokens_per_pass",
        "count/target_passes",
    ),
    "clocks: what a round costs": ("cost/c", "cost/v", "cost/o"),
    "clocks: what that predicts": (
        "cost/predicted",
        "cost/predicted_simple",
        "cost/prediction_error",
    ),
    "counts: is it the target's text?": ("dist/tv", "dist/p_value", "count/margin_min"),
    "clocks: how busy the machine was": ("load/others_share", "load/before_1m", "load/after_1m"),
}
_BARS = 40
# Side by side their titles would be cut to "time/speedup_..." where MLflow's assistant, which is
# open at first, takes a quarter of the window. So high that the figures of a dozen can be read.
_CARDS = {"columns": 1, "cardHeight": 560}


def jobs_view(sweep_id: str) -> str:
    """The view's state, as MLflow's page writes it."""
    state = {
        "searchFilter": f"tags.`sweep.id` = '{quote(sweep_id)}' AND tags.`run.kind` = 'job'",
        "orderByKey": _FASTEST_FIRST,
        "orderByAsc": False,
        "lifecycleFilter": "Active",
        "startTime": "ALL",
        "selectedColumns": [*_COLUMNS],
        "columnOrder": [*_OF_EVERY_VIEW, *_COLUMNS],
        "columnWidths": _OF_EVERY_VIEW | _COLUMNS,
        "runsHiddenMode": "SHOWALL",
        "hideEmptyCharts": True,
        "isAccordionReordered": True,  # else they are sorted by name
        "compareRunSections": [
            {"uuid": section, "name": section, "display": True, "isReordered": False, **_CARDS}
            for section in _CHARTS
        ],
        "compareRunCharts": [
            _bars(section, metric) for section, metrics in _CHARTS.items() for metric in metrics
        ],
    }
    return json.dumps(state)


def _bars(section: str, metric: str) -> dict[str, Any]:
    return {
        "uuid": metric,
        "type": "BAR",
        "metricKey": metric,
        "metricSectionId": section,
        "runsCountToCompare": _BARS,
        "deleted": False,
        "isGenerated": False,
    }


def share_jobs_view(store: Store, sweep_id: str) -> str:
    """Keeps the view in the store. Its address, to be put behind the page's. Raises MLflow's."""
    key = f"jobs-{sweep_id}"
    store.client.set_experiment_tag(store.experiment_id, _TAG + key, jobs_view(sweep_id))
    return f"/#/experiments/{store.experiment_id}/runs{FOR_MODELS}&viewStateShareKey={key}"
