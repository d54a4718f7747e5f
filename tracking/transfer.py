"""`python -m tracking export` and `import`: sweeps as one file, from one machine to another."""

from __future__ import annotations

import argparse
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from tracking import bundle_read
from tracking.bundle_read import Bundle
from tracking.chosen import choose, default_name
from tracking.export import export
from tracking.merge import merge
from tracking.printable import printable
from tracking.python import command_line, this_python
from tracking.recorder import Recorder

_EXPORT_HELP = """\
Writes sweeps from the store into one file: every run with its parameters, tags, metric histories,
dates and artifacts. `python -m tracking import FILE` merges it into another store.
"""
_IMPORT_HELP = """\
Merges a file that `export` wrote into the store. Runs that are there already stay as they are, so
it may be repeated; an import that was broken off is completed by the next. A file that is damaged,
foreign or newer is refused, and nothing of it is taken.
"""


def add_commands(commands: Any) -> None:
    """`commands` is what `ArgumentParser.add_subparsers` gave."""
    out = commands.add_parser(
        "export", help="write sweeps into one file, for another machine", description=_EXPORT_HELP
    )
    out.add_argument(
        "file",
        nargs="?",
        type=Path,
        metavar="FILE",
        help="default: specsweep-MACHINE-SWEEP.zip in this folder",
    )
    which = out.add_mutually_exclusive_group()
    which.add_argument(
        "--sweep",
        action="append",
        default=[],
        metavar="ID",
        help="which one; may be repeated (default: the newest)",
    )
    which.add_argument("--all", action="store_true", help="every sweep of the store")
    out.set_defaults(run=_export)
    into = commands.add_parser(
        "import", help="merge such a file into the store", description=_IMPORT_HELP
    )
    into.add_argument("file", type=Path, metavar="FILE")
    into.set_defaults(run=_import)


def _export(recorder: Recorder, options: argparse.Namespace) -> int:
    store = recorder.open_existing()
    if store is None:
        raise ValueError(f"there is no sweep in {recorder.check().shown}: run `make sweep`")
    chosen = choose(store, options.sweep, options.all)
    file = options.file or Path(default_name(chosen))
    done = export(store, chosen, file)
    size_mb = file.stat().st_size / 1e6
    which = f"sweep {chosen[0].sweep_id}" if len(chosen) == 1 else _many(done.sweeps, "sweep")
    held = f"{which}, {_many(done.jobs, 'job')}, {size_mb:.1f} MB"
    print(f"{printable(file)}: {held}")
    for remark in done.remarks:
        print(remark)
    print(f"On another machine: {import_command(file.name)}")
    for sentence in done.left_out:
        print(sentence, file=sys.stderr)
    return 1 if done.left_out else 0


def import_command(file: str) -> str:
    """As it is typed into this system's shell; `make` would take some signs for its own."""
    if set(file) & set("$\"\\`#%'"):
        return printable(command_line([this_python(), "-m", "tracking", "import", file]))
    return printable(command_line(["make", "import", f"FILE={file}"]))


def _import(recorder: Recorder, options: argparse.Namespace) -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the database is let go of in order
    with bundle_read.opened(options.file) as source:  # refused before the store is even opened
        store = recorder.open()
        try:
            with _progress(len(source.runs)) as tick:
                done = merge(store, source, tick)
        except KeyboardInterrupt:
            print(f"broken off; the same command completes it: {import_command(str(options.file))}")
            return 130
    print(_told(source, done))
    sweeps = [run.sweep_id for run in source.runs if not run.job]
    print(f"To see it: {this_python()} -m tracking show --sweep {sweeps[-1]}, or make ui")
    return 0


def _told(source: Bundle, done: Counter[Any]) -> str:
    sweeps = sum(not run.job for run in source.runs)
    where = printable(", ".join(name for name in source.about.machines if name))
    what = f"{_many(sweeps, 'sweep')}{f' of {where}' if where else ''}, "
    if done["known"] == done.total():
        return f"{what}{_many(done.total(), 'run')}: all of them are here already, nothing changed"
    parts = [f"{done[word]} {word}" for word in ("new", "completed", "known") if done[word]]
    return f"{what}{_many(done.total(), 'run')}: {', '.join(parts)}"


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")


@contextmanager
def _progress(total: int) -> Iterator[Callable[[], object]]:
    """A bar on standard error, where somebody looks at it."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("import", total=total)
        yield lambda: bar.advance(task)
