"""The memory/ figures of a job: bytes that target and draft hold for one text."""

from __future__ import annotations

from pipeline.records import Trace
from pipeline.spec import JobSpec
from pipeline.verify.tree import tree
from pipeline.workbench import Run, Workbench


def metrics(bench: Workbench, run: Run, trace: Trace) -> dict[str, float]:
    """Of one text in float32, as it is timed; probability rows are float64 in either arithmetic."""
    assert run.draft is not None  # a speculative run has one
    rows_bytes = _rows(bench.spec, trace) * bench.target.cfg.vocab * 8
    return {
        "memory/target_weight_bytes": bench.target.weight_bytes(),
        "memory/draft_weight_bytes": bench.draft.weight_bytes(),
        "memory/target_cache_bytes": run.target.cache_bytes(),
        "memory/draft_cache_bytes": run.draft.cache_bytes(),
        "memory/extra_state_bytes": run.draft.extra_bytes() + rows_bytes,
    }


def _rows(job: JobSpec, trace: Trace) -> int:
    """Rows of a round beside the one that plain decoding has: q, and p after each drafted token."""
    k = max(r.drafted for r in trace.rounds)
    if job.tree is None:
        return 2 * k
    shape = tree(job.tree[:k])
    return shape.inner + shape.nodes
