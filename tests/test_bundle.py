"""What `export` and `import` promise: everything arrives, once, whatever happened on the way."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from pipeline.records import JobRecord
from tests.bundling import (
    bundle_of,
    end,
    held,
    jobs,
    laptop,
    lines,
    rewritten,
    sweep_of,
    tell,
)
from tests.records_factory import make_record
from tests.sweeping import PROJECT
from tracking import artifacts
from tracking.recorder import Recorder


def test_all_that_a_run_says_arrives_in_the_other_store(tmp_path: Path) -> None:
    here, there = laptop(tmp_path / "here", "s1"), laptop(tmp_path / "there", "t1", machine="lab")
    own = held(there, every_tag=True)
    assert tell(there, "import", bundle_of(here)) == 0
    sent, both = held(here), held(there)
    assert len(sent) == 4
    assert {key: both[key] for key in sent} == sent
    (failed,) = (run for run in sent.values() if run["status"] == "FAILED")
    assert "error.txt" in failed["files"] and failed["parent"] == "s1"
    assert {key: held(there, every_tag=True)[key] for key in own} == own


def test_records_read_back_from_a_bundles_store_are_the_recorded_ones(tmp_path: Path) -> None:
    here, there = laptop(tmp_path / "here", "s1"), laptop(tmp_path / "there")
    tell(there, "import", bundle_of(here))
    store = Recorder(root=there).open()
    found = []
    for run in store.client.search_runs([store.experiment_id], "tags.`run.kind` = 'job'"):
        kept = Path(store.client.download_artifacts(run.info.run_id, "record.json"))
        found.append(JobRecord.from_json(kept.read_text(encoding="utf-8")))
    assert sorted(found, key=lambda r: r.name) == sorted(jobs("s1"), key=lambda r: r.name)


def test_a_second_import_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here, there = laptop(tmp_path / "here", "s1"), laptop(tmp_path / "there")
    file = bundle_of(here)
    tell(there, "import", file)
    before = held(there, every_tag=True)
    assert tell(there, "import", file) == 0
    assert "nothing changed" in capsys.readouterr().out
    assert tell(there, "import", bundle_of(here)) == 0  # written anew, at another time
    assert held(there, every_tag=True) == before


def test_importing_ones_own_sweeps_changes_nothing(tmp_path: Path) -> None:
    here = laptop(tmp_path / "here", "s1", "s2")
    before = held(here, every_tag=True)
    assert tell(here, "import", bundle_of(here)) == 0
    assert held(here, every_tag=True) == before


def test_what_comes_back_from_the_other_machine_changes_nothing(tmp_path: Path) -> None:
    here, there = laptop(tmp_path / "here", "s1"), laptop(tmp_path / "there", "t1", machine="lab")
    before = held(here, every_tag=True)
    tell(there, "import", bundle_of(here))
    assert tell(here, "import", bundle_of(there)) == 0
    after = held(here, every_tag=True)
    assert {key: after[key] for key in before} == before
    assert {key.partition("/")[0] for key in after} == {"s1", "t1"}
    third = laptop(tmp_path / "third")
    tell(third, "import", bundle_of(here))
    whole = held(third, every_tag=True)
    assert tell(third, "import", bundle_of(there)) == 0  # the same runs by another way
    assert held(third, every_tag=True) == whole


@pytest.mark.parametrize("call", ["create_run", "log_batch", "set_terminated", "put"])
def test_an_import_that_was_broken_off_is_completed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Wherever it breaks off: before the first call of a kind, the second, the third."""
    here = laptop(tmp_path / "here", "s1")
    file, sent = bundle_of(here), held(here)
    for calls in itertools.count():
        there = laptop(tmp_path / f"there{calls}")
        with monkeypatch.context() as broken:
            reached = _break(broken, there, call, calls)
            code = tell(there, "import", file)
        if not reached:
            assert code == 0 and calls == len(sent)
            return
        assert code == 130
        assert tell(there, "import", file) == 0
        assert held(there) == sent


def _break(patch: pytest.MonkeyPatch, folder: Path, call: str, after: int) -> list[bool]:
    """Ctrl-C in the call after so many of its kind; the answer is filled when it happened."""
    owner: Any = artifacts if call == "put" else type(Recorder(root=folder).open().client)
    usual, reached = getattr(owner, call), []
    left = itertools.count()

    def broken(*arguments: Any, **named: Any) -> Any:
        if next(left) == after:
            reached.append(True)
            raise KeyboardInterrupt
        return usual(*arguments, **named)

    patch.setattr(owner, call, broken)
    return reached


def test_an_import_that_was_killed_is_completed_by_the_next(tmp_path: Path) -> None:
    here, there = laptop(tmp_path / "here", "s1"), laptop(tmp_path / "there")
    file = bundle_of(here)
    kill = (
        "import os, sys\n"
        "from tracking import merge\n"
        "usual = merge.artifacts.put\n"
        "def put(client, run_id, uri, files):\n"
        "    usual(client, run_id, uri, files)\n"
        "    if 'rounds.csv' in files: os._exit(9)\n"
        "merge.artifacts.put = put\n"
        "from tracking.__main__ import main\n"
        "main(sys.argv[1:])\n"
    )
    arguments = ["--root", str(there), "import", str(file)]
    done = subprocess.run([sys.executable, "-c", kill, *arguments], cwd=PROJECT, timeout=120)
    assert done.returncode == 9
    assert "RUNNING" in {run["status"] for run in held(there).values()}
    assert tell(there, "import", file) == 0
    assert held(there) == held(here)


def test_a_sweep_that_went_on_is_brought_up_to_date_and_never_back(tmp_path: Path) -> None:
    here, there = laptop(tmp_path / "here"), laptop(tmp_path / "there")
    recorder, records = sweep_of(here, "s1"), jobs("s1")
    recorder.log_job(records[0])
    recorder.log_job(dataclasses.replace(records[1], status="failed", started_s=1.0))
    early = bundle_of(here).rename(tmp_path / "early.zip")
    tell(there, "import", early)
    assert {run["status"] for run in held(there).values()} == {"RUNNING", "FINISHED", "FAILED"}
    for record in records:
        recorder.log_job(record)
    end(recorder, records)
    late = bundle_of(here)
    assert tell(there, "import", late) == 0
    assert held(there) == held(here)
    assert tell(there, "import", early) == 0
    assert held(there) == held(here)


def test_a_bundle_reads_the_same_in_any_time_zone(tmp_path: Path) -> None:
    here = laptop(tmp_path / "here", "s1")
    found = []
    for zone in ("Pacific/Kiritimati", "America/Los_Angeles"):
        folder = laptop(tmp_path / zone.partition("/")[2])
        file = tmp_path / f"{folder.name}.zip"
        for arguments in (["--root", here, "export", file], ["--root", folder, "import", file]):
            command = [sys.executable, "-m", "tracking", *map(str, arguments)]
            environment = os.environ | {"TZ": zone}
            subprocess.run(command, cwd=PROJECT, env=environment, check=True, timeout=120)
        found.append(held(folder))
        with zipfile.ZipFile(file) as archive:
            assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert found[0] == found[1] == held(here)


def test_a_bundle_with_backslashes_reads_the_same(tmp_path: Path) -> None:
    here, there = laptop(tmp_path / "here", "s1"), laptop(tmp_path / "there")
    file = bundle_of(here)
    with zipfile.ZipFile(file) as archive:
        assert not [name for name in archive.namelist() if "\\" in name]
    copy = rewritten(file, name=lambda name: name.replace("/", "\\"))
    assert b"artifacts\\s1\\sweep\\figures\\speedup.png" in copy.read_bytes()
    assert tell(there, "import", copy) == 0
    assert held(there) == held(here)


def test_the_newest_sweep_is_exported_unless_others_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = laptop(tmp_path / "here", "s1", "s2", "s3")
    monkeypatch.chdir(tmp_path)
    assert tell(here, "export") == 0
    assert _sweeps(tmp_path / "specsweep-attic-s3.zip") == ["s3"]
    assert tell(here, "export", "--sweep", "s1", "--sweep", "s2") == 0
    assert _sweeps(tmp_path / "specsweep-attic-2-sweeps.zip") == ["s1", "s2"]
    assert tell(here, "export", "--all") == 0
    assert _sweeps(tmp_path / "specsweep-attic-3-sweeps.zip") == ["s1", "s2", "s3"]


def test_the_newest_sweep_is_one_of_this_machines_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not one that came with a bundle and is newer."""
    here, there = laptop(tmp_path / "here", "s1"), laptop(tmp_path / "there", "t1", machine="lab")
    tell(here, "import", bundle_of(there))
    monkeypatch.chdir(tmp_path)
    assert tell(here, "export") == 0
    assert _sweeps(tmp_path / "specsweep-attic-s1.zip") == ["s1"]


def _sweeps(file: Path) -> list[str]:
    with zipfile.ZipFile(file) as archive:
        return [sweep["id"] for sweep in json.loads(archive.read("manifest.json"))["sweeps"]]


def test_the_tables_of_a_bundle_are_tidy(tmp_path: Path) -> None:
    record = make_record()
    here = laptop(tmp_path / "here")
    recorder = sweep_of(here, "s1")
    recorder.log_job(record)
    with zipfile.ZipFile(bundle_of(here)) as archive:
        runs = {row["run"]: row for row in lines(archive.read("runs.jsonl"))}
        points = lines(archive.read("metrics.jsonl"))
    run = runs[f"s1/{record.digest}"]
    assert (run["parent"], run["status"]) == ("s1", "FINISHED")
    assert run["started_ms"] == record.started_s * 1000
    assert run["finished_ms"] == record.finished_s * 1000
    own = [point for point in points if point["run"] == run["run"]]
    assert len(own) == len(record.metrics) + sum(map(len, record.series.values()))
    ratios = [(p["step"], p["value"]) for p in own if p["metric"] == "time/pair_ratio"]
    assert ratios == record.series["time/pair_ratio"]


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (("--sweep", "nope"), "there is no sweep 'nope'"),
        (("no/folder/x.zip",), "there is no folder no/folder"),
    ],
)
def test_an_export_that_cannot_be_says_why(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    sentence: str,
) -> None:
    here = laptop(tmp_path / "here", "s1")
    assert tell(here, "export", *arguments) == 1
    told = capsys.readouterr().err
    assert sentence in told and told.count("\n") == 1


def test_an_empty_store_says_what_to_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tell(laptop(tmp_path / "here"), "export", tmp_path / "x.zip") == 1
    assert "run `make sweep`" in capsys.readouterr().err
    assert not (tmp_path / "x.zip").exists()


def test_an_export_replaces_a_bundle_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here = laptop(tmp_path / "here", "s1")
    assert bundle_of(here) == bundle_of(here)
    thesis = tmp_path / "thesis.zip"
    thesis.write_text("years of work", encoding="utf-8")
    assert tell(here, "export", thesis) == 1
    assert "is there and is no bundle" in capsys.readouterr().err
    assert thesis.read_text(encoding="utf-8") == "years of work"


def test_an_export_that_fails_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here = laptop(tmp_path / "here", "s1")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    assert tell(here, "export", tmp_path / "x.zip") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here"]


def test_an_export_in_an_older_bundles_place_says_what_it_replaces(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here = laptop(tmp_path / "here", "s1", "s2")
    file = tmp_path / "sweeps.zip"
    assert tell(here, "export", file, "--sweep", "s1") == 0
    assert "replaces" not in capsys.readouterr().out
    assert tell(here, "export", file, "--sweep", "s2") == 0
    assert "it replaces the bundle of sweep s1 that was there" in capsys.readouterr().out
