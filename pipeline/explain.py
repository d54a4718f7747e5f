"""Hydra's refusals in one sentence each: the thing that is wrong, and how to put it right."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig, OmegaConf

CONF = Path(__file__).resolve().parent.parent / "conf"
_KINDS = {"Integer": "a whole number", "Float": "a number", "Boolean": "true or false"}


def explain(error: BaseException, arguments: Sequence[str]) -> str:
    """What `error`, raised while Hydra composed `arguments`, means for the one who typed them."""
    texts = [str(link) for link in _chain(error)]
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        return _unknown_option(error)
    if isinstance(error, OverrideParseException):
        typed = str(error.override).replace("\n", "\\n")
        return (
            f"{typed} cannot be read: write KEY=VALUE, and put a value with blanks or "
            "signs in it into quotes, twice: 'prompt=\"To be, \"'"
        )
    if found := re.search(r"Could not override '(.+?)'", texts[0]):
        return _unknown_key(found[1], arguments)
    if found := re.search(r"Key '(.+?)' (?:is not in struct|not in )", " ".join(texts)):
        if full := re.search(r"full_key: (\S+)", " ".join(texts)):
            return _unknown_key(full[1], arguments)
        return _unknown_key(found[1], arguments)
    if found := re.search(r"Error merging override (.+)", texts[0]):
        return _wrong_value(found[1], texts[1:])
    if found := re.search(r"Override (\S+) looks like a config group", texts[0]):
        return _unknown_key(found[1].partition("=")[0], arguments)
    if "Config group override must be" in texts[0]:
        empty = [text for text in arguments if text.partition("=")[0] in _groups() and _none(text)]
        return f"{', '.join(empty)}: name one of its options, or leave it out"
    first = [text.strip().splitlines()[0] for text in texts if text.strip()]
    return ": ".join(dict.fromkeys(line.rstrip(".") for line in first)) or type(error).__name__


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _unknown_option(error: MissingConfigException) -> str:
    group, _, name = (error.missing_cfg_file or "").rpartition("/")
    options = [str(option) for option in error.options or ()]
    if not group:
        return f"there is no configuration named {name}"
    return (
        f"{group}={name} is not known: {group} is one of {', '.join(options)}{_near(name, options)}"
    )


def _unknown_key(key: str, arguments: Sequence[str]) -> str:
    parent, _, name = key.rpartition(".")
    keys = list(_keys(_plain_config(arguments)))
    beside = [known for known in keys if known.rpartition(".")[0] == parent]
    leaves = {known.rpartition(".")[2]: known for known in (*keys, *beside)}
    if close := difflib.get_close_matches(name, leaves, n=1, cutoff=0.6):
        return f"there is no key {key}; did you mean {leaves[close[0]]}?"
    there = ", ".join(beside or (known for known in keys if "." not in known))
    return f"there is no key {key}: there are {there}"


def _wrong_value(line: str, causes: list[str]) -> str:
    key, _, value = line.partition("=")
    told = re.search(r"could not be converted to (\w+)", " ".join(causes))
    if told and told[1] in _KINDS:
        return f"{key}={value}: {key} must be {_KINDS[told[1]]}"
    if value in ("null", "None", ""):
        return f"{key}={value}: {key} must have a value"
    cause = causes[0].strip().splitlines()[0] if causes else "it does not fit"
    return f"{key}={value}: {cause}"


def _near(word: str, known: list[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""


def _groups() -> set[str]:
    """The groups of settings: the folders of conf/."""
    return {path.name for path in CONF.iterdir() if path.is_dir()}


def _none(override: str) -> bool:
    return override.partition("=")[2] in ("null", "")


def _plain_config(arguments: Sequence[str]) -> DictConfig:
    """The config with the groups that were chosen, and nothing else set; empty where that fails."""
    chosen = [text for text in arguments if text.partition("=")[0] in _groups() and "," not in text]
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(CONF), version_base="1.3"):
        try:
            return compose("config", chosen)
        except HydraException:
            return OmegaConf.create()


def _keys(config: Any, prefix: str = "") -> Iterator[str]:
    for key in config:
        name = f"{prefix}{key}"
        yield name
        child = config._get_node(key)
        if isinstance(child, DictConfig):
            yield from _keys(child, f"{name}.")
