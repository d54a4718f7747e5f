"""Hydra's part: from a command line to the plain, resolved jobs it means, before anything runs.

Hydra's own sweeper and launcher call a function that only collects. Composing costs about 0.06 s a
job, twice; so the sweep's plain values (k, seed, ...) are taken out of its hands, one config is
composed for each choice of groups, and the values are set on copies of it.
"""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import ConfigCompositionException
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf, open_dict, read_write
from omegaconf.errors import OmegaConfBaseException

from pipeline import config as schema
from pipeline.explain import explain

ROOT = Path(__file__).resolve().parent.parent
CONF = ROOT / "conf"
# Hydra's flags that choose what it does; one of them at a time
_CHOICES = frozenset(
    "--help -h --hydra-help --version --cfg -c --info -i --shell-completion -sc --multirun -m "
    "--run -r".split()
)


@dataclass(frozen=True)
class Composed:
    """One job as the command line means it, and the overrides that compose it alone."""

    config: dict[str, Any]
    overrides: tuple[str, ...]


@dataclass
class _Collector:
    """What Hydra's callbacks leave behind for the one that started it."""

    configs: list[tuple[DictConfig, tuple[str, ...]]]
    axes: dict[str, list[str]]  # key -> overrides "key=value"


_found = _Collector([], {})


class ValueAxes(Callback):
    """Takes sweeps over plain values off the grid that Hydra composes, and keeps them."""

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        params = config.hydra.sweeper.params or {}
        lines = [f"{key}={value}" for key, value in params.items()]
        lines += list(config.hydra.overrides.task)
        kept: dict[str, str] = {}
        axes: dict[str, list[str]] = {}
        for line, override in zip(lines, _parse(lines), strict=True):
            key = override.get_key_element()
            kept.pop(key, None)  # of two that name one key the later counts
            axes.pop(key, None)
            if override.is_discrete_sweep() and _is_plain(config, key):
                axes[key] = [f"{key}={value}" for value in override.sweep_string_iterator()]
            else:
                kept[key] = line
        with read_write(config), open_dict(config):
            config.hydra.sweeper.params = None
            config.hydra.overrides.task = list(kept.values())
        _found.axes = axes


@hydra.main(config_path=str(CONF), config_name="config", version_base="1.3")
def _collect(config: DictConfig) -> None:
    _found.configs.append((config, tuple(HydraConfig.get().overrides.task)))


def compose(arguments: Sequence[str]) -> list[Composed]:
    """The jobs of a command line such as `["draft=int8", "k=1,2"]`, in the order of its grid.

    ValueError, one sentence, for anything that Hydra refuses. SystemExit after a flag that shows
    something instead, such as `--help` or `--cfg job`.
    """
    schema.register()
    line = list(arguments)
    if not any(argument.partition("=")[0] in _CHOICES for argument in line):
        line.append("--multirun")  # said aloud, Hydra also says what is wrong with a grid
    _found.configs, _found.axes = [], {}
    with tempfile.TemporaryDirectory() as scratch, _hydra_process(line) as wants_traceback:
        OmegaConf.register_new_resolver("scratch", lambda: scratch, replace=True)
        try:
            _collect()
            jobs = list(_expand())
        except Exception as error:
            if wants_traceback:
                raise
            raise ValueError(explain(error, arguments)) from error
    if not jobs:
        if "--multirun" in line:
            raise ValueError("the grid is empty: a setting such as k=range(0,0) names no value")
        raise SystemExit(0)
    return jobs


def is_asked(arguments: Sequence[str]) -> bool:
    """Whether help is asked for, by a command that has a text of its own for it."""
    return not {"-h", "--help"}.isdisjoint(arguments)


def _expand() -> Iterator[Composed]:
    """Every composed config with every combination of the plain values."""
    for config, overrides in _found.configs:
        for values in itertools.product(*_found.axes.values()):
            job = deepcopy(config)
            for override in _parse(values):
                try:
                    OmegaConf.update(job, override.get_key_element(), override.value())
                except OmegaConfBaseException as error:
                    line = override.input_line
                    raise ConfigCompositionException(f"Error merging override {line}") from error
            plain = OmegaConf.to_container(job, resolve=True, throw_on_missing=True)
            assert isinstance(plain, dict)
            yield Composed({str(key): value for key, value in plain.items()}, overrides + values)


def _parse(lines: Sequence[str]) -> list[Override]:
    loader = GlobalHydra.instance().config_loader() if GlobalHydra().is_initialized() else None
    return OverridesParser.create(loader).parse_overrides(list(lines))


def _is_plain(config: DictConfig, key: str) -> bool:
    """Whether `key` is one value of the config, and so no group and not new."""
    if key in config.hydra.runtime.choices:
        return False
    missing = object()
    found = OmegaConf.select(config, key, default=missing)
    return found is not missing and not OmegaConf.is_config(found)


@contextmanager
def _hydra_process(arguments: Sequence[str]) -> Iterator[bool]:
    """Hydra reads `sys.argv`, and hands exceptions on only when asked by the environment.

    Gives whether the user wants them whole.
    """
    argv, asked = sys.argv, os.environ.get("HYDRA_FULL_ERROR")
    sys.argv = ["pipeline.sweep", *arguments]
    os.environ["HYDRA_FULL_ERROR"] = "1"
    try:
        yield asked == "1"
    finally:
        sys.argv = argv
        if asked is None:
            del os.environ["HYDRA_FULL_ERROR"]
        else:
            os.environ["HYDRA_FULL_ERROR"] = asked
