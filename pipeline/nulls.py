"""The baseline against itself, measured once for each kind of baseline that a sweep has. Pure."""

from __future__ import annotations

import hashlib
import json
import statistics
from collections.abc import Mapping, Sequence

from pipeline.spec import JobSpec, code_digest

Null = dict[str, float]
MEDIAN, LOW, HIGH = "null/ratio_median", "null/ratio_min", "null/ratio_max"
_BASELINE = (
    "weights compile prompt tokens eos temperature top_k top_p timing pairs piece_tokens threads"
).split()
"""What plain decoding and its clock depend on. Draft, k and rule are not among them."""


def kind(spec: JobSpec) -> str:
    """A short hash, equal for jobs that one null serves. Not the seed's: noise is the machine's."""
    settings = {name: getattr(spec, name) for name in _BASELINE}
    if spec.timing == "adaptive":  # whose null has as many pairs as the fixed one
        settings["timing"] = "pairs"
    settings["code"] = code_digest()
    return hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:12]


def together(nulls: Sequence[Mapping[str, float]]) -> Null:
    """Of the whole sweep: the widest range, and the median of the medians. Empty for none."""
    if not nulls:
        return {}
    return {
        MEDIAN: statistics.median(null[MEDIAN] for null in nulls),
        LOW: min(null[LOW] for null in nulls),
        HIGH: max(null[HIGH] for null in nulls),
    }
