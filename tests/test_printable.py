"""A terminal shows text of unknown origin, and never obeys it."""

from __future__ import annotations

import os
import shlex
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.bundling import bundle_of, laptop, rewritten, tell
from tracking.printable import is_printable, printable
from tracking.transfer import import_command


@pytest.mark.parametrize(
    "text, shown",
    [
        ("attic", "attic"),
        ("Übung Ω 机器\u00a0🧑\u200d💻", "Übung Ω 机器\u00a0🧑\u200d💻"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("two\nlines\r\ttab", "two\\nlines\\r\\ttab"),
        ("\u202egnp.exe\u2066", "\\u202egnp.exe\\u2066"),
        ("\x9b2J\x7f\ud800", "\\x9b2J\\x7f\\ud800"),
        ("a\u2028b", "a\\u2028b"),
    ],
)
def test_what_a_terminal_would_obey_is_spelled_out(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert is_printable(text) is (text == shown)
    assert is_printable(shown)


@pytest.mark.parametrize("place", ["program", "format", "member", "sha256"])
def test_no_escape_of_a_bundle_reaches_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J"
    good = bundle_of(laptop(tmp_path / "here", "s1"))
    capsys.readouterr()
    if place == "member":
        bad = rewritten(good, lambda members: members.update({f"artifacts/{evil}": b""}))
    else:
        told: dict[str, Any] = (
            {"program": evil, "schema": 2} if place == "program" else {place: evil}
        )
        if place == "sha256":
            told = {"members": {evil: {"sha256": evil, "bytes": 0}}}
        bad = rewritten(good, manifest=lambda manifest: manifest.update(told))
    assert tell(tmp_path, "import", bad) == 1
    answer = capsys.readouterr()
    assert is_printable(answer.err.removesuffix("\n")) and answer.out == ""


@pytest.mark.skipif(os.name == "nt", reason="how POSIX shells quote")
@pytest.mark.parametrize(
    "name",
    ["x.zip", "two words.zip", "don't $(rm).zip", 'a "b".zip', "50%.zip", "a#b.zip", "ö.zip"],
)
def test_the_command_for_a_file_is_one_that_a_shell_takes(name: str) -> None:
    words = shlex.split(import_command(name))
    if words[0] == "make":  # which gives the name to the shell between double quotes
        assert words == ["make", "import", f"FILE={name}"] and not set(name) & set('"$`\\#')
    else:
        assert words[1:] == ["-m", "tracking", "import", name]


def test_an_export_tells_a_command_with_the_file_quoted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here = laptop(tmp_path / "here", "s1")
    assert tell(here, "export", tmp_path / "two words.zip") == 0
    assert "make import 'FILE=two words.zip'" in capsys.readouterr().out or os.name == "nt"
    assert zipfile.is_zipfile(tmp_path / "two words.zip")
