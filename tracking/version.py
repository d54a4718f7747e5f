"""Which version of specsweep this is."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import metadata
from pathlib import Path

_PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


@cache
def version() -> str:
    """That of the checkout, else that of the installed distribution."""
    if _PROJECT.is_file():
        project = tomllib.loads(_PROJECT.read_text(encoding="utf-8"))["project"]
        return str(project["version"])
    return metadata.version("specsweep")
