"""How this Python is called."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path


def this_python() -> str:
    """This Python as a reader in this folder calls it: the project's own needs no activation."""
    with suppress(ValueError):
        return Path(sys.executable).relative_to(Path.cwd()).as_posix()
    return "python"
