"""`python -m tracking server`: an MLflow server that the machines of a team log to."""

from __future__ import annotations

from typing import Any


def add_command(commands: Any) -> None:
    pass
