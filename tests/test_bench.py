"""The bench: figures come from raw times, nothing unequal is compared, nothing missing stops it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from rich.console import Console

from pipeline.bench import __main__ as bench
from pipeline.bench import compiled, counting, load, memory, outside, peer, sides, turns
from pipeline.bench.figures import Figure, Goal, Part, summary
from pipeline.job import timed_sides
from pipeline.pool import Answers, Err, Ok, Task
from pipeline.progress import Show
from pipeline.records import JobError
from pipeline.spec import JobSpec

ROOT = Path(__file__).resolve().parent.parent
TINY = bench.Size(2, 10, 3, 2, 50, 2**22, 0.1)


class FakePeer(peer.Peer):
    """Writes what our own decoder writes, after `spoil` had its way with it."""

    def __init__(self, spoil: Callable[[list[int]], list[int]] = list) -> None:
        super().__init__(None, None, "0")
        self.__dict__["spoil"] = spoil

    def write(self, spec: JobSpec, prompt: Sequence[int], seed: int, assisted: bool) -> list[int]:
        ids = sides.write(sides.plain(timed_sides(spec)[1], seed), spec.tokens).tolist()
        return list(self.__dict__["spoil"](ids))

    def passes(self, call: Callable[[], object]) -> int:
        call()
        return 1


@pytest.fixture(autouse=True)
def eager_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiling takes a while, and is not what is tested here."""
    for module in (memory, peer):
        monkeypatch.setattr(module, "try_compiled", lambda spec: (None, "not tried"))


def small(temperature: int, tokens: int = 8) -> JobSpec:
    return sides.specs("draft=small", f"tokens={tokens}", f"sampling.temperature={temperature}")[0]


def run(tmp_path: Path, *arguments: str) -> tuple[int, dict[str, Any], str]:
    """Exit code, the JSON, and what was shown."""
    out, console = tmp_path / "bench.json", Console(record=True, width=160, file=sys.stderr)
    line = [*arguments, "--out", str(out), "--lock", str(tmp_path / "lock")]
    code = bench.main(line, Show(console))
    return code, json.loads(out.read_text(encoding="utf-8")), console.export_text()


@pytest.mark.parametrize("names", [("a", "b"), ("a", "b", "c")])
def test_every_side_is_first_as_often_as_any_other(names: tuple[str, ...]) -> None:
    orders = [turns.order(names, index) for index in range(2 * len(names))]
    firsts = [order[0] for order in orders]
    assert all(sorted(order) == list(names) for order in orders)
    assert {firsts.count(name) for name in names} == {2}


def test_turns_keep_what_each_side_took_and_warm_up_does_not_count() -> None:
    called: list[str] = []
    calls = {"a": lambda: called.append("a"), "b": lambda: called.append("b")}
    found = turns.alternate(calls, 3)
    assert called == ["a", "b", "a", "b", "b", "a", "a", "b"]
    assert [turn.order for turn in found] == [("a", "b"), ("b", "a"), ("a", "b")]
    ratios = turns.ratios(found, "a", "b")
    assert ratios == tuple(turn.wall_ns["a"] / turn.wall_ns["b"] for turn in found)
    with pytest.raises(ValueError, match="turns=0"):
        turns.alternate(calls, 0)


def test_a_goal_says_on_which_side_it_is() -> None:
    least, most = Goal("at least", 2), Goal("at most", 2)
    assert [least.reached(x) for x in (1.9, 2, 2.1)] == [False, True, True]
    assert [most.reached(x) for x in (1.9, 2, 2.1)] == [True, True, False]
    figures = [Figure("p", "one", (3, 1, 2), least), Figure("p", "two", (3,), most)]
    assert summary(figures) == "1 of 2 goals reached; missed: p: two"
    assert Figure("p", "three", (1,)).reached is None


def test_figures_are_written_with_raw_values_and_agree_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "QUICK", TINY)
    code, data, told = run(tmp_path, "--quick", "--only", "outside,memory,counting")
    assert code == 0 and not data["failed"] and data["threads"] == 1
    figures = {(one["part"], one["name"]): one for one in data["figures"]}
    assert {part for part, _ in figures} == {
        outside.SHARES, outside.ROUNDS, memory.NAME, counting.NAME
    }  # fmt: skip
    for one in data["figures"]:
        values = one["values"]
        assert (one["median"], one["min"], one["max"]) == (median(values), min(values), max(values))
        assert one["name"] in told
    int8 = figures[outside.SHARES, "int8 k=4"]
    for value, raw in zip(int8["values"], int8["raw"], strict=True):
        inside = raw["target_ns"] + raw["draft_ns"]
        assert value == pytest.approx(1 - inside / raw["speculative_ns"]) and 0 < value < 1
        assert raw["rounds"] >= TINY.tokens / 5
    assert int8["goal"] == {"kind": "at most", "value": 0.1}
    batch = next(
        one for (_, name), one in figures.items() if name.startswith("bigram k=4, 3 seeds")
    )
    for value, raw in zip(batch["values"], batch["raw"], strict=True):
        assert value == raw["wall_ns"]["one by one"] / raw["wall_ns"]["batch"]


def test_all_eight_drafts_are_taken_apart() -> None:
    found = outside.measure(1, "tokens=6")
    names = [one.name for one in found.figures if one.part == outside.ROUNDS]
    assert len(names) == 8 and "ngram k=4" in names and "stopwatches" in found.notes[0]


def test_without_transformers_a_sentence_says_so_and_the_rest_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    monkeypatch.setattr(bench, "QUICK", TINY)
    code, data, told = run(tmp_path, "--quick", "--only", "transformers,memory")
    assert code == 0 and peer.ABSENT in data["notes"] and peer.ABSENT in told
    assert [one["part"] for one in data["figures"]] == [memory.NAME]


@pytest.mark.parametrize("temperature", [0, 1])
def test_equal_texts_are_compared(temperature: int) -> None:
    found = peer.compare(FakePeer(), small(temperature), 2)
    assert len(found.figures) == 3 and all(len(one.values) == 2 for one in found.figures)
    assert "wrote" in found.notes[0] and "target passes" in found.notes[0]


def test_another_greedy_text_is_never_compared() -> None:
    found = peer.compare(FakePeer(lambda ids: [*ids[:-1], (ids[-1] + 1) % 84]), small(0), 1)
    assert not found.figures
    assert "not compared" in found.notes[0] and "at character 8" in found.notes[0]


@pytest.mark.parametrize("temperature", [0, 1])
def test_a_shorter_text_is_never_compared(temperature: int) -> None:
    found = peer.compare(FakePeer(lambda ids: ids[:-1]), small(temperature), 1)
    assert not found.figures and "wrote 7 of 8 characters" in found.notes[0]


def test_the_peer_is_hugging_faces_gpt2_and_runs_the_target_as_often_as_ours() -> None:
    pytest.importorskip("transformers", reason="needs the extra `hf`: pip install specsweep[hf]")
    spec = small(0, tokens=24)
    theirs = peer.load("shipped", spec.k)
    found = peer.compare(theirs, spec, 1)
    assert len(found.figures) == 3
    passes = found.notes[0].partition("target passes: ")[2]
    told = dict(item.rsplit(" ", 1) for item in passes.split(", "))
    assert told["their plain"] == "24"
    assert told["their speculative"] == told["our speculative"]


def test_a_seed_counted_otherwise_in_a_batch_is_an_error() -> None:
    spec = small(1)
    counting.check(["x", "y"], ["x", "y"], spec)
    with pytest.raises(ValueError, match="seed 1 has other counts in a batch"):
        counting.check(["x", "y"], ["x", "z"], spec)


def test_without_a_compiled_engine_a_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(spec: JobSpec) -> None:
        if spec.compile:
            raise ValueError("no compiler here\nand more")

    monkeypatch.setattr(JobSpec, "validate", refuse)
    timed, why_not = compiled.try_compiled(JobSpec("bigram", {"kind": "bigram"}, 4, 0))
    assert timed is None
    assert why_not == "the compiled engine could not be measured (no compiler here)"
    found = memory.measure(1, 8, 2**22)
    assert [one.name for one in found.figures] == ["eager / streaming its weights"]
    assert "not tried" in found.notes


def test_where_there_is_a_compiled_engine_it_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def stand_in(spec: JobSpec) -> tuple[Any, str]:
        return timed_sides(spec)[1], ""

    monkeypatch.setattr(memory, "try_compiled", stand_in)
    monkeypatch.setattr(peer, "try_compiled", stand_in)
    names = [one.name for one in memory.measure(1, 8, 2**22).figures]
    assert names[-1] == "compiled / eager" and len(names) == 3
    names = [one.name for one in peer.compare(FakePeer(), small(0), 1).figures]
    assert "greedy, small k=4, ours compiled" in names


def test_the_same_jobs_are_counted_by_one_worker_and_by_two(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[int, tuple[str, ...]]] = []

    def beside(tasks: Sequence[Task], workers: int, running: object) -> Answers:
        asked.append((workers, tuple(f"{task.args[0].draft} {task.key}" for task in tasks)))
        yield from ((task.key, Ok(None)) for task in tasks)

    monkeypatch.setattr(counting, "beside", beside)
    (figure,) = counting.workers(2, 4, 50).figures
    jobs = ("bigram 0", "int8 1", "int4 2", "bigram 3")
    assert asked == [(1, jobs), (2, jobs), (2, jobs), (1, jobs)] and len(figure.values) == 2


def test_a_counting_job_that_fails_is_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    def beside(tasks: Sequence[Task], workers: int, running: object) -> Answers:
        yield tasks[0].key, Err(JobError("ValueError", "it broke", ""))

    monkeypatch.setattr(counting, "beside", beside)
    with pytest.raises(RuntimeError, match="a counting job failed: it broke"):
        counting.workers(1, 2, 50)


def test_a_part_that_fails_costs_the_others_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> Part:
        raise ValueError("it broke")

    good = Part((Figure("good", "one", (1.0,)),))
    monkeypatch.setattr(bench, "parts", lambda size: {"bad": fail, "good": lambda: good})
    code, data, told = run(tmp_path)
    assert code == 1 and data["failed"] == ["bad failed: ValueError: it broke"]
    assert [one["name"] for one in data["figures"]] == ["one"] and "it broke" in told


def test_a_part_that_is_not_known_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["--only", "outsde"]) == 2
    told = capsys.readouterr().err.strip().splitlines()
    assert len(told) == 1 and "outsde" in told[0] and "outside, memory" in told[0]


@pytest.mark.parametrize("place", [".", "file/below.json"])
@pytest.mark.parametrize("main", [bench.main, load.main])
def test_a_place_that_cannot_be_written_is_told_before_anything_is_measured(
    main: Callable[[list[str]], int],
    place: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.chdir(tmp_path)
    assert main(["--quick", "--out", place]) == 2
    told = capsys.readouterr().err.strip().splitlines()
    assert len(told) == 1 and f"--out {place}: " in told[0]


def test_help_is_told_without_a_measurement() -> None:
    words = [sys.executable, "-m", "pipeline.bench", "--help"]
    told = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert told.returncode == 0 and "--only" in told.stdout and not told.stderr
