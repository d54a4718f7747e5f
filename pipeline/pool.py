"""Runs tasks in worker processes. A task answers `Ok` or `Err`; nothing is raised through the pool.

`beside` runs several at once with joblib, `apart` one at a time in one worker. A worker that dies
costs the sweep no task: those that the dead pool was working on are run again apart, where a second
death can only be their own.
"""

from __future__ import annotations

import os
import traceback
import warnings
from collections.abc import Callable, Container, Generator, Iterable, Iterator, Sequence
from concurrent.futures import wait
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from joblib import Parallel, delayed
from joblib.externals.loky import ProcessPoolExecutor, get_reusable_executor
from joblib.externals.loky.process_executor import BrokenProcessPool

from pipeline.records import JobError
from pipeline.stop import deaf_children, end_with

Running = Callable[[Sequence[str]], None]


@dataclass(frozen=True)
class Task:
    """`call(*args)` in a worker; `key` names it."""

    key: str
    call: Callable[..., Any]
    args: tuple[Any, ...]


@dataclass(frozen=True)
class Ok:
    value: Any


@dataclass(frozen=True)
class Err:
    error: JobError


Outcome = Ok | Err
Answers = Generator[tuple[str, Outcome], None, None]


def beside(tasks: Sequence[Task], workers: int, running: Running) -> Answers:
    """Key and outcome of each task, as they come, from `workers` processes at once.

    `running` is told the keys of those that run whenever that changes.
    """
    if workers == 1 or len(tasks) == 1:  # joblib would run it in this very process
        yield from apart(tasks, running)
        return
    pending = {task.key: task for task in tasks}
    while pending:
        handed: list[Task] = []
        try:
            for found in _parallel(list(pending.values()), workers, handed):
                if found is not None:
                    del pending[found[0]]
                running([task.key for task in _begun(handed, pending, workers)])
                if found is not None:
                    yield found
        except BrokenProcessPool:
            suspects = _begun(handed, pending, workers)
            for task in suspects:
                del pending[task.key]
            yield from apart(suspects, running, tries=1)
        finally:
            if handed:
                get_reusable_executor().shutdown(wait=True, kill_workers=True)


def _begun(handed: Sequence[Task], pending: Container[str], workers: int) -> list[Task]:
    """Those of the tasks handed to the pool that it is working on: it takes them in their order."""
    return [task for task in handed if task.key in pending][:workers]


def _parallel(
    tasks: list[Task], workers: int, handed: list[Task]
) -> Generator[tuple[str, Outcome] | None, None, None]:
    """Outcomes from joblib; first None, when the workers have been started."""

    def feed() -> Iterator[Any]:
        for task in tasks:
            handed.append(task)
            yield delayed(_guarded)(task, os.getpid())

    pool = Parallel(
        n_jobs=workers,
        backend="loky",
        return_as="generator_unordered",
        batch_size=1,
        pre_dispatch="n_jobs",
    )
    with deaf_children():
        outcomes = pool(feed())
    with warnings.catch_warnings(), closing(outcomes):
        warnings.filterwarnings("ignore", r".*tasks which were still being processed.*")
        warnings.filterwarnings("ignore", r".*tasks have been successfully executed.*")
        yield None
        yield from outcomes


def apart(tasks: Iterable[Task], running: Running, tries: int = 2) -> Answers:
    """Key and outcome of each task, one after the other, from one worker process.

    The next task is asked for when the last one's outcome has been taken. A task whose worker dies
    under it is begun again, `tries` times in all.
    """
    executor = ProcessPoolExecutor(max_workers=1)
    try:
        for task in tasks:
            running([task.key])
            for left in reversed(range(tries)):
                outcome = _one(executor, task)
                if outcome is not None:
                    break
                executor.shutdown(wait=True, kill_workers=True)
                executor = ProcessPoolExecutor(max_workers=1)
                if not left:
                    outcome = Err(_lost())
            assert outcome is not None
            yield task.key, outcome
    finally:
        executor.shutdown(wait=True, kill_workers=True)


def _one(executor: ProcessPoolExecutor, task: Task) -> Outcome | None:
    """The outcome, or None where the worker died."""
    try:
        with deaf_children():
            future = executor.submit(_guarded, task, os.getpid())
        while not wait([future], timeout=0.2).done:
            pass  # woken now and then, so that signals are heard on every system
        key, outcome = future.result()
    except BrokenProcessPool:
        return None
    assert isinstance(outcome, Ok | Err)
    return outcome


def _guarded(task: Task, parent: int) -> tuple[str, Outcome]:
    """In the worker: run the task; whatever it raises becomes an answer."""
    end_with(parent)
    try:
        return task.key, Ok(task.call(*task.args))
    except BaseException as error:  # also SystemExit: a worker outlives its tasks
        trace = "".join(traceback.format_exception(error))
        return task.key, Err(JobError(type(error).__name__, str(error), trace))


def _lost() -> JobError:
    return JobError(
        "WorkerDied",
        "its worker process died twice: killed from outside, or out of memory",
        "",
    )
