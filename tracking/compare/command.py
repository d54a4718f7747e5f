"""`python -m tracking compare`: what it takes, and what it does."""

from __future__ import annotations

import argparse
import gc
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from rich.console import Console

from tracking.compare.comparison import NO_SWEEP, compare
from tracking.load import BOUNDS
from tracking.printable import printable
from tracking.recorder import Recorder
from tracking.runs import run_page
from tracking.store import Store
from tracking.trouble import unavailable

_HELP = "put sweeps of several machines, or of one under several loads, side by side"
_ABOUT = f"""\
Counts of the same jobs must agree, timings need not: they stand in columns, one for each machine
and state of load, and nothing is pooled across columns. States of load: {BOUNDS}.
Without an argument the newest sweep of each machine and state of load in the store is taken, or an
older one that has more than twice as many jobs in common with the others; which, and how to take
the newest, is said. The comparison is printed, and kept in MLflow as a run of its own with the
page, the table and the data as artifacts.
"""


def add_to(commands: Any) -> None:
    """Adds the command to the parser's sub-commands."""
    parser = commands.add_parser("compare", help=_HELP, description=_HELP + ". " + _ABOUT)
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--sweep", action="append", default=[], metavar="ID", help="this sweep; give it repeatedly"
    )
    which.add_argument(
        "--machine",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME",
        help="only these machines' newest sweeps",
    )
    which.add_argument(
        "--last",
        nargs="?",
        const=2,
        type=_several,
        metavar="N",
        help="the N newest sweeps, whatever they ran on (default: 2)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")
    parser.add_argument("--html", type=Path, metavar="FILE", help="also write the page to a file")
    parser.set_defaults(run=run)


def _several(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: give a whole number, 1 or more")
    return int(text)


@contextmanager
def _seldom_collected() -> Iterator[None]:
    """MLflow makes 70,000 objects of a thousand runs and keeps them: to look again and again for
    rubbish among them took a third of the time."""
    before = gc.get_threshold()
    gc.set_threshold(100_000, 50, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@_seldom_collected()
def run(recorder: Recorder, options: argparse.Namespace) -> int:
    """The exit code; ValueError and StoreUnavailable say in a sentence what went wrong."""
    _check_page(options.html)
    store = recorder.open_existing()  # before MLflow is loaded: this sets its environment
    if store is None:
        raise ValueError(NO_SWEEP)
    from tracking.compare.choose import choose
    from tracking.compare.log import Output, log
    from tracking.compare.read import StoredSweeps
    from tracking.compare.terminal import show

    stored = StoredSweeps(store)
    with unavailable(store.location):
        chosen = choose(stored, options.sweep, options.machine, options.last)
        comparison = compare(chosen.sweeps, stored.whole, chosen.notes, chosen.asked, chosen.more)
    output = Output.of(comparison)
    for stream in (sys.stdout, sys.stderr):
        _take_every_name(stream)
    if options.json:
        print(output.ascii_data)
    else:
        show(comparison, Console())
    if options.html:
        options.html.write_text(output.html, encoding="utf-8")
    with unavailable(store.location):
        run_id = log(store, comparison, output)
    where = _where(recorder, store, comparison.name, run_id, options.html)
    print(where, file=sys.stderr if options.json else None)
    return 0


def _check_page(file: Path | None) -> None:
    """ValueError for a page that could not be written, before anything is done."""
    if file is None:
        return
    if file.is_dir():
        raise ValueError(f"--html {file}: that is a folder; name a file in it")
    if not file.absolute().parent.is_dir():
        raise ValueError(f"--html {file}: there is no folder {file.parent}; make it first")


def _take_every_name(stream: Any) -> None:
    """Characters that the terminal's encoding lacks are escaped, and end nothing."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")


def _where(recorder: Recorder, store: Store, name: str, run_id: str, html: Path | None) -> str:
    """Where the comparison is found. `make ui` serves at an address that only it knows."""
    told = f"\nMLflow: run {name!r} of experiment {recorder.experiment!r}"
    if store.location.is_server:
        told += f": {run_page(store.location.page, store.experiment_id, run_id)}"
    else:
        told += ": make ui shows it"
    page = html or _page(store, run_id)
    return told if page is None else f"{told}\npage: {printable(page)}"


def _page(store: Store, run_id: str) -> Path | None:
    """The page's file, where the artifacts are kept in a folder of this machine."""
    address = urlsplit(str(store.client.get_run(run_id).info.artifact_uri))
    if address.scheme != "file":
        return None
    file = Path(url2pathname(address.path)) / "compare.html"
    return file if file.is_file() else None
