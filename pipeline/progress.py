"""What a person sees while a sweep runs: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


class Phase:
    """One part of a sweep: `total` jobs, of which some are running and some are done."""

    def __init__(self, show: Show, title: str, total: int) -> None:
        self._show, self._title, self._total = show, title, total
        self._done = 0
        self._begun_s = time.monotonic()
        self._bar = show.bar.add_task(title, total=total, running="") if show.bar else None

    def running(self, names: Sequence[str]) -> None:
        if self._show.bar is not None and self._bar is not None:
            self._show.bar.update(self._bar, running=", ".join(names))

    def done(self, name: str, failed: str = "") -> None:
        """One more job is through; `failed` says why it came to nothing."""
        self._done += 1
        if self._show.bar is not None and self._bar is not None:
            self._show.bar.update(self._bar, completed=self._done)
            if failed:
                self._show.say(f"{name} failed: {failed}")
            return
        each_s = (time.monotonic() - self._begun_s) / self._done
        left_s = each_s * (self._total - self._done)
        tail = f", failed: {failed}" if failed else ""
        left = f", {clock_face(left_s)} left" if left_s else ""
        self._show.say(f"{self._title} {self._done}/{self._total}: {name}{tail}{left}")

    def end(self) -> None:
        if self._show.bar is not None and self._bar is not None:
            self._show.bar.update(self._bar, running="")


class _Steady(Console):
    """A console whose reader may go away, as in `make sweep | head`: the sweep goes on unheard."""

    def on_broken_pipe(self) -> None:
        with suppress(SystemExit):  # which is how rich would end the program
            super().on_broken_pipe()


class Show:
    """The one place that prints."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or _Steady(highlight=False)
        self.bar: Progress | None = None

    def say(self, text: str) -> None:
        self.console.print(text, markup=False, soft_wrap=True)

    def draw(self, thing: RenderableType) -> None:
        self.console.print(thing)

    @contextmanager
    def live(self) -> Iterator[None]:
        """Inside, phases are drawn as bars where there is a terminal."""
        if not self.console.is_terminal:
            yield
            return
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            # over all jobs so far: a few dear ones among many cheap ones make it jump otherwise
            TimeRemainingColumn(elapsed_when_finished=False),
            TextColumn("{task.fields[running]}"),
        )
        with Progress(*columns, console=self.console, speed_estimate_period=3600) as self.bar:
            yield
        self.bar = None

    @contextmanager
    def phase(self, title: str, total: int) -> Iterator[Phase]:
        phase = Phase(self, title, total)
        try:
            yield phase
        finally:
            phase.end()


def clock_face(seconds: float) -> str:
    """`75` -> `1:15`; hours only where there are some."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
