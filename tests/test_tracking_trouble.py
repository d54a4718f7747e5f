"""Whatever a store says, a person reads one sentence that names it and what to do."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from mlflow.exceptions import MlflowException

from tracking.location import locate
from tracking.trouble import StoreUnavailable, explain, unavailable


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (MlflowException("(sqlite3.OperationalError) database is locked"), "is locked by another"),
        (OSError(errno.ENOSPC, "No space left on device"), "is full"),
        (MlflowException("database or disk is full"), "is full"),
        (MlflowException("attempt to write a readonly database"), "is read-only"),
        (MlflowException("Detected out-of-date database schema (found"), "mlflow db upgrade"),
        (MlflowException("Can't locate revision identified by 'x'"), "update MLflow"),
        (MlflowException("403 Response body: 'Invalid Host header - po"), "--allowed-hosts"),
        (MlflowException("HTTPConnectionPool: Max retries exceeded"), "does not answer"),
        (MlflowException("quite\nanother thing"), "refused: quite"),
        (MlflowException("Cross-origin request blocked"), "refused: Cross-origin"),
    ],
)
def test_the_cause_is_told_in_one_sentence(error: Exception, told: str, tmp_path: Path) -> None:
    location = locate("postgresql://anna:secret@db/mlflow", tmp_path, {})
    sentence = explain(error, location)
    assert told in sentence
    assert "anna:***@db" in sentence
    assert "secret" not in sentence
    assert "\n" not in sentence


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    location = locate(f"sqlite:///{(tmp_path / 'file' / 'x.db').as_posix()}", tmp_path)
    with pytest.raises(StoreUnavailable, match="cannot be made: .*file.*: "):
        with unavailable(location):
            (tmp_path / "file" / "x").mkdir()


def test_the_cause_is_found_behind_other_errors(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="is full") as raised:
        with unavailable(locate(None, tmp_path, {})):
            try:
                raise OSError(errno.ENOSPC, "disk")
            except OSError as cause:
                raise MlflowException("cannot write") from cause
    assert isinstance(raised.value.__cause__, MlflowException)


def test_mistakes_of_the_program_are_not_taken_for_the_stores(tmp_path: Path) -> None:
    with pytest.raises(KeyError), unavailable(locate(None, tmp_path, {})):
        raise KeyError("job.digest")
