"""Sweeps of several machines, or of one under several loads, side by side.

`compare` is pure: records in, comparison out. Counts must agree, timings need not, and nothing is
pooled across machines or states of load. Around it: `choose` and `read` take sweeps from a store,
`terminal`, `page` and `data` show what came out, `log` keeps it in MLflow.
"""

from tracking.compare.comparison import Comparison, NothingToCompare, compare
from tracking.compare.sweeps import Sweep

__all__ = ["Comparison", "NothingToCompare", "Sweep", "compare"]
