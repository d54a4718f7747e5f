"""`python -m tracking COMMAND`: looks at sweeps that have run, and takes them elsewhere."""

from __future__ import annotations

import argparse
import signal
import sys
import webbrowser
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from rich.console import Console

from pipeline.privacy import hide_passwords
from tracking import team, transfer
from tracking.chosen import choose
from tracking.compare import command as compare
from tracking.printable import printable
from tracking.reader import find_parent, from_outputs, from_store
from tracking.recorder import Recorder
from tracking.runs import FOR_MODELS, run_page
from tracking.serve import ServerFailed, served
from tracking.trouble import StoreUnavailable, unavailable
from tracking.views import share_jobs_view

_EXAMPLES = """\
examples:
  python -m tracking show                      the newest sweep's table and conclusion
  python -m tracking show --sweep ID           those of another one
  python -m tracking ui                        MLflow's page, and the address of the newest sweep
  python -m tracking compare                   each machine's newest sweeps side by side
  python -m tracking compare --machine attic cellar --html page.html
  python -m tracking export                    the newest sweep as one file, for another machine
  python -m tracking import FILE               what such a file holds, into this machine's store
  python -m tracking server                    an MLflow server for a team
"""

_DOWN = ("does not answer", "does not answer in time")


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code. Mistakes are told in one sentence on standard error."""
    options = _parser().parse_args(arguments)
    try:
        if options.root is not None and not options.root.is_dir():
            raise ValueError(f"there is no folder {options.root}: --root is the project's folder")
        recorder = Recorder(root=options.root)
        recorder.check()
        return int(options.run(recorder, options))
    except (ValueError, StoreUnavailable, ServerFailed, OSError) as error:
        told = hide_passwords(str(error))
        if told.endswith(_DOWN):
            told += ": start it, or unset MLFLOW_TRACKING_URI to use the project's own store"
        print("\n".join(map(printable, told.splitlines())), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tracking",
        description="Looks at sweeps that have run, and takes them from one machine to another.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--root", type=Path, help="the project's folder (default: this one)")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    about = "Prints a sweep's table and conclusion again, from outputs/ or from the store."
    show = commands.add_parser("show", help="print a sweep's table again", description=about)
    show.add_argument("--sweep", metavar="ID", help="which one (default: the newest)")
    show.set_defaults(run=_show)
    about = (
        "Starts MLflow's page for the store in use, on this machine only, and prints the addresses "
        "of a sweep's page, its jobs and their charts. A store on a server has its page there."
    )
    ui = commands.add_parser("ui", help="start MLflow's page", description=about)
    ui.add_argument("--sweep", metavar="ID", help="whose address to print (default: the newest)")
    ui.add_argument("--port", type=int, help="default: the first free one from 5000 on")
    ui.add_argument("--open", action="store_true", help="also open it in the browser")
    ui.set_defaults(run=_ui)
    compare.add_to(commands)
    transfer.add_commands(commands)
    team.add_command(commands)
    return parser


def _show(recorder: Recorder, options: argparse.Namespace) -> int:
    report = from_outputs(recorder.root, options.sweep)
    if report is None:
        store = recorder.open_existing()
        report = from_store(store, options.sweep) if store is not None else None
    if report is None:
        wanted = f"no sweep {options.sweep!r}" if options.sweep else "no sweep yet"
        raise ValueError(f"there is {wanted} in outputs/ or in the store: run `make sweep`")
    console = Console()
    console.print(f"sweep {report.sweep['id']}", highlight=False)
    report.print(console)
    return 0


def _ui(recorder: Recorder, options: argparse.Namespace) -> int:
    with suppress(KeyboardInterrupt):  # how it is meant to end
        _serve_page(recorder, options)
    return 0


def _serve_page(recorder: Recorder, options: argparse.Namespace) -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the server must not outlive this
    store = recorder.open()
    with unavailable(store.location):
        parent = find_parent(store, options.sweep)
    if parent is None and options.sweep:
        choose(store, [options.sweep])  # which tells the sweeps that there are
    with served(store.location, options.port) as page:
        address = f"{page.base}/#/experiments/{store.experiment_id}/runs{FOR_MODELS}"
        told = ""
        if parent is not None:
            address = run_page(page.base, store.experiment_id, parent.info.run_id)
            with unavailable(store.location):
                jobs = page.base + share_jobs_view(store, parent.data.tags["sweep.id"])
            told = f"its jobs:   {jobs}\nin charts:  {jobs}&compareRunsMode=CHART\n"
        end = "Ctrl-C ends it." if page.is_ours else "The server there goes on by itself."
        print(f"{address}\n{told}{end}", flush=True)
        if options.open:
            webbrowser.open(address)
        page.wait()


if __name__ == "__main__":
    raise SystemExit(main())
