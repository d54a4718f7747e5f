"""A view of MLflow's table of runs: one sweep's jobs, with the columns that matter in front.

MLflow's page keeps a view that is shared as a tag of the experiment, and shows it where its address
names the tag. Sorted by a metric, jobs stand beside each other instead of under their sweep.
"""

from __future__ import annotations

import json

from tracking.runs import FOR_MODELS, quote
from tracking.store import Store

_TAG = "mlflow.sharedViewState."
_FASTEST_FIRST = "metrics.`time/speedup_median`"
_COLUMNS = {  # and the width in pixels at which the heading is not cut
    _FASTEST_FIRST: 165,
    "metrics.`time/speedup_min`": 150,
    "metrics.`time/speedup_max`": 150,
    "tags.`verdict`": 100,
    "metrics.`cost/c`": 160,
    "metrics.`count/acceptance_rate`": 175,
    "metrics.`count/tokens_per_pass`": 175,
    "metrics.`cost/predicted`": 130,
    "tags.`load.state`": 100,
}


def jobs_view(sweep_id: str) -> str:
    """The view's state, as MLflow's page writes it."""
    state = {
        "searchFilter": f"tags.`sweep.id` = '{quote(sweep_id)}' AND tags.`run.kind` = 'job'",
        "orderByKey": _FASTEST_FIRST,
        "orderByAsc": False,
        "lifecycleFilter": "Active",
        "startTime": "ALL",
        "selectedColumns": [*_COLUMNS],
        "columnOrder": [*_COLUMNS],
        "columnWidths": _COLUMNS,
        "runsHiddenMode": "FIRST_20_RUNS",
        "hideEmptyCharts": True,
    }
    return json.dumps(state)


def share_jobs_view(store: Store, sweep_id: str) -> str:
    """Keeps the view in the store. Its address, to be put behind the page's. Raises MLflow's."""
    key = f"jobs-{sweep_id}"
    store.client.set_experiment_tag(store.experiment_id, _TAG + key, jobs_view(sweep_id))
    return f"/#/experiments/{store.experiment_id}/runs{FOR_MODELS}&viewStateShareKey={key}"
