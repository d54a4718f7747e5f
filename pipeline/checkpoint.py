"""Where a training stands, on disk, so that one that was stopped can go on."""

from __future__ import annotations

import os
import pickle
import time
from pathlib import Path
from typing import Any

import torch


class Checkpoint:
    """One file, written whole or not at all, at most every `every_s` seconds.

    `made_from` describes the training (text, recipe, sizes): the state of another one is not used.
    """

    def __init__(self, path: Path, made_from: dict[str, Any], every_s: float = 60.0) -> None:
        self.path, self.made_from, self.every_s = path, made_from, every_s
        self.saved_at = time.monotonic()

    def read(self) -> dict[str, Any] | None:
        """The last saved state, or None where there is none of this very training."""
        try:
            state = torch.load(self.path, weights_only=True)
        except (OSError, RuntimeError, EOFError, pickle.UnpicklingError):
            return None  # one that cannot be read only costs the time to train again
        if not isinstance(state, dict) or state.get("made_from") != self.made_from:
            return None
        return state

    def due(self) -> bool:
        return time.monotonic() - self.saved_at >= self.every_s

    def write(self, state: dict[str, Any]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_name(self.path.name + ".tmp")
        torch.save({**state, "made_from": self.made_from}, draft)
        os.replace(draft, self.path)
        self.saved_at = time.monotonic()

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)
