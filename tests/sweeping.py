"""Runs sweeps over fake jobs: in this process, or as a program of its own that can be killed.

As a program: `python -m tests.sweeping ROOT sweep|resume fake|real ARGUMENTS`.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console

from pipeline import resume, sweep
from pipeline.progress import Show
from tests import fake_jobs

PROJECT = Path(__file__).resolve().parent.parent
RECORDER = "tracking._target_=tests.fake_recorder.FileRecorder"


@dataclass
class Result:
    code: int
    out: str
    root: Path

    @property
    def summary(self) -> dict[str, Any]:
        text = (self.root / "outputs" / "latest" / "summary.json").read_text(encoding="utf-8")
        summary: dict[str, Any] = json.loads(text)
        return summary

    @property
    def statuses(self) -> dict[str, str]:
        return {job["name"]: job["status"] for job in self.summary["jobs"]}

    @property
    def runs(self) -> list[dict[str, Any]]:
        """Of each sweep in the store, oldest first."""
        return list(json.loads((self.root / "runs.json").read_text(encoding="utf-8")).values())


def run(root: Path, *arguments: str) -> Result:
    """A sweep over fake jobs in this process."""
    out = io.StringIO()
    show = Show(Console(file=out, highlight=False))
    code = sweep.main([*arguments, RECORDER], jobs=fake_jobs, root=root, show=show)
    return Result(code, out.getvalue(), root)


def go_on(root: Path, *arguments: str) -> Result:
    """`make resume` in this process."""
    out = io.StringIO()
    show = Show(Console(file=out, highlight=False))
    code = resume.main(arguments, jobs=fake_jobs, root=root, show=show)
    return Result(code, out.getvalue(), root)


def spawn(root: Path, *arguments: str) -> subprocess.Popen[str]:
    """A sweep over fake jobs as a program of its own."""
    return program(root, "sweep", "fake", *arguments, RECORDER)


def program(root: Path, *arguments: str) -> subprocess.Popen[str]:
    """This module as a program, running."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.sweeping", str(root), *arguments],
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def wait_until(true: Callable[[], bool], seconds: float = 20.0) -> None:
    """Return as soon as `true()`; TimeoutError if it does not become true."""
    end_s = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end_s:
            raise TimeoutError("what was waited for did not happen")
        time.sleep(0.02)


def records(root: Path) -> list[Path]:
    """The files of every job that has answered, in the sweeps' own folders."""
    return sorted(root.glob("outputs/[0-9]*/jobs/*/record.json"))


def family(pid: int) -> list[psutil.Process]:
    """The processes that `pid` has started."""
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def workers(pid: int) -> list[psutil.Process]:
    """Of these, the workers."""
    found = []
    for process in family(pid):
        try:
            if any("popen_loky" in word for word in process.cmdline()):
                found.append(process)
        except psutil.Error:
            pass
    return found


def alive(processes: Sequence[psutil.Process]) -> list[psutil.Process]:
    return [p for p in processes if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


if __name__ == "__main__":
    folder, verb, kind, *rest = sys.argv[1:]
    main = {"sweep": sweep.main, "resume": resume.main}[verb]
    sys.exit(main(rest, jobs=fake_jobs if kind == "fake" else None, root=Path(folder)))
