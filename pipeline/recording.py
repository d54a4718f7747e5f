"""Builds the recorder that conf/tracking names, after its settings were looked at."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from hydra.errors import HydraException
from hydra.utils import instantiate

from pipeline.journal import Recorder
from pipeline.privacy import MARK

OURS = "tracking.recorder.Recorder"
_LONGEST_NAME = 100
_CALLS = (
    "check machine open_sweep start_job log_job amend_job close_sweep meter report ui_command"
).split()


def build_recorder(tracking: Mapping[str, Any], root: Path) -> Recorder:
    """The recorder, its address checked. ValueError, one sentence, for settings of no use."""
    settings = {**tracking, "uri": _uri(tracking), "machine": _machine(tracking)}
    settings["anonymous"] = _anonymous(tracking)
    target = tracking.get("_target_")
    _check_target(target)
    try:
        recorder = cast(Recorder, instantiate(settings, root=str(root)))
    except (HydraException, TypeError) as error:
        reason = str(error.__cause__ or error).splitlines()[-1]
        raise ValueError(
            f"tracking: {target} takes no such settings ({reason}): use those of "
            "conf/tracking/mlflow.yaml, uri, machine and anonymous"
        ) from error
    recorder.check()
    return recorder


def _uri(tracking: Mapping[str, Any]) -> str | None:
    uri = tracking.get("uri")
    if isinstance(uri, str) and MARK in uri:  # read from a sweep's plan
        if os.environ.get("MLFLOW_TRACKING_URI", "").strip():
            return None
        raise ValueError(
            f"tracking.uri={uri}: the password is kept nowhere; give the whole address once more, "
            "in the environment variable MLFLOW_TRACKING_URI"
        )
    if uri is None or isinstance(uri, str):
        return uri
    raise ValueError(
        f"tracking.uri={uri}: give an address, sqlite:///PATH/mlflow.db or http://HOST:PORT, or "
        "null for the project's own store"
    )


def _machine(tracking: Mapping[str, Any]) -> str | None:
    """A name may look like a number: `tracking.machine=7`."""
    name = tracking.get("machine")
    if name is None:
        return None
    text = str(name).strip()
    if isinstance(name, str | int | float) and not isinstance(name, bool) and text:
        if len(text) <= _LONGEST_NAME and text.isprintable():
            return text
    raise ValueError(
        f"tracking.machine={name!r}: give a name of at most {_LONGEST_NAME} characters in one "
        "line, or null for the host's name"
    )


def _anonymous(tracking: Mapping[str, Any]) -> bool:
    value = tracking.get("anonymous", False)
    if isinstance(value, bool):
        return value
    raise ValueError(
        f"tracking.anonymous={value}: give true, to hide the host's name, or false, to keep it"
    )


def _check_target(target: Any) -> None:
    """A recorder has calls of its own; anything else is not even called."""
    refused = f"tracking._target_={target}: this is no recorder; leave it at {OURS}"
    try:
        module, _, name = str(target).rpartition(".")
        found = getattr(importlib.import_module(module), name)
    except Exception as error:  # importing it runs code of others, which raises what it likes
        raise ValueError(refused) from error
    if not all(hasattr(found, name) for name in _CALLS):
        raise ValueError(refused)
