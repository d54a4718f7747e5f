"""Sweeps that are stopped: by a signal, by the death of a worker, by the death of the parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.sweeping import Result, alive, family, go_on, records, spawn, wait_until, workers

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")

# seeds 0 and 1 are quick, seed 16 takes half a minute
HALF_DONE = ("draft=int8", "k=1", "seed=0,1,16", "n_jobs=2")


def end(program: subprocess.Popen[str]) -> str:
    return program.communicate(timeout=20)[0]


def deaf(process: psutil.Process) -> bool:
    """Whether Ctrl-C does not reach a process; systems without /proc do not tell."""
    status = Path(f"/proc/{process.pid}/status")
    if not status.exists():
        return True
    mask = next(line for line in status.read_text().splitlines() if line.startswith("SigBlk"))
    return bool(int(mask.split()[1], 16) & 1 << (signal.SIGINT - 1))


def states(root: Path) -> dict[str, str]:
    (sweep,) = Result(0, "", root).runs
    return {job["name"]: job["status"] for job in sweep["jobs"].values()}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_all_within_seconds_and_says_how_to_go_on(
    tmp_path: Path, number: signal.Signals
) -> None:
    program = spawn(tmp_path, *HALF_DONE, "timing=skip")
    wait_until(lambda: len(records(tmp_path)) >= 2)
    children = family(program.pid)
    begun_s = time.monotonic()
    program.send_signal(number)
    told = end(program)
    wait_until(lambda: not alive(children), begun_s + 30 - time.monotonic())
    assert program.returncode == 128 + number
    assert "2 of 3 jobs are done" in told.splitlines()[-1]
    assert "make resume" in told.splitlines()[-1] and "Traceback" not in told
    assert states(tmp_path) == {
        "int8 k=1 seed=0": "FINISHED",
        "int8 k=1 seed=1": "FINISHED",
        "int8 k=1 seed=16": "KILLED",
    }
    result = Result(0, told, tmp_path)
    assert result.runs[0]["status"] == "KILLED"
    assert result.statuses["int8 k=1 seed=16"] == "missing"


def test_ctrl_c_in_a_terminal_reaches_all_and_prints_no_traceback(tmp_path: Path) -> None:
    program = spawn(tmp_path, *HALF_DONE, "timing=skip")
    wait_until(lambda: len(records(tmp_path)) >= 2)
    assert all(map(deaf, workers(program.pid)))
    for process in (*workers(program.pid), psutil.Process(program.pid)):
        process.send_signal(signal.SIGINT)  # a terminal signals the whole group
    told = end(program)
    assert "Traceback" not in told and "make resume" in told.splitlines()[-1]


def test_a_signal_while_timing_keeps_the_counts(tmp_path: Path) -> None:
    program = spawn(tmp_path, "draft=int8", "k=1", "seed=0,1", "n_jobs=2", "timing.pairs=2")
    wait_until(lambda: any('"done"' in path.read_text() for path in records(tmp_path)))
    program.send_signal(signal.SIGTERM)
    told = end(program)
    kept = len(records(tmp_path))
    again = go_on(tmp_path)
    assert kept == 2 and again.code == 0, told
    assert "counting" not in again.out and set(again.statuses.values()) == {"done"}
    assert sorted(again.runs[0]["logged"]) == ["int8 k=1 seed=0", "int8 k=1 seed=1"]


def test_workers_do_not_outlive_a_parent_that_was_killed_and_resume_finishes(
    tmp_path: Path,
) -> None:
    program = spawn(
        tmp_path, "draft=int8", "k=1,2", "seed=0,15", "n_jobs=2", f"prompt='{tmp_path}'"
    )
    wait_until(lambda: bool(records(tmp_path)))
    children = family(program.pid)
    program.kill()
    end(program)
    wait_until(lambda: not alive(children), 5)
    again = go_on(tmp_path)
    assert again.code == 0 and set(again.statuses.values()) == {"done"}
    (sweep,) = again.runs
    assert sorted(sweep["logged"]) == sorted(again.statuses) and sweep["status"] == "FINISHED"


def test_a_worker_that_is_killed_from_outside_costs_no_job(tmp_path: Path) -> None:
    program = spawn(tmp_path, "draft=int8", "k=1,2,4", "seed=range(0,4)", "n_jobs=2", "timing=skip")
    wait_until(lambda: bool(records(tmp_path)) and bool(workers(program.pid)))
    os.kill(workers(program.pid)[0].pid, signal.SIGKILL)
    told = end(program)
    assert program.returncode == 0, told
    assert set(Result(0, told, tmp_path).statuses.values()) == {"done"}


def test_a_sweep_that_is_running_is_not_resumed_beside_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = spawn(tmp_path, *HALF_DONE, "timing=skip")
    wait_until(lambda: bool(records(tmp_path)))
    assert go_on(tmp_path).code == 2
    assert "is being run by another process" in capsys.readouterr().err
    program.send_signal(signal.SIGTERM)
    end(program)
