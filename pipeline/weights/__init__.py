"""The shipped weights, and reading and writing folders like it.

`load_target(where)`, `load_small(where, vocabulary)`, `load_table(where, kind, vocabulary)` and
`load_heads(where)` take `"shipped"` or a folder made by `python -m pipeline.train`; each raises
ValueError in one sentence.
"""

from pipeline.weights.heads import load_heads, save_heads
from pipeline.weights.models import load_small, load_target, save_model
from pipeline.weights.ngram import NgramTable, load_table, save_table
from pipeline.weights.store import SHIPPED, digest, read_card

__all__ = [
    "SHIPPED",
    "NgramTable",
    "digest",
    "load_heads",
    "load_small",
    "load_table",
    "load_target",
    "read_card",
    "save_heads",
    "save_model",
    "save_table",
]
