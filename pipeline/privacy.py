"""What is never shown, logged or kept: the passwords in addresses."""

from __future__ import annotations

import re

MARK = "***"
_USER = r"(://[^\s:]*:)"
_MEANT = r"(?!PASSWORD@)"  # how our own sentences write an address: nobody's password
_IN_ADDRESS = re.compile(_USER + _MEANT + r".*@", re.DOTALL)
_IN_TEXT = re.compile(_USER + _MEANT + r"\S*@")
_OPTION = re.compile(
    r"([?&;,](?:[^\s=&?;]*(?:pass|pwd|secret|token|key)[^\s=&?;]*|odbc_connect)=)[^\s&;'\"]+",
    re.IGNORECASE,
)


def hide_password(address: str) -> str:
    """An address with `***` for each password in it, `postgresql://anna:***@host/runs`.

    All up to the last @ counts as one, also where it should have been escaped and was not
    (`anna:p/ss@word@host`), and so does the value of an option that is called like one
    (`?password=…`). Rather too much is hidden than too little.
    """
    return _OPTION.sub(rf"\1{MARK}", _IN_ADDRESS.sub(rf"\1{MARK}@", address))


def hide_passwords(text: str) -> str:
    """The same for addresses inside a text; there, one ends at a blank."""
    return _OPTION.sub(rf"\1{MARK}", _IN_TEXT.sub(rf"\1{MARK}@", text))


def has_password(text: str) -> bool:
    """Whether there is something to hide."""
    return hide_password(text) != text
