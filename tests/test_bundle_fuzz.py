"""Whatever happens to a bundle's bytes: the same runs, or one sentence and nothing written."""

from __future__ import annotations

import json
import random
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bundling import as_lines, lines, rewritten, tell
from tests.tracking_store import project
from tracking.bundle import BundleRun
from tracking.bundle_manifest import BundleRefused
from tracking.bundle_read import opened
from tracking.printable import is_printable

GOOD = Path(__file__).parent / "bundles" / "schema-1.zip"
ODD: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2**63,
    10**400,
    0.5,
    1e308,
    "",
    "\0",
    "\x1b[2J",
    "../..",
    "s1",
    "\ud800",
    "x" * 10_000,
    "9" * 400,
    [],
    [[]],
    {},
    {"": ""},
    ["s1"],
    {"mlflow.runName": "x"},
)


def outcome(file: Path) -> tuple[BundleRun, ...] | str:
    """The runs, every byte of their files read; or why the bundle was refused."""
    try:
        with opened(file) as bundle:
            for run in bundle.runs:
                for path in run.files:
                    with bundle.open(run, path) as content:
                        content.read()
            return bundle.runs
    except BundleRefused as refused:
        told = str(refused)
        assert is_printable(told) and file.name in told and len(told) < 2000, told
        return told


def flipped(draw: random.Random, good: bytes) -> bytes:
    """A bit or a stretch of bytes is another, missing or doubled, or the end is cut off."""
    at, broken = draw.randrange(len(good)), bytearray(good)
    if draw.random() < 0.3:  # the directory at the end is where a zip is weakest
        at = len(good) - 1 - draw.randrange(min(len(good), 1200))
    length = draw.choice((1, 1, 2, 4, 100))
    kind = draw.randrange(6)
    if kind == 0:
        broken[at] ^= 1 << draw.randrange(8)
    elif kind == 1:
        broken[at : at + length] = draw.randbytes(len(broken[at : at + length]))
    elif kind == 2:
        broken[at : at + length] = b"\xff" * len(broken[at : at + length])
    elif kind == 3:
        del broken[at : at + length]
    elif kind == 4:
        broken[at:at] = broken[at : at + length]
    else:
        del broken[at:]
    return bytes(broken)


def test_damaged_bytes_are_found_or_harmless(tmp_path: Path) -> None:
    good, draw, file = GOOD.read_bytes(), random.Random(1), tmp_path / "x.zip"
    whole = outcome(GOOD)
    refused = 0
    for number in range(300):
        broken = flipped(draw, good)
        file.write_bytes(broken)
        found = outcome(file)
        assert isinstance(found, str) or found == whole, f"damage {number} changed what is read"
        refused += isinstance(found, str)
    assert 200 < refused < 300


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value inside."""
    yield path
    inner: Any = ()
    if isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, list):
        inner = enumerate(value)
    for key, below in inner:
        yield from places(below, (*path, key))


def odd(draw: random.Random, told: dict[str, Any]) -> None:
    """Something inside is another thing, or missing."""
    *way, last = draw.choice([path for path in places(told) if path])
    within: Any = told
    for key in way:
        within = within[key]
    if draw.random() < 0.2:
        del within[last]
    else:
        within[last] = draw.choice(ODD)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    (tmp_path / "good.zip").write_bytes(GOOD.read_bytes())
    return tmp_path / "good.zip"


def test_a_manifest_with_odd_values_is_refused_or_says_the_same_runs(copy: Path) -> None:
    draw, whole, refused = random.Random(2), outcome(GOOD), 0
    for _ in range(150):
        found = outcome(rewritten(copy, manifest=lambda told: odd(draw, told)))
        assert isinstance(found, str) or found == whole
        refused += isinstance(found, str)
    assert refused > 75


@pytest.mark.parametrize("table", ["runs.jsonl", "metrics.jsonl"])
def test_a_table_with_odd_values_is_refused_or_can_be_merged(
    copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], table: str
) -> None:
    """Its hashes are true: somebody wrote it so. What is not refused the store takes too."""
    draw, taken = random.Random(3), 0

    def change(members: dict[str, bytes]) -> None:
        rows = lines(members[table])
        odd(draw, rows[draw.randrange(len(rows))])
        members[table] = as_lines(rows)

    for number in range(100):
        changed = rewritten(copy, change)
        if isinstance(outcome(changed), str) or taken == 6:
            continue
        taken += 1
        there = tmp_path / f"there{number}"
        there.mkdir()
        assert tell(project(there), "import", changed) == 0, capsys.readouterr().err
    assert taken


def test_a_refused_file_is_one_sentence_of_the_command_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draw, file, there = random.Random(4), tmp_path / "x.zip", tmp_path / "there"
    there.mkdir()
    for _ in range(20):
        file.write_bytes(GOOD.read_bytes())
        while not isinstance(outcome(file), str):
            file.write_bytes(flipped(draw, GOOD.read_bytes()))
        assert tell(there, "import", file) == 1
        told = capsys.readouterr()
        assert told.out == "" and told.err.count("\n") == 1 and "Traceback" not in told.err
        assert not list(there.iterdir())


def test_the_oddest_json_is_refused(copy: Path) -> None:
    for text in (
        "[" * 200_000,
        '{"a":' * 200_000,
        '{"format": 1, "format": 2}',
        "\ufeff{}",
        "1e999",
    ):
        with zipfile.ZipFile(copy, "w") as archive:
            archive.writestr("manifest.json", text.encode())
        assert isinstance(outcome(copy), str)
    with zipfile.ZipFile(copy, "w") as archive:
        archive.writestr("manifest.json", json.dumps({"format": "specsweep bundle", "schema": 1}))
    assert "'members' is missing" in str(outcome(copy))
