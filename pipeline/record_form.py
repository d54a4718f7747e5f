"""What a job's record is as JSON: whoever reads one may rely on the form of its fields. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

Fields = dict[str, Any]
_LAST_S = 2.5e11  # of all that a calendar knows: year 9892


def parsed(text: str, newest: int) -> Fields:
    """The fields of a record's JSON, each of its type. ValueError for any other text.

    `newest` is the version of the form that can be read: a newer one is told apart, its fields are
    not looked at. Fields that have a default may be missing.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not a job record: {error}") from None
    schema = data.get("schema") if isinstance(data, dict) else None
    if type(schema) is not int or schema < 1:
        raise ValueError("not a job record: it has no schema")
    if schema > newest:
        raise ValueError(
            f"this record has schema {schema}, and this version of specsweep reads up to "
            f"{newest}: update specsweep to read it"
        )
    unknown = sorted(data.keys() - _FORMS.keys())
    missing = sorted(_NEEDED - data.keys())
    if unknown or missing:
        told = [f"{name[:80]!r} is unknown" for name in unknown[:1]]
        told += [f"{name!r} is missing" for name in missing[:1]]
        raise ValueError(f"not a job record: {', and '.join(told)}")
    for name, value in data.items():
        if not _FORMS[name](value):
            raise ValueError(f"not a job record: {name!r} has another form")
    return dict(data)


_STATUSES = ("counted", "done", "failed", "killed")


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _whole(value: Any) -> bool:
    return type(value) is int


def _number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < 1e308 and math.isfinite(value)


def _time(value: Any) -> bool:
    return _number(value) and 0 <= value < _LAST_S


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int) or _number(value)


def _list(of: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(of, value))


def _by_name(of: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(map(of, value.values()))


def _point(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and _whole(value[0]) and _float(value[1])


def _float(value: Any) -> bool:
    """Whether it is finite, the record itself checks, and names the metric."""
    return type(value) in (int, float) and (isinstance(value, float) or abs(value) < 10**300)


def _params(value: Any) -> bool:
    """What a table's row is named after must be there."""
    if not _by_name(_param)(value) or not _text(value.get("draft")):
        return False
    k, most = value.get("k"), value.get("k_most", 0)
    return (_whole(k) or k == "auto") and _whole(most)


def _param(value: Any) -> bool:
    return _plain(value) or _list(_plain)(value) or _by_name(_plain)(value)


def _round(value: Any) -> bool:
    return _by_name(_plain)(value) and all(_whole(value.get(n)) for n in ("start", "emitted"))


def _timed(value: Any) -> bool:
    """As `round_log` reads it: columns of one length."""
    if value == {}:
        return True
    if not isinstance(value, Mapping) or value.keys() != {"k", "accepted", "ms"}:
        return False
    if not _list(_whole)(value["k"]) or not _list(_whole)(value["accepted"]):
        return False
    if not _list(_list(_number))(value["ms"]):
        return False
    return {len(column) for column in (value["accepted"], *value["ms"])} <= {len(value["k"])}


def _error(value: Any) -> bool:
    return value is None or (
        _by_name(_text)(value) and value.keys() == {"type", "message", "traceback"}
    )


_FORMS: dict[str, Callable[[Any], bool]] = {
    "digest": _text,
    "name": _text,
    "status": lambda value: _text(value) and value in _STATUSES,
    "overrides": _list(_text),
    "params": _params,
    "metrics": _by_name(_float),
    "series": _by_name(_list(_point)),
    "tags": _by_name(lambda value: value is None or _text(value)),
    "rounds": _list(_round),
    "pieces": _list(_by_name(_plain)),
    "timed_rounds": _timed,
    "notes": _list(_text),
    "text": _text,
    "error": _error,
    "started_s": _time,
    "finished_s": _time,
    "schema": _whole,
}
_NEEDED = {"digest", "name", "status", "overrides", "params", "schema"}
