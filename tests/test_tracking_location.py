"""The store's address is checked before anything runs, and means one place whatever the folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from pipeline.privacy import hide_password
from tracking.location import locate


def test_the_default_is_the_projects_own_database_whatever_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = locate(None, tmp_path, {})
    monkeypatch.chdir(Path(tmp_path.anchor))
    assert locate(None, tmp_path, {}) == here
    assert here.file == tmp_path.resolve() / "mlflow.db"
    assert here.ours
    assert here.artifacts == (tmp_path.resolve() / "mlartifacts").as_uri()


@pytest.mark.parametrize(("name", "sign"), [("what?", "?"), ("a%41b", "%41")])
def test_a_folder_whose_name_an_address_cannot_hold_is_refused(
    tmp_path: Path, name: str, sign: str
) -> None:
    """The database would be somewhere else: beside the folder, or in one of another name."""
    with pytest.raises(
        ValueError, match="rename the folder, or set MLFLOW_TRACKING_URI"
    ) as refused:
        locate(None, tmp_path / name, {})
    assert f"hold the {sign} in its path" in str(refused.value)


@pytest.mark.parametrize("name", ["50%", "a#b", "a b", "\u00fc"])
def test_the_database_is_in_the_projects_folder_whatever_else_that_is_called(
    tmp_path: Path, name: str
) -> None:
    own = locate(None, tmp_path / name, {})
    assert own.file == tmp_path.resolve() / name / "mlflow.db"
    assert make_url(own.uri).database == own.file.as_posix()
    assert locate(own.uri, tmp_path, {}).file == own.file


def test_the_environment_is_honoured_and_an_explicit_address_wins(tmp_path: Path) -> None:
    environ = {"MLFLOW_TRACKING_URI": "http://localhost:5000/"}
    assert locate(None, tmp_path, environ).uri == "http://localhost:5000"
    assert locate("http://other:1", tmp_path, environ).uri == "http://other:1"
    assert locate(None, tmp_path, {"MLFLOW_TRACKING_URI": " "}).ours


def test_a_relative_database_is_where_it_was_named_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = locate("sqlite:///runs.db", tmp_path / "elsewhere", {})
    assert found.file == tmp_path.resolve() / "runs.db"
    assert found.uri == f"sqlite:///{(tmp_path.resolve() / 'runs.db').as_posix()}"
    assert not found.ours


@pytest.mark.parametrize(
    "uri", ["file:///tmp/mlruns", "file:mlruns", "mlruns", "./mlruns", "/tmp/x", r"C:\mlruns"]
)
def test_a_folder_is_refused_with_the_fix(uri: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="sqlite:///PATH/mlflow.db") as refused:
        locate(uri, tmp_path, {})
    assert "is a folder" in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("uri", ["ftp://host/x", "sqlite://", "sqlite:///:memory:"])
def test_an_address_that_keeps_nothing_is_refused(uri: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="mlflow.db"):
        locate(uri, tmp_path, {})


def test_passwords_are_not_shown(tmp_path: Path) -> None:
    uri = "postgresql://anna:secret@db.example:5432/mlflow"
    assert hide_password(uri) == "postgresql://anna:***@db.example:5432/mlflow"
    assert "secret" not in locate(uri, tmp_path, {}).shown


def test_checking_an_address_and_importing_the_recorder_do_not_load_mlflow_torch_or_hydra(
    tmp_path: Path,
) -> None:
    code = (
        "import sys; from tracking.recorder import Recorder; "
        f"Recorder(root={str(tmp_path)!r}).check(); "
        "print([m for m in ('mlflow', 'torch', 'hydra', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).resolve().parents[1],
    )
    assert done.stdout.strip() == "[]"
    assert list(tmp_path.iterdir()) == []
