"""Commands that only read leave a folder as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tracking_store import project
from tracking.__main__ import main
from tracking.recorder import Recorder

READING = ("show", "export", "compare")


@pytest.mark.parametrize("command", READING)
def test_where_there_is_no_store_none_is_made_and_one_sentence_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert main(["--root", str(tmp_path), command]) == 1
    told = capsys.readouterr().err
    assert "there is no sweep" in told and "`make sweep`" in told and told.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", READING)
def test_a_database_that_is_named_and_not_there_is_not_made_either(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{(tmp_path / 'a/b.db').as_posix()}")
    assert main(["--root", str(tmp_path), command]) == 1
    assert "there is no sweep" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", READING)
def test_a_project_folder_that_is_not_there_is_refused_and_not_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    root = tmp_path / "nowhere"
    assert main(["--root", str(root), command]) == 1
    assert capsys.readouterr().err.startswith(f"there is no folder {root}: --root is")
    assert not root.exists()


def test_a_store_without_our_experiment_is_read_and_left_without_it(tmp_path: Path) -> None:
    assert main(["--root", str(project(tmp_path)), "compare"]) == 1
    assert Recorder(root=tmp_path).open_existing() is None
    assert Recorder(root=tmp_path, experiment="template").open_existing() is not None
