"""The load experiment: its load ends with it, and what it says follows from what it measured."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median, pstdev

import psutil
import pytest
from rich.console import Console

from pipeline.bench import load, sides
from pipeline.bench.bursts import LONGEST_S, SHORTEST_S, bursts, bursty_load
from pipeline.bench.designs import DESIGNS, Reported, excludes_1
from pipeline.bench.longer import Longer
from pipeline.bench.spread import Cell, Nulls, judged
from pipeline.job import timed_sides
from pipeline.progress import Show

ROOT = Path(__file__).resolve().parent.parent
WAIT_S = 20


def run(tmp_path: Path, *arguments: str) -> tuple[int, Path]:
    out = tmp_path / "load.json"
    own = ["--out", str(out), "--lock", str(tmp_path / "lock"), "--half-s", "0.001"]
    line = [*own, *arguments]
    return load.main(line, Show(Console(file=sys.stderr, width=160))), out


def load_processes() -> list[int]:
    """Load processes that this one has started."""
    found = psutil.Process().children(recursive=True)
    return [child.pid for child in found if "pipeline.bench.bursts" in child.cmdline()]


def ended(pids: list[int]) -> bool:
    """Whether all of them end soon."""
    until = time.monotonic() + WAIT_S
    while any(map(psutil.pid_exists, pids)) and time.monotonic() < until:
        time.sleep(0.1)
    return not any(map(psutil.pid_exists, pids))


def cell(load_: str, design: str, ratios: list[float]) -> Cell:
    return Cell("d", load_, design, tuple(Reported(x, (x,), (1.0,)) for x in ratios))


def test_bursts_are_as_long_as_they_say_and_the_same_for_a_seed() -> None:
    one, same, other = (list(itertools.islice(bursts(seed), 50)) for seed in (3, 3, 4))
    assert one == same != other
    assert all(SHORTEST_S <= x <= LONGEST_S for pair in one for x in pair)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_no_load_is_left_however_the_experiment_ends(error: type[BaseException]) -> None:
    with pytest.raises(error), bursty_load(cores=[0]) as pids:
        assert len(pids) == 1 and load_processes() == pids
        raise error
    assert not load_processes() and ended(pids)


def test_the_load_ends_with_a_parent_that_was_killed() -> None:
    code = (
        "import time; from pipeline.bench.bursts import bursty_load\n"
        "with bursty_load(cores=[0]) as pids: print(*pids, flush=True); time.sleep(60)"
    )
    words = [sys.executable, "-c", code]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        time.sleep(1)  # it has begun to watch
        parent.kill()
    assert len(pids) == 1 and ended(pids)


def test_a_load_that_ended_by_itself_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="the load did not last"), bursty_load(cores=[0]) as pids:
        psutil.Process(pids[0]).kill()
        psutil.Process().children()  # let it be seen
        time.sleep(0.5)


def test_ctrl_c_in_the_experiment_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def stop(*_: object) -> Reported:
        seen.extend(load_processes())
        raise KeyboardInterrupt

    monkeypatch.setattr(load, "null", stop)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, "--drafts", "bigram", "--repeats", "1", "--pairs", "1", "--tokens", "6")
    assert seen and not load_processes() and ended(seen)


def test_what_is_written_has_every_half_and_agrees_with_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code, out = run(tmp_path, *"--drafts bigram --repeats 2 --pairs 2 --tokens 8 --nulls 2".split())
    data = json.loads(out.read_text(encoding="utf-8"))
    told = capfd.readouterr().err
    assert code == 0 and "this takes about" in told.splitlines()[0]
    places = {(one["load"], one["design"]) for one in data["cells"]}
    assert places == set(itertools.product(("quiet", "loaded"), DESIGNS))
    for one in data["cells"]:
        ratios = [repeat["ratio"] for repeat in one["repeats"]]
        assert one["median"] == median(ratios)
        assert one["spread"] == pstdev(ratios) / median(ratios)
        for repeat in one["repeats"]:
            a, b = repeat["baseline_s"], repeat["speculative_s"]
            pairs = [x / y for x, y in zip(a, b, strict=True)]
            apart = median(a) / median(b)
            assert repeat["ratio"] == pytest.approx(
                apart if one["design"] == "blocks" else median(pairs)
            )
    assert data["nulls"]["count"] == 2 and len(data["sentences"]) == 4
    assert all(sentence in told for sentence in data["sentences"])


def test_every_design_decodes_the_same_texts() -> None:
    timed = timed_sides(sides.specs("draft=bigram", "tokens=10")[0])[1]
    for way, design in DESIGNS.items():
        found = design(Longer(timed, 2), 2, 1)
        assert len(found.baseline_s) == len(found.speculative_s) == 2, way
        assert min(found.baseline_s + found.speculative_s) > 0


def test_a_longer_half_is_the_same_text_again_and_again() -> None:
    timed = timed_sides(sides.specs("draft=bigram", "tokens=10")[0])[1]
    alone = timed.speculative()
    rounds, _ = alone.advance(10)
    for stops in ([30], [4, 10, 11, 25, 30], range(1, 31)):
        side = Longer(timed, 3).speculative()
        done = [side.advance(stop) for stop in stops]
        assert sum(tokens for _, tokens in done) == 30
        assert sum(some for some, _ in done) == 3 * rounds
        assert side.advance(30) == (0, 0)


def test_a_half_is_at_least_one_text_and_as_many_as_fill_the_time() -> None:
    timed = timed_sides(sides.specs("draft=bigram", "tokens=10")[0])[1]
    assert Longer.of(timed, 1e-9).tokens == 10
    assert Longer.of(timed, 0.5).tokens > 20
    with pytest.raises(ValueError, match="give 1 or more"):
        Longer(timed, 0)


@pytest.mark.parametrize(
    "fine, quiet, words",
    [
        ([1.0, 1.01], [1.0, 1.0], ["reached", "reached", "reached"]),
        ([1.0, 1.03], [1.0, 1.0], ["reached", "missed", "reached"]),
        ([1.0, 1.08], [1.0, 1.0], ["missed", "missed", "missed"]),
        ([1.0, 1.0], [1.1, 1.1], ["reached", "reached", "missed"]),
    ],
)
def test_fine_pieces_are_held_against_the_others_and_against_quiet(
    fine: list[float], quiet: list[float], words: list[str]
) -> None:
    cells = [
        cell("quiet", "fine pieces", quiet),
        cell("loaded", "fine pieces", fine),
        cell("loaded", "whole halves", [1.0, 1.1]),
        cell("loaded", "blocks", [1.0, 1.12]),
    ]
    assert [sentence.rsplit(" ", 1)[1] for sentence in judged(cells, None)] == words


def test_a_null_excludes_1_where_all_its_pairs_lie_on_one_side() -> None:
    holds = Reported(1.0, (1.0, 1.1, 0.9), (1.0, 1.0, 1.0))
    above = Reported(1.1, (1.1, 1.2, 1.05), (1.0, 1.0, 1.0))
    below = Reported(0.9, (0.9, 0.8, 0.95), (1.0, 1.0, 1.0))
    assert [excludes_1(one) for one in (holds, above, below)] == [False, True, True]
    nulls = Nulls((holds,) * 98 + (above, below))
    assert nulls.excluding == 2 and nulls.expected == 0.25
    assert "2 of 100 exclude 1" in nulls.sentence() and nulls.sentence().endswith("reached")
    assert Nulls((holds,) * 90 + (above,) * 10).sentence().endswith("missed")


@pytest.mark.parametrize(
    "argument",
    [["--repeats", "0"], ["--pairs", "0"], ["--drafts", "int9"], ["--tokens", "400"]],
)
def test_what_cannot_be_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], argument: list[str]
) -> None:
    code, out = run(tmp_path, *argument)
    told = capsys.readouterr().err.strip().splitlines()
    assert code == 2 and len(told) == 1 and told[0].startswith("bench: ") and not out.exists()
