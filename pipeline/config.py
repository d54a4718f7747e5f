"""The typed root of the configuration, and the step from it to the jobs' own plain values.

Hydra checks every composed config against `Root`: a key that is not here, or a value of another
type, is refused. `conf/` holds the values; what they mean is said there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING

from pipeline import timing as timings
from pipeline.spec import MOST, THRESHOLD, JobSpec

AUTO = "auto"


@dataclass
class SamplingConfig:
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0


@dataclass
class TargetConfig:
    weights: str = "shipped"
    compile: bool = False


@dataclass
class TimingConfig:
    mode: str = "pairs"
    pairs: int = 6
    piece_tokens: int | None = None
    threads: int = 1
    most_pairs: int = 30
    half_width: float = 0.02
    limit_s: float = 60.0
    wait_for_idle: float = 0.0
    idle_below: float = 0.1


@dataclass
class AutoConfig:
    """What k=auto means."""

    threshold: float = THRESHOLD
    most: int = MOST


@dataclass
class Root:
    """`draft` and `tracking` are as their files have them: each draft has options of its own."""

    draft: Any = MISSING
    k: Any = 4  # a whole number, or "auto"
    k_auto: AutoConfig = field(default_factory=AutoConfig)
    seed: int = 0
    tokens: int = 200
    prompt: str = MISSING
    eos: str | None = None
    verify: str = "token"
    proposal: str = "chain"
    tree: list[int] = field(default_factory=lambda: [3, 2, 1])
    draws: int = 20_000
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    target: TargetConfig = field(default_factory=TargetConfig)
    timing: TimingConfig = field(default_factory=TimingConfig)
    tracking: Any = MISSING
    n_jobs: int | None = None
    dry_run: bool = False


SWEEP_KEYS = ("tracking", "n_jobs", "dry_run")
"""What is one for the whole sweep; every other key belongs to a job."""
SWEEP_TIMING_KEYS = ("wait_for_idle", "idle_below")
"""Of the timing group too: they change no job, only when it is timed."""


ROOT_KEYS = tuple(field.name for field in fields(Root))


def register() -> None:
    """Make the schema known to Hydra, under the name that conf/config.yaml asks for."""
    ConfigStore.instance().store(name="schema", node=Root)


def to_spec(config: Mapping[str, Any]) -> JobSpec:
    """The job of one resolved config, validated. ValueError, one sentence, for what cannot be."""
    if lacking := [key for key in ROOT_KEYS if key not in config]:
        raise ValueError(
            f"the configuration has no {lacking[0]}: leave the one of conf/config.yaml in"
        )
    _check_keys(config)
    draft, timing = dict(config["draft"]), config["timing"]
    target = dict(config["target"])
    if target["weights"] != "shipped":  # a folder, wherever the job will be run or run again
        target["weights"] = str(Path(target["weights"]).expanduser().resolve())
    if timing["mode"] == "skip":  # only what is timed is compiled
        target["compile"] = False
    spec = JobSpec(
        **_length(config),
        draft=str(draft.pop("name")),
        draft_options=draft,
        timing=timing["mode"],
        **{key: timing[key] for key in timings.MEANT.get(timing["mode"], ())},
        **config["sampling"],
        **target,
        **{key: config[key] for key in ("seed", "tokens", "prompt", "eos", "draws")},
        **{key: config[key] for key in ("verify", "proposal")},
    )
    spec.validate()
    if spec.k_auto is None and spec.k > spec.tokens:
        raise ValueError(
            f"k={spec.k}: give a k of up to tokens={spec.tokens}, no round can draft more"
        )
    return spec


def _length(config: Mapping[str, Any]) -> dict[str, Any]:
    """How much a round drafts, as the job's own fields say it. ValueError for a k that is none."""
    k, auto, tree = config["k"], config["k_auto"], config["proposal"] == "tree"
    if k == AUTO:
        if tree:
            raise ValueError("k=auto is for proposal=chain: a tree has its depth in `tree`")
        return {"k": auto["most"], "k_auto": float(auto["threshold"])}
    if isinstance(k, str) and k.isdecimal():  # as a grid in a file may have it
        k = int(k)
    if isinstance(k, bool) or not isinstance(k, int):
        given = "null" if k is None else k
        raise ValueError(f"k={given}: k must be a whole number, 0 or more, or auto")
    if tree:  # no deeper than there are widths, nor than k
        widths = tuple(config["tree"][:k]) if k > 0 else ()
        return {"k": len(widths) if k > 0 else k, "tree": widths}
    return {"k": k}


def _check_keys(config: Mapping[str, Any]) -> None:
    """Hydra lets +KEY=VALUE add what nothing reads."""
    groups = {
        "": Root,
        "k_auto": AutoConfig,
        "sampling": SamplingConfig,
        "target": TargetConfig,
        "timing": TimingConfig,
    }
    for group, schema in groups.items():
        known = [entry.name for entry in fields(schema)]
        for key in config[group] if group else config:
            if key not in known:
                name = f"{group}.{key}" if group else key
                raise ValueError(f"there is no key {name}: the keys are {', '.join(known)}")


def warnings_for(spec: JobSpec) -> list[str]:
    """What is allowed and yet not what one would choose."""
    found = []
    if odd := timings.odd(spec.timing, spec.to_dict()):
        count = getattr(spec, odd)
        found.append(
            f"timing.{odd}={count} is odd: the orders AB and BA are not balanced, "
            f"{count + 1} would be"
        )
    if spec.k_auto is not None and spec.temperature == 0:
        found.append(
            "k=auto with greedy sampling: every draft is sure of itself then, so that each round "
            f"drafts k_auto.most={spec.k}"
        )
    if spec.compile and spec.timing != "skip":
        found.append(
            "target.compile=true: torch compiles for some 20 s for each new length of pass, the "
            "first time on this machine, before the clocks of a job"
        )
    return found


def crowded(workers: int, cores: int) -> list[str]:
    """A warning where far more workers than cores would count side by side."""
    if workers <= 2 * cores:
        return []
    return [f"{workers} workers on {cores} cores: more than cores are no faster, n_jobs=-1 is all"]


def workers(n_jobs: int | None, cores: int) -> int:
    """How many workers count side by side. ValueError for 0; -1 is every core, -2 all but one."""
    if n_jobs == 0:
        raise ValueError("n_jobs=0: give 1 or more workers, or -1 for one a core")
    if n_jobs is None:
        return cores
    return n_jobs if n_jobs > 0 else max(cores + 1 + n_jobs, 1)
