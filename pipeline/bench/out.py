"""Where a bench writes its figures: found out before anything is measured."""

from __future__ import annotations

import os
from pathlib import Path


def ready(out: Path) -> None:
    """Make the folder of `out`. ValueError, one sentence, where no file can be written there."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"--out {out}: no folder can be made there ({error.strerror})") from error
    if out.is_dir():
        raise ValueError(f"--out {out}: is a folder; name a file in it")
    if not os.access(out if out.exists() else out.parent, os.W_OK):
        raise ValueError(f"--out {out}: cannot be written; name another place")
