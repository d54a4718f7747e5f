"""What tracking.anonymous=true hides of the one who measures: home, user and host in any text.

Commands stay such that they run again: `~` is the home of whoever types them, and the plan of a
sweep, which only its own machine goes on with, is read back with the home put in again.
"""

from __future__ import annotations

import getpass
import platform
import re
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar

from pipeline.records import JobError, JobRecord

T = TypeVar("T")
_SHORTEST = 2  # a user or host of one letter hides nothing, and would be found everywhere


def hidden(value: T) -> T:
    """`value` with every text in it, however deep, hidden."""
    return _in_texts(value, _hide)


def restored(value: T) -> T:
    """`value` with the home of the one who runs this in the place of `~`."""
    home = str(Path.home())
    return _in_texts(value, lambda text: re.sub(r"~(?=[/\\]|$)", lambda _: home, text))


def hidden_override(override: str) -> str:
    """A setting as Hydra reads it: a value that begins with `~` must be quoted there."""
    key, equals, value = _hide(override).partition("=")
    values = [f"'{one}'" if one.startswith("~") else one for one in value.split(",")]
    return key + equals + ",".join(values)


def hidden_record(record: JobRecord) -> JobRecord:
    """A job's record; its text and figures tell nothing of anyone."""
    error = record.error and JobError(**hidden(asdict(record.error)))
    return replace(
        record,
        name=hidden(record.name),
        overrides=tuple(hidden_override(text) for text in record.overrides),
        params=hidden(record.params),
        tags=hidden(record.tags),
        notes=hidden(record.notes),
        error=error,
    )


def _in_texts(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: _in_texts(part, change) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_in_texts(part, change) for part in value)
    return value


def _hide(text: str) -> str:
    """Home folders become `~`, the user's name in other paths USER, the host in addresses HOST."""
    for home in sorted({str(Path.home()), str(Path.home().resolve())}, key=len, reverse=True):
        if len(Path(home).parts) > 1:
            text = re.sub(re.escape(home) + r"(?=[/\\'\":,;\s\])]|$)", "~", text)
    if user := _known(_user()):
        text = re.sub(rf"(?<=[/\\]){re.escape(user)}(?=[/\\'\"]|$)", "USER", text)
    if host := _known(platform.node()):
        text = re.sub(rf"(?<=[/@]){re.escape(host)}(?=[/:.'\"\s]|$)", "HOST", text, flags=re.I)
    return text


def _known(name: str) -> str:
    return name if len(name) >= _SHORTEST else ""


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a system that has no name for its user
        return ""
