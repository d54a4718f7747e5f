"""Which jobs have the same weights, wherever these were kept. Pure.

The parameter `target` is a folder, and two machines keep the same weights in different ones. What
the weights are is `weights.digest`, which is of the target and of the parts that the draft has: so
it is compared among the jobs of one draft only.
"""

from __future__ import annotations

import ntpath
from collections import Counter
from collections.abc import Iterable

from pipeline.records import JobRecord

_DIGITS = 4  # of a digest, where a name alone does not tell two apart
_Key = tuple[str, str]  # draft, what the weights are


class Weights:
    """Names the weights of jobs: "shipped", the folder's own name, with a digest as needed."""

    def __init__(self, records: Iterable[JobRecord]) -> None:
        self._names: dict[_Key, str] = {}
        for record in records:
            self._names.setdefault(_key(record), _folder(record))
        self._taken = Counter((draft, name) for (draft, _), name in self._names.items())
        self._of = Counter(draft for draft, _ in self._names)
        self.vary = any(weights > 1 for weights in self._of.values())

    def name(self, record: JobRecord) -> str:
        """The same for the same weights, unlike any other weights of that draft.

        "none" where there is nothing to tell: one folder's name, and this draft has one of it.
        """
        key = _key(record)
        if self._of[key[0]] == 1 and len(set(self._names.values())) == 1:
            return "none"
        name = self._names.get(key, _folder(record))
        return f"{name} ({key[1][:_DIGITS]})" if self._taken[key[0], name] > 1 else name


def _key(record: JobRecord) -> _Key:
    draft = "|".join(
        f"{name}={value}"
        for name, value in sorted(record.params.items())
        if name == "draft" or name.startswith("draft.")
    )
    return draft, record.tags.get("weights.digest") or str(record.params.get("target"))


def _folder(record: JobRecord) -> str:
    """The last part of a path of any system."""
    where = str(record.params.get("target"))
    return ntpath.basename(where.rstrip("/\\")) or where
