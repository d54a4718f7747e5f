"""Parameters and tags in requests that a server takes."""

from __future__ import annotations

from collections.abc import Mapping

from tracking.bundle_row import MOST_NAMES

_MOST_CHARACTERS = 100_000  # six bytes each at worst, and servers take 1 MB


def portions(texts: Mapping[str, str]) -> list[dict[str, str]]:
    """Texts by name, in as many requests as their number and length take; one at least."""
    found: list[dict[str, str]] = [{}]
    left = _MOST_CHARACTERS
    for name, text in texts.items():
        left -= len(text)
        if left < 0 or len(found[-1]) == MOST_NAMES:
            found.append({})
            left = _MOST_CHARACTERS - len(text)
        found[-1][name] = text
    return found
