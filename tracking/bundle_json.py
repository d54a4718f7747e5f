"""JSON as a bundle has it: no key twice, and no number that is none."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, NoReturn


def parsed(text: bytes) -> Any:
    """What the text says. ValueError, or RecursionError where it is nested without end."""
    return json.loads(text, object_pairs_hook=_object, parse_constant=_constant)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        number = Counter(name for name, _ in pairs)
        twice = next(name for name in number if number[name] > 1)
        raise ValueError(f"the key {twice[:80]!r} is there twice")
    return found


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")
