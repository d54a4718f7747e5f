"""Text of unknown origin, on its way to a terminal."""

from __future__ import annotations

import unicodedata

_UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}  # they move the cursor, turn the line round, or break it
_JOINERS = "\u200c\u200d"  # within words and emoji


def printable(text: object) -> str:
    """`text` on one line, with `\\x1b` and the like in place of what a terminal would obey."""
    return "".join(_escaped(c) if _obeyed(c) else c for c in str(text))


def is_printable(text: str) -> bool:
    """Whether a terminal only shows `text`."""
    return not any(map(_obeyed, text))


def _obeyed(character: str) -> bool:
    return unicodedata.category(character) in _UNSEEN and character not in _JOINERS


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode()
