"""What stands on disk: whole or not at all, found again by name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipeline.records import JobRecord
from pipeline.store import Store, write_whole


def record(digest: str = "a" * 64, name: str = "int8 k=1 seed=0") -> JobRecord:
    return JobRecord(
        digest, name, "done", (), {"draft": "int8", "k": 1}, metrics={"count/alpha": 0.5}
    )


def planned(outputs: Path) -> Store:
    store = Store.create(outputs)
    store.write_plan({"jobs": []})
    store.make_latest()
    return store


def test_a_write_that_breaks_leaves_the_old_text_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "summary.json"
    write_whole(path, "old")

    def broken(descriptor: int) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="full"):
        write_whole(path, "new")
    assert path.read_text(encoding="utf-8") == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["summary.json"]


def test_records_are_read_back_by_digest(tmp_path: Path) -> None:
    store = planned(tmp_path)
    store.write_record(record())
    store.write_record(record("b" * 64))  # of the same name
    assert store.records() == {"a" * 64: record(), "b" * 64: record("b" * 64)}


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    store = planned(tmp_path)
    store.write_record(record())
    (path,) = store.folder.glob("jobs/*/record.json")
    path.write_text("{", encoding="utf-8")
    with pytest.raises(ValueError, match=r"record\.json cannot be read .* delete it"):
        store.records()


@pytest.mark.parametrize("links", [True, False])
def test_latest_leads_to_the_newest_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    if not links:  # as on a Windows whose user may not make links

        def refused(*args: object, **options: object) -> None:
            raise OSError("not permitted")

        monkeypatch.setattr(Path, "symlink_to", refused)
    planned(tmp_path)
    newest = planned(tmp_path)
    assert Store.find(tmp_path).folder == newest.folder


def test_a_sweep_is_found_by_name_or_path_and_a_wrong_name_is_answered(tmp_path: Path) -> None:
    store = planned(tmp_path)
    assert Store.find(tmp_path, store.sweep_id).folder == store.folder
    assert Store.find(tmp_path, str(store.folder)).folder == store.folder
    with pytest.raises(ValueError, match=f"no sweep nonsense .* there are {store.sweep_id}"):
        Store.find(tmp_path, "nonsense")


def test_without_a_sweep_there_is_nothing_to_resume(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="`make sweep` starts one"):
        Store.find(tmp_path / "outputs")


def test_one_process_at_a_time_works_on_a_sweep(tmp_path: Path) -> None:
    store = planned(tmp_path)
    with (
        store.held(),
        pytest.raises(ValueError, match="another process"),
        Store(store.folder).held(),
    ):
        pass
    litter = store.folder / ".summary.json.123.abcd"  # a write that was cut off
    litter.touch()
    with store.held():
        assert not litter.exists()
