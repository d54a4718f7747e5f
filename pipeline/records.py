"""What a job says of itself: frozen records, the only words that `pipeline` and `tracking` share.

Counts (exact, equal on every machine) and clocks (ranges, this machine's) stand in one record but
never in one field: metric names carry their side, see `tracking.names`.
"""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass, field
from typing import Any, Literal

from pipeline.record_form import parsed

SCHEMA = 2
"""Version of the record's form: 2 added `timed_rounds`. A reader takes an older one, and refuses a
newer one by name."""

Status = Literal["counted", "done", "failed", "killed"]
Side = Literal["baseline", "speculative"]


@dataclass(frozen=True, slots=True)
class Round:
    """One target pass: `drafted` tokens were checked, `accepted` of them kept, `emitted` appended.

    `emitted` is `accepted + 1` except where the text ended inside the round. `start` is how many
    tokens had been emitted before the round. Where a tree was drafted, `drafted` is its depth, the
    most that can be accepted, and `nodes` how many tokens it had; for a chain `nodes` is 0.
    """

    start: int
    drafted: int
    accepted: int
    emitted: tuple[int, ...]
    nodes: int = 0


@dataclass(frozen=True, slots=True)
class Trace:
    """A whole decode: its rounds, and what the decisions say about their own safety.

    `alpha` holds Σₓ min(p, q) of every tested position, `margins` the smallest distance of any
    uniform to a threshold it was compared with, round by round, and `margin_min` that of them all.
    """

    rounds: tuple[Round, ...]
    alpha: tuple[float, ...] = ()
    margin_min: float = 1.0
    margins: tuple[float, ...] = ()

    @property
    def tokens(self) -> tuple[int, ...]:
        return tuple(token for round_ in self.rounds for token in round_.emitted)


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of one decode between two clock readings."""

    side: Side
    index: int  # which stretch of the text
    wall_ns: int
    cpu_ns: int  # of this process, all threads
    rounds: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Pair:
    """One observation: both sides decoded the same job, piece by piece in turn."""

    index: int
    order: Literal["AB", "BA"]  # A is the baseline
    pieces: tuple[Piece, ...]

    def wall_ns(self, side: Side) -> int:
        return sum(piece.wall_ns for piece in self.pieces if piece.side == side)

    def cpu_ns(self, side: Side) -> int:
        return sum(piece.cpu_ns for piece in self.pieces if piece.side == side)

    @property
    def ratio(self) -> float:
        """Baseline time over speculative time: above 1, speculation was faster."""
        return self.wall_ns("baseline") / self.wall_ns("speculative")


@dataclass(frozen=True)
class JobError:
    type: str
    message: str
    traceback: str


@dataclass(frozen=True)
class JobRecord:
    """Everything one job found. Metrics are named as in `tracking.names` and always finite."""

    digest: str  # job.digest: hash of all that can change the figures
    name: str  # "int8 k=8 seed=0"
    status: Status
    overrides: tuple[str, ...]  # runs this very job again: `python -m pipeline.sweep OVERRIDES`
    params: dict[str, Any]
    metrics: dict[str, float] = field(default_factory=dict)
    series: dict[str, list[tuple[int, float]]] = field(default_factory=dict)  # (step, value)
    tags: dict[str, str] = field(default_factory=dict)
    rounds: list[dict[str, Any]] = field(default_factory=list)  # tidy: one row a round
    pieces: list[dict[str, Any]] = field(default_factory=list)  # tidy: one row a timed piece
    timed_rounds: dict[str, list[Any]] = field(default_factory=dict)  # see round_log()
    notes: tuple[str, ...] = ()  # sentences a reader should see (flags, warnings)
    text: str = ""  # what was emitted
    error: JobError | None = None
    started_s: float = 0.0  # Unix time, UTC
    finished_s: float = 0.0
    schema: int = SCHEMA

    def __post_init__(self) -> None:
        values = [(name, value) for name, value in self.metrics.items()]
        values += [(name, value) for name, points in self.series.items() for _, value in points]
        for name, value in values:
            if not math.isfinite(value):
                raise ValueError(f"{self.name}: metric {name} is {value}; leave it out instead")

    def round_log(self) -> list[dict[str, Any]]:
        """Every timed round of the speculative side, pair by pair: `pair`, `k`, `accepted`, `ms`.

        `timed_rounds` holds them in columns: `k` and `accepted` of each round, the same in every
        pair, and `ms` with a list of times for each pair.
        """
        if not self.timed_rounds:
            return []
        rounds = list(zip(self.timed_rounds["k"], self.timed_rounds["accepted"], strict=True))
        return [
            {"pair": pair, "k": k, "accepted": accepted, "ms": ms}
            for pair, times in enumerate(self.timed_rounds["ms"])
            for (k, accepted), ms in zip(rounds, times, strict=True)
        ]

    def round_lines(self) -> str:
        """`round_log` as JSON lines: what `python -m pipeline.summary` reads."""
        return "".join(json.dumps(row) + "\n" for row in self.round_log())

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), allow_nan=False, indent=1, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> JobRecord:
        """ValueError for text that is no record, whatever is wrong with it, or a newer schema's."""
        data = parsed(text, SCHEMA)
        data["error"] = JobError(**data["error"]) if data.get("error") else None
        data["overrides"] = tuple(data["overrides"])
        data["notes"] = tuple(data.get("notes", ()))
        data["series"] = {
            name: [(step, float(value)) for step, value in points]
            for name, points in data.get("series", {}).items()
        }
        return cls(**data)
