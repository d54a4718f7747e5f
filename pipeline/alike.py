"""Which jobs can be compared: those of other drafts or lengths where all else is the same."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pipeline.records import JobRecord

Setting = dict[str, Any]


def setting(record: JobRecord, leave_out: Iterable[str] = ()) -> Setting:
    """The job's parameters without the draft's, the seed and the clock's stride."""
    apart = {"draft", "seed", "piece_tokens", *leave_out}
    params = record.params.items()
    return {k: v for k, v in params if k not in apart and not k.startswith("draft.")}


def draft(record: JobRecord) -> str:
    """A key for the job's draft and its options."""
    options = {k: v for k, v in record.params.items() if k.startswith("draft.")}
    return json.dumps([record.params["draft"], options], sort_keys=True)


def shown(key: str, keys: Iterable[str]) -> str:
    """A draft's name, and its options where another of `keys` has the same name."""
    name, options = json.loads(key)
    if sum(json.loads(other)[0] == name for other in keys) == 1:
        return str(name)
    return " ".join([name, *(f"{option}={value}" for option, value in options.items())])


def groups(
    records: Iterable[JobRecord], leave_out: Sequence[str] = ()
) -> list[tuple[Setting, dict[str, list[JobRecord]]]]:
    """Records by setting, in each by draft; both in the order in which they first occur."""
    found: dict[str, dict[str, list[JobRecord]]] = {}
    for record in records:
        key = json.dumps(setting(record, leave_out), sort_keys=True)
        found.setdefault(key, {}).setdefault(draft(record), []).append(record)
    return [(json.loads(key), drafts) for key, drafts in found.items()]


def telling(settings: Sequence[Setting]) -> set[str]:
    """The parameters that differ between settings."""
    names = {name for one in settings for name in one}
    return {name for name in names if len({str(one.get(name)) for one in settings}) > 1}


def told(one: Mapping[str, Any], names: Iterable[str]) -> dict[str, str]:
    """Those parameters of a setting, as text."""
    return {name: str(one[name]) for name in sorted(names) if name in one}
