"""What a sweep will do: its jobs, each with the hash that names it and the command for it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from pipeline import anonymous, config
from pipeline.compose import Composed
from pipeline.idle import IdlePlan
from pipeline.privacy import has_password, hide_password
from pipeline.records import JobRecord
from pipeline.spec import JobSpec

SCHEMA = 1


class Jobs(Protocol):
    """What a sweep asks of `pipeline.job`."""

    def check(self, job: JobSpec, /) -> None: ...
    def digest(self, job: JobSpec, /) -> str: ...
    def count(self, job: JobSpec, /) -> JobRecord: ...
    def clock(self, job: JobSpec, counted: JobRecord, null: dict[str, float], /) -> JobRecord: ...
    def null(self, job: JobSpec, /) -> dict[str, float]: ...
    def recheck(self, job: JobSpec, /) -> float: ...
    def estimate_s(self, jobs: Sequence[JobSpec], /) -> tuple[float, float]: ...


@dataclass(frozen=True)
class Job:
    spec: JobSpec
    digest: str
    name: str
    overrides: tuple[str, ...]

    @property
    def command(self) -> str:
        """Runs this very job again."""
        return command(self.overrides)

    @property
    def axes(self) -> dict[str, Any]:
        """What a reader tells jobs apart by."""
        keys = ("draft", "seed", "verify", "proposal")
        return {"k": self.spec.length, **{key: getattr(self.spec, key) for key in keys}}


@dataclass(frozen=True)
class Plan:
    """The jobs of a sweep, no two the same. `tracking` is what builds the recorder."""

    command: str
    created_s: float
    workers: int
    tracking: dict[str, Any]
    jobs: tuple[Job, ...]
    idle: IdlePlan = IdlePlan()
    tags: Mapping[str, str] = field(default_factory=dict)  # of the machine and code it began with

    def to_dict(self) -> dict[str, Any]:
        jobs = [
            {"name": job.name, "digest": job.digest, "overrides": list(job.overrides)}
            | {"spec": self._hidden(job.spec.to_dict())}
            for job in self.jobs
        ]
        return {
            "schema": SCHEMA,
            "command": self.command,
            "created_s": self.created_s,
            "workers": self.workers,
            "tracking": self._hidden(_without_password(self.tracking)),
            "idle": asdict(self.idle),
            "tags": dict(self.tags),
            "jobs": jobs,
        }

    @property
    def is_anonymous(self) -> bool:
        """Whether nothing that is kept may tell who measured."""
        return self.tracking.get("anonymous") is True

    def _hidden(self, values: dict[str, Any]) -> dict[str, Any]:
        return anonymous.hidden(values) if self.is_anonymous else values

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Plan:
        """ValueError for what is no plan, or one of a newer version."""
        schema = data.get("schema", 0)
        if not isinstance(schema, int):
            raise ValueError(f"the plan of this sweep cannot be read: its schema is {schema!r}")
        if schema > SCHEMA:
            raise ValueError("this sweep was begun by a newer specsweep: update to go on with it")
        try:
            tracking = dict(data["tracking"])
            specs = [job["spec"] for job in data["jobs"]]
            if tracking.get("anonymous") is True:
                tracking, specs = anonymous.restored(tracking), anonymous.restored(specs)
            jobs = tuple(
                Job(
                    JobSpec.from_dict(spec),
                    job["digest"],
                    job["name"],
                    tuple(job["overrides"]),
                )
                for job, spec in zip(data["jobs"], specs, strict=True)
            )
            return cls(
                command=data["command"],
                created_s=data["created_s"],
                workers=data["workers"],
                tracking=tracking,
                jobs=jobs,
                idle=IdlePlan(**data.get("idle", {})),
                tags=dict(data.get("tags", {})),
            )
        except (KeyError, TypeError) as error:
            told = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise ValueError(f"the plan of this sweep cannot be read: {told}") from error

    def with_digests_of(self, jobs: Jobs) -> Plan:
        """The same jobs as the code and weights of now would run them."""
        return replace(
            self, jobs=tuple(replace(job, digest=jobs.digest(job.spec)) for job in self.jobs)
        )


def make_plan(
    composed: Sequence[Composed], arguments: Sequence[str], jobs: Jobs, cores: int
) -> Plan:
    """The plan of a command line. ValueError, one sentence, for the first job that cannot be."""
    found: dict[str, Job] = {}
    for one in composed:
        spec = config.to_spec(one.config)
        jobs.check(spec)
        digest = jobs.digest(spec)
        found.setdefault(digest, Job(spec, digest, spec.name, _ordered(one.overrides)))
    once = _one_for_all(composed)
    told = arguments
    if dict(once["tracking"] or {}).get("anonymous") is True:
        told = [anonymous.hidden_override(text) for text in arguments]
        found = {key: _anonymous(job) for key, job in found.items()}
    return Plan(
        command=command(told),
        created_s=time.time(),
        workers=min(config.workers(once["n_jobs"], cores), len(found)),
        tracking=dict(once["tracking"] or {}),
        jobs=tuple(_told_apart(list(found.values()))),
        idle=IdlePlan.of(once["timing"]),
    )


def _anonymous(job: Job) -> Job:
    overrides = tuple(anonymous.hidden_override(text) for text in job.overrides)
    return replace(job, overrides=overrides)


def _one_for_all(composed: Sequence[Composed]) -> dict[str, Any]:
    """The values that are a whole sweep's. ValueError for one that differs between its jobs."""

    def value(one: Composed, key: str) -> Any:
        group, _, own = key.rpartition(".")
        return (one.config[group] if group else one.config).get(own)

    timing = [f"timing.{key}" for key in config.SWEEP_TIMING_KEYS]
    for key in (*config.SWEEP_KEYS, *timing):
        if any(value(one, key) != value(composed[0], key) for one in composed):
            raise ValueError(f"{key} is one for a whole sweep: give it one value")
    return composed[0].config


def command(arguments: Sequence[str]) -> str:
    """A command line that a shell of this system reads back as it was; passwords are left out."""
    shown = [text for text in arguments if not has_password(text)]
    words = [this_python(), "-m", "pipeline.sweep", *shown]
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)


def this_python() -> str:
    """This Python as a reader in this folder calls it: the project's own needs no activation."""
    with suppress(ValueError):
        return Path(sys.executable).relative_to(Path.cwd()).as_posix()
    return "python"


def _without_password(tracking: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as they may lie in a file."""
    return {k: hide_password(v) if isinstance(v, str) else v for k, v in tracking.items()}


def git_tags(folder: Path) -> dict[str, str]:
    """`git.commit` and `git.dirty` of a checkout; empty where there is none, or no git."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else ""

    try:
        commit = git("rev-parse", "HEAD")
        changed = git("status", "--porcelain", "--untracked-files=no")
    except OSError:
        return {}
    return {"git.commit": commit, "git.dirty": str(bool(changed)).lower()} if commit else {}


def _ordered(overrides: Sequence[str]) -> tuple[str, ...]:
    """What names the job first; what is the sweep's own is left out."""
    first = {"draft": 0, "k": 1, "seed": 2}
    kept = [
        text
        for text in overrides
        if text.partition("=")[0] not in ("n_jobs", "dry_run") and not has_password(text)
    ]
    return tuple(sorted(kept, key=lambda text: first.get(text.partition("=")[0], len(first))))


def _told_apart(jobs: list[Job]) -> Iterator[Job]:
    """Jobs whose specs give them one name get what differs between them added to it."""
    seen = Counter(job.name for job in jobs)
    for job in jobs:
        if seen[job.name] == 1:
            yield job
            continue
        namesakes = [_flat(other.spec) for other in jobs if other.name == job.name]
        own = _flat(job.spec)
        differing = [key for key in own if len({repr(other.get(key)) for other in namesakes}) > 1]
        extra = "".join(f" {key}={own[key]}" for key in differing)
        yield replace(job, name=job.name + extra)


def _flat(spec: JobSpec) -> dict[str, Any]:
    values = spec.to_dict()
    return {**values.pop("draft_options"), **values}
