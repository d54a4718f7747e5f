"""What one job is: the composed config as plain, typed values, and the hash that names it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

from pipeline import timing
from pipeline.sampling import Sampling
from pipeline.verify import find, find_tree
from pipeline.verify.tree import tree

THRESHOLD, MOST = 0.3, 8
"""What k=auto means unless it is told otherwise."""

MOST_DRAWS = 10_000_000

PROPOSALS = ("chain", "tree")


@dataclass(frozen=True)
class JobSpec:
    """One point of a sweep. `tokens` follow `prompt`; `draws` is the distribution check's size.

    With `k_auto`, a threshold, k is the most that is drafted: a round stops after a token that the
    draft itself gave a smaller probability. With proposal "tree" there is a `tree`: how many
    children a node has at each depth; k is its depth.
    """

    draft: str
    draft_options: dict[str, Any] = field(hash=False)
    k: int
    seed: int
    verify: str = "token"
    proposal: str = "chain"
    tokens: int = 200
    prompt: str = "Who "
    eos: str | None = None
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    weights: str = "shipped"
    compile: bool = False
    draws: int = 20_000
    timing: str = "pairs"
    pairs: int = 6
    piece_tokens: int | None = None
    threads: int = 1
    k_auto: float | None = None
    tree: tuple[int, ...] | None = None
    most_pairs: int | None = None
    half_width: float | None = None
    limit_s: float | None = None

    @property
    def sampling(self) -> Sampling:
        return Sampling(self.temperature, self.top_k, self.top_p)

    @property
    def name(self) -> str:
        """Short, unique in a default sweep: what differs from the usual is named after it."""
        name = f"{self.draft} k={self._told_length()} seed={self.seed}"
        usual = {f.name: f.default for f in fields(self)}
        if self.tree is not None:
            name += " tree=" + str(list(self.tree)).replace(" ", "")
        for key in ("verify", "temperature", "top_k", "top_p", "eos"):
            if getattr(self, key) != usual[key]:
                name += f" {key}={getattr(self, key)}"
        name += " timing=adaptive" if self.timing == "adaptive" else ""
        return name + (" compiled" if self.compile else "")

    @property
    def length(self) -> int | str:
        """k, or "auto"."""
        return self.k if self.k_auto is None else "auto"

    def _told_length(self) -> str:
        if self.k_auto is None:
            return str(self.k)
        unusual = "" if self.k_auto == THRESHOLD else f" k_auto.threshold={self.k_auto}"
        return f"auto{unusual}" + ("" if self.k == MOST else f" k_auto.most={self.k}")

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def params(self) -> dict[str, Any]:
        """The parameters of the job's record: a draft's own options are called `draft.OPTION`.

        What is not set is left out, but for `top_k`, which every reader asks for.
        """
        data = self.to_dict()
        options = data.pop("draft_options")
        data["target"] = data.pop("weights")
        if self.k_auto is not None:
            data |= {"k": self.length, "k_most": self.k}
        data["dtype"] = "float64/float32"
        if self.tree is not None:
            data["tree"] = str(list(self.tree)).replace(" ", "")
        extra = {f"draft.{name}": v for name, v in options.items() if name not in ("name", "kind")}
        idle = timing.SETTINGS.difference(timing.MEANT[self.timing])
        said = {name: v for name, v in data.items() if v is not None and name not in idle}
        return {**said, "top_k": self.top_k, **extra}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> JobSpec:
        """ValueError names a key that is missing or not known."""
        known = {f.name for f in fields(cls)}
        for key in data:
            if key not in known:
                raise ValueError(f"{key} is no part of a job: the parts are {', '.join(known)}")
        data = {**data, "tree": tuple(data["tree"])} if data.get("tree") else data
        try:
            return cls(**data)
        except TypeError as error:
            raise ValueError(f"this is not a whole job: {error}") from None

    def validate(self) -> None:
        """ValueError, one sentence, for a value that can be seen to be wrong without weights."""
        if self.k < 0:
            raise ValueError(f"k={self.k}: give 0 (a plain target step) or more drafted tokens")
        if self.k_auto is not None and not (0 < self.k_auto <= 1 and self.k >= 1):
            raise ValueError(
                f"k_auto.threshold={self.k_auto}, k_auto.most={self.k}: give a probability above 0 "
                "and a length of 1 or more"
            )
        if self.k_auto is not None and self.k > max(self.tokens, MOST):
            raise ValueError(f"k_auto.most={self.k}: give no more than tokens={self.tokens}")
        if not 0 <= self.seed < 2**63:
            raise ValueError(f"seed={self.seed}: give a whole number, 0 or more, below 2^63")
        if self.compile and self.proposal == "tree":
            raise ValueError(
                "target.compile=true: passes over trees are not compiled, give proposal=chain"
            )
        if self.tokens < 1:
            raise ValueError(f"tokens={self.tokens}: give 1 or more characters to emit")
        if not self.prompt:
            raise ValueError("prompt is empty: give at least one character to go on from")
        if self.draws < 1:
            raise ValueError(f"draws={self.draws}: give 1 or more draws for the distribution check")
        if self.draws > MOST_DRAWS:
            raise ValueError(
                f"draws={self.draws}: give up to {MOST_DRAWS}, more would not fit in memory"
            )
        timing.check(self.timing, self.to_dict())
        self._validate_proposal()
        _ = self.sampling  # its own checks

    def _validate_proposal(self) -> None:
        if self.proposal not in PROPOSALS:
            raise ValueError(f"proposal={self.proposal}: the ways are {', '.join(PROPOSALS)}")
        if self.proposal == "chain":
            find(self.verify)
            if self.tree is not None:
                raise ValueError(f"tree={list(self.tree)}: give proposal=tree with it")
            return
        find_tree(self.verify)
        if self.k_auto is not None:
            raise ValueError("k=auto: that is for proposal=chain, a tree has its depth in `tree`")
        if not self.k or not self.tree:
            raise ValueError(
                f"proposal=tree, k={self.k}: give tree=[3,2,1] or the like, a width for each "
                "depth, and a k of 1 or more"
            )
        if len(self.tree) != self.k:
            raise ValueError(f"k={self.k}: tree={list(self.tree)} has depth {len(self.tree)}")
        _ = tree(self.tree)  # its own checks


def digest(spec: JobSpec, weights_digest: str) -> str:
    """job.digest: SHA-256 over all that can change the job's figures, the code included."""
    parts = {"spec": spec.to_dict(), "weights": weights_digest, "code": code_digest()}
    parts["spec"] = {**spec.to_dict(), "weights": None}  # their content counts, not their place
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@cache
def code_digest() -> str:
    """SHA-256 over this package's sources, the same whatever line endings a checkout has."""
    sha = hashlib.sha256()
    root = Path(__file__).parent
    for path in sorted(root.rglob("*.py"), key=lambda p: p.relative_to(root).as_posix()):
        sha.update(path.relative_to(root).as_posix().encode() + b"\0")
        sha.update(path.read_bytes().replace(b"\r\n", b"\n") + b"\0")
    return sha.hexdigest()
