"""What a command is asked for whose settings are a sweep's, with usual values of its own."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from pipeline.compose import Composed, compose, is_asked


def settings(
    arguments: Sequence[str] | None, usual: Mapping[str, str], about: str
) -> list[Composed]:
    """The composed jobs of `arguments`, by default the command line's, after the `usual` values.

    Prints `about` and leaves with exit code 0 where help is asked for. ValueError, one sentence,
    for settings that cannot be.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if is_asked(given):
        print(f"{about}\nAll settings: python -m pipeline.sweep --help")
        raise SystemExit(0)
    keys = {argument.partition("=")[0] for argument in given}
    defaults = [f"{key}={value}" for key, value in usual.items() if key not in keys]
    composed = compose([*defaults, *given])
    if composed[0].config["dry_run"]:
        raise ValueError("dry_run=true: only a sweep has a dry run; leave it out here")
    return composed
