"""How this Python is called."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path


def this_python() -> str:
    """This Python as a reader in this folder calls it: the project's own needs no activation."""
    with suppress(ValueError):
        return Path(sys.executable).relative_to(Path.cwd()).as_posix()
    return "python"


def command_line(words: Sequence[str]) -> str:
    """The words as they are typed into this system's shell."""
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)
