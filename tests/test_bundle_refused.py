"""A file that is damaged, foreign, newer or hostile: one sentence, and nothing is written."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import secrets
import stat
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.bundling import (
    as_lines,
    bundle_of,
    held,
    laptop,
    lines,
    listed,
    rewritten,
    sweep_of,
    tell,
)
from tests.records_factory import make_record
from tracking import bundle_read, bundle_tables, zips
from tracking.bundle import SCHEMA
from tracking.bundle_json import parsed
from tracking.bundle_manifest import BundleRefused
from tracking.bundle_row import RECORD_SCHEMA

Members = dict[str, bytes]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("good")
    return bundle_of(laptop(folder / "here", "s1"))


@pytest.fixture
def refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[[Path], str]:
    """Imports a file where there is no store yet; the sentence why it was refused."""

    def attempt(file: Path) -> str:
        folder = tmp_path / "there"
        folder.mkdir()
        capsys.readouterr()
        assert tell(folder, "import", file) == 1
        told = capsys.readouterr()
        assert not list(folder.iterdir()), "something was written"
        assert told.out == "" and told.err.count("\n") == 1 and "Traceback" not in told.err
        return told.err

    return attempt


def test_a_good_bundle_is_not_refused(good: Path, tmp_path: Path) -> None:
    """Rewriting alone is not what the other tests are refused for."""
    assert tell(laptop(tmp_path / "there"), "import", rewritten(good)) == 0


@pytest.mark.parametrize("place", [0.1, 0.5, 0.9, 0.999])
def test_a_bundle_that_was_cut_off_is_refused(
    good: Path, tmp_path: Path, refused: Callable[[Path], str], place: float
) -> None:
    content = good.read_bytes()
    (tmp_path / "cut.zip").write_bytes(content[: int(len(content) * place)])
    assert "no bundle, or was cut off" in refused(tmp_path / "cut.zip")


def test_a_flipped_bit_anywhere_is_found(
    good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the packed bytes of each member; the import must not reach the store."""
    content = good.read_bytes()
    with zipfile.ZipFile(good) as archive:
        places = [(i.filename, i.header_offset + 30 + len(i.filename)) for i in archive.infolist()]
        middles = [
            at + i.compress_size // 2 for (_, at), i in zip(places, archive.infolist(), strict=True)
        ]
    (tmp_path / "there").mkdir()
    for middle in middles:
        broken = bytearray(content)
        broken[middle] ^= 0x10
        (tmp_path / "bit.zip").write_bytes(broken)
        assert tell(tmp_path / "there", "import", tmp_path / "bit.zip") == 1
        assert "bit.zip is damaged" in capsys.readouterr().err
    assert not list((tmp_path / "there").iterdir())


def _without(end: str) -> Callable[[Members], None]:
    def change(members: Members) -> None:
        del members[next(name for name in members if name.endswith(end))]

    return change


def _rows(table: str, **changes: Any) -> Callable[[Members], None]:
    """The table's last row with other values."""

    def change(members: Members) -> None:
        rows = lines(members[table])
        rows[-1] |= changes
        members[table] = as_lines(rows)

    return change


def _machine(name: str) -> Callable[[Members], None]:
    def change(members: Members) -> None:
        rows = lines(members["runs.jsonl"])
        rows[-1]["tags"]["machine.name"] = name
        members["runs.jsonl"] = as_lines(rows)

    return change


def _instead(old: bytes, new: bytes) -> Callable[[Members], None]:
    """The first row of the metrics with other bytes."""

    def change(members: Members) -> None:
        members["metrics.jsonl"] = members["metrics.jsonl"].replace(old, new, 1)

    return change


def _double_run(members: Members) -> None:
    members["runs.jsonl"] += members["runs.jsonl"].splitlines()[-1] + b"\n"


def _no_parent(members: Members) -> None:
    members["runs.jsonl"] = as_lines([row for row in lines(members["runs.jsonl"]) if row["job"]])
    points = lines(members["metrics.jsonl"])
    members["metrics.jsonl"] = as_lines([point for point in points if "/" in point["run"]])
    for name in [name for name in members if name.startswith("artifacts/s1/sweep/")]:
        del members[name]


@pytest.mark.parametrize(
    "change, sentence",
    [
        (_without("runs.jsonl"), "runs.jsonl is missing"),
        (_without("metrics.jsonl"), "metrics.jsonl is missing"),
        (_rows("runs.jsonl", status="DONE"), "unknown status DONE"),
        (_rows("runs.jsonl", started_ms=1.5), "impossible time 1.5"),
        (_rows("runs.jsonl", started_ms="2026-01-01 12:00"), "impossible time"),
        (_rows("runs.jsonl", name=None), "no text"),
        (_rows("runs.jsonl", name="\x1b[2J gone"), "holds control characters: '\\x1b[2J gone'"),
        (_rows("runs.jsonl", status="\x1b[2J"), "holds control characters"),
        (_rows("runs.jsonl", source_id="a b"), "no name of a run"),
        (_rows("runs.jsonl", run=["s1"]), "no row of a run"),
        (_rows("runs.jsonl", tags=[]), "should be at most 100, by name"),
        (_machine("attic\u202egnp.exe"), "machine.name of run"),
        (_rows("runs.jsonl", params=["k"]), "a parameter of run"),
        (_rows("runs.jsonl", params={"k\n": "1"}), "impossible name"),
        (_rows("runs.jsonl", params={"a//b": "1"}), "impossible name"),
        (_rows("runs.jsonl", params={"../x": "1"}), "impossible name"),
        (_rows("runs.jsonl", params={"k": "half a character \ud800"}), "no text"),
        (_rows("runs.jsonl", tags={"note": "x" * 9000}), "at most 8000"),
        (_rows("runs.jsonl", tags={}), "another run's tags"),
        (_rows("runs.jsonl", sweep="../s1"), "no name of a sweep"),
        (_rows("runs.jsonl", sweep="s2"), "is called s2/"),
        (_rows("metrics.jsonl", value=float("nan")), "NaN is no number"),
        (_rows("metrics.jsonl", value=float("-inf")), "-Infinity is no number"),
        (_instead(b'"value": ', b'"value": 1e999, "was": '), "is inf, which is no number"),
        (_instead(b'"value": ', b'"value": true, "was": '), "is True, which is no number"),
        (_instead(b'"value": ', b'"value": 7, "value": '), "the key 'value' is there twice"),
        (_rows("metrics.jsonl", value="1.0"), "no number"),
        (_rows("metrics.jsonl", value=10**400), "no number"),
        (_rows("metrics.jsonl", step=0.5), "impossible step"),
        (_rows("metrics.jsonl", run="s1/other"), "belongs to no run"),
        (_double_run, "is there twice"),
        (_no_parent, "the sweep of run"),
        (lambda members: members.update({"metrics.jsonl": b"[1, 2]\n"}), "no row"),
        (lambda members: members.update({"runs.jsonl": b"[" * 100_000}), "nested without end"),
        (lambda members: members.update({"artifacts/x.txt": b"x"}), "belongs to no run"),
        (lambda members: members.update({"artifacts/s1/other/x.txt": b"x"}), "belongs to no run"),
        (lambda members: members.update({"notes.txt": b"x"}), "is damaged"),
    ],
)
def test_a_table_that_makes_no_sense_is_refused(
    good: Path, refused: Callable[[Path], str], change: Callable[[Members], None], sentence: str
) -> None:
    told = refused(rewritten(good, change))
    assert sentence in told and "nothing was imported" in told


def _wrong(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda told: told["members"]["runs.jsonl"].update({key: value})


@pytest.mark.parametrize(
    "manifest, sentence",
    [
        (_wrong("sha256", "0" * 64), "runs.jsonl is not as it was written"),
        (_wrong("bytes", 7), "runs.jsonl has another size"),
        (lambda told: told["members"].update({"artifacts/s1/sweep/x": {}}), "x is missing"),
        (lambda told: told["members"].pop("artifacts/s1/sweep/summary.md"), "not in its manifest"),
        (lambda told: told.pop("members"), "members"),
        (lambda told: told.update(schema="1"), "no schema but '1'"),
        (lambda told: told.update(schema=1.0), "no schema but '1.0'"),
        (lambda told: told.update(schema=True), "no schema but 'True'"),
        (lambda told: told.update(schema=0), "no schema but '0'"),
        (lambda told: told.update(exported="2026-02-30T10:00:00.000Z"), "day is out of range"),
        (lambda told: told.update(exported="tomorrow"), "impossible time 'tomorrow'"),
        (lambda told: told.update(exported="9999"), "impossible time '9999'"),
        (lambda told: told.update(machines=["\x1b]0;attic\x07"]), "control characters"),
        (lambda told: told.update(program=3), "manifest is not what"),
    ],
)
def test_members_that_are_not_as_the_manifest_says_are_refused(
    good: Path,
    refused: Callable[[Path], str],
    manifest: Callable[[dict[str, Any]], None],
    sentence: str,
) -> None:
    told = refused(rewritten(good, manifest=manifest))
    assert "is damaged" in told and sentence in told


def test_a_foreign_file_is_refused(good: Path, tmp_path: Path, refused: Any) -> None:
    with zipfile.ZipFile(tmp_path / "holiday.zip", "w") as archive:
        archive.writestr("photo.jpg", b"\xff\xd8")
    assert "no bundle of specsweep's" in refused(tmp_path / "holiday.zip")


@pytest.mark.parametrize("content", [b"", b"not a zip at all", b"PK\x03\x04"])
def test_what_is_no_zip_is_refused(tmp_path: Path, refused: Any, content: bytes) -> None:
    (tmp_path / "x.zip").write_bytes(content)
    told = refused(tmp_path / "x.zip")
    assert "is no bundle" in told and told.endswith("; nothing was imported\n")


def test_another_programs_manifest_is_refused(good: Path, refused: Any) -> None:
    other = rewritten(good, manifest=lambda told: told.update(format="something else"))
    assert "no bundle of specsweep's" in refused(other)


def test_a_missing_file_is_named_with_its_folder(
    tmp_path: Path, refused: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert f"there is no file {tmp_path / 'missing.zip'}" in refused(Path("missing.zip"))


def test_a_folder_and_a_pipe_are_not_called_missing(tmp_path: Path, refused: Any) -> None:
    assert f"{tmp_path} is a folder: name the file" in refused(tmp_path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        (tmp_path / "there").rmdir()
        assert f"{tmp_path / 'pipe'} is a pipe or a device" in refused(tmp_path / "pipe")


def _tag(name: str, text: str) -> Callable[[Members], None]:
    def change(members: Members) -> None:
        rows = lines(members["runs.jsonl"])
        rows[-1]["tags"][name] = text
        members["runs.jsonl"] = as_lines(rows)

    return change


def _param(name: str, text: str) -> Callable[[Members], None]:
    def change(members: Members) -> None:
        rows = lines(members["runs.jsonl"])
        rows[-1]["params"][name] = text
        members["runs.jsonl"] = as_lines(rows)

    return change


def _record(change: Callable[[dict[str, Any]], object]) -> Callable[[Members], None]:
    """Another `record.json` of the last run."""

    def changed(members: Members) -> None:
        key = lines(members["runs.jsonl"])[-1]["run"]
        data = json.loads(members[f"artifacts/{key}/record.json"])
        change(data)
        members[f"artifacts/{key}/record.json"] = json.dumps(data).encode()

    return changed


@pytest.mark.parametrize(
    "change, sentence",
    [
        (_tag("code.digest", "\x1b[31mPWN\x07"), "the tag code.digest of run"),
        (_param("target", "\x9b2J"), "the parameter target of run"),
        (_param("draft", "x\u202ey"), "the parameter draft of run"),
        (_param("k", "many"), "the parameter k of run"),
        (_param("k_most", "auto"), "the parameter k_most of run"),
        (_record(lambda data: data.pop("digest")), "'digest' is missing"),
        (_record(lambda data: data.update(schema="x")), "it has no schema"),
        (_record(lambda data: data.update(mood="good")), "'mood' is unknown"),
        (_record(lambda data: data["params"].update(k="many")), "'params' has another form"),
        (_record(lambda data: data.update(schema=RECORD_SCHEMA + 1)), "update specsweep"),
    ],
)
def test_a_run_that_show_or_compare_could_not_tell_is_refused(
    good: Path, refused: Callable[[Path], str], change: Callable[[Members], None], sentence: str
) -> None:
    told = refused(rewritten(good, change))
    assert sentence in told and "nothing was imported" in told and "\x1b" not in told


def test_texts_of_several_lines_and_prompts_arrive(good: Path, tmp_path: Path) -> None:
    def change(members: Members) -> None:
        _tag("job.command", "python -m pipeline.sweep 'prompt=To be\n\tor not'")(members)
        _tag("mlflow.note.content", "a note\r\n")(members)
        _param("prompt", "To be,\r\nor\xad not")(members)

    assert tell(laptop(tmp_path / "there"), "import", rewritten(good, change)) == 0


def test_a_newer_bundle_is_refused_and_names_the_version_that_can(good: Path, refused: Any) -> None:
    def newer(told: dict[str, Any]) -> None:
        told.update(schema=SCHEMA + 1, program="9.8.7", members="in a form of its own")

    told = refused(rewritten(good, manifest=newer))
    assert f"schema {SCHEMA + 1}" in told and "specsweep 9.8.7 or newer" in told


def test_a_newer_bundle_is_no_foreign_file_whatever_else_is_new_in_it(
    good: Path, refused: Any
) -> None:
    """Names and packing that this version would refuse; who wrote it is in a new place too."""

    def newer(told: dict[str, Any]) -> None:
        told.update(schema=SCHEMA + 1, members=[], program={"name": "specsweep"})

    copy = rewritten(good, lambda members: members.update({"what?": b"x"}), newer)
    with zipfile.ZipFile(copy, "a", zipfile.ZIP_LZMA) as archive:
        archive.writestr("packed.otherwise", b"x")
    told = refused(copy)
    assert f"has schema {SCHEMA + 1}" in told and "update to a newer specsweep" in told


def test_a_newer_records_bundle_says_so_whatever_else_is_new_in_it(
    good: Path, refused: Any
) -> None:
    def newer(members: Members) -> None:
        rows = lines(members["runs.jsonl"])
        rows[-1]["status"] = "PAUSED"
        rows[-1]["tags"]["record.schema"] = str(RECORD_SCHEMA + 1)
        members["runs.jsonl"] = as_lines(rows)

    assert f"records of schema {RECORD_SCHEMA + 1}" in refused(rewritten(good, newer))


def test_a_newer_record_in_a_bundle_is_refused_and_names_the_version_that_can(
    tmp_path: Path, refused: Any
) -> None:
    here = laptop(tmp_path / "here")
    newer = dataclasses.replace(make_record(), schema=RECORD_SCHEMA + 1)
    sweep_of(here, "s1").log_job(newer)
    file = rewritten(bundle_of(here), manifest=lambda told: told.update(program="9.8.7"))
    told = refused(file)
    assert f"records of schema {RECORD_SCHEMA + 1}" in told
    assert "specsweep 9.8.7 or newer" in told


@pytest.mark.parametrize(
    "name",
    [
        "/etc/passwd",
        "../outside",
        "artifacts/s1/sweep/../../../outside",
        "..\\outside",
        "\\outside",
        "C:\\outside",
        "c:/outside",
        "C:outside",
        "//server/share/x",
        "\\\\server\\share\\x",
        "a//b",
        "a/./b",
        "x.txt:stream",
        "a/nul",
        "COM1.txt",
        "trailing.",
        "what?",
        "line\nbreak",
        "nul\0byte",
        "x" * 600,
        "a/" + "x" * 201,
    ],
)
def test_a_name_that_leads_elsewhere_is_refused(
    good: Path, refused: Callable[[Path], str], name: str
) -> None:
    hostile = rewritten(good, lambda members: members.update({name: b"x"}))
    assert "is refused: it holds" in refused(hostile)


@pytest.mark.parametrize("other", ["runs.jsonl", "RUNS.jsonl", "artifacts\\s1\\sweep\\summary.md"])
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name_are_refused(good: Path, refused: Any, other: str) -> None:
    copy = rewritten(good)
    with zipfile.ZipFile(copy, "a") as archive:
        info = zipfile.ZipInfo(other)
        info.filename = other
        archive.writestr(info, b"x")
    assert "twice" in refused(copy)


@pytest.mark.parametrize("other", ["Stra\N{LATIN SMALL LETTER SHARP S}e", "Cafe\u0301", "CAF\xc9"])
def test_names_that_are_one_on_some_systems_are_refused(
    good: Path, refused: Any, other: str
) -> None:
    one = {f"artifacts/s1/sweep/{name}": b"x" for name in ("STRASSE", "caf\xe9")}
    assert "is refused: it holds" in refused(
        rewritten(good, lambda members: members.update(one | {f"artifacts/s1/sweep/{other}": b""}))
    )


def test_a_bundle_that_changes_while_it_is_read_says_so(
    good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has arrived by then stays; a whole file completes it."""

    def cut_off(self: Any, run: Any, path: str) -> Any:
        raise zipfile.BadZipFile("Bad CRC-32")

    there = laptop(tmp_path / "there")
    with monkeypatch.context() as patch:
        patch.setattr(bundle_read.Bundle, "open", cut_off)
        assert tell(there, "import", good) == 1
    told = capsys.readouterr().err
    assert "was changed while it was read (Bad CRC-32)" in told and told.count("\n") == 1
    assert tell(there, "import", good) == 0
    assert {run["status"] for run in held(there).values()} == {"FINISHED", "FAILED"}


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR])
def test_a_link_or_device_is_refused(good: Path, refused: Any, kind: int) -> None:
    copy = rewritten(good)
    with zipfile.ZipFile(copy, "a") as archive:
        info = zipfile.ZipInfo("artifacts/s1/sweep/link")
        info.create_system, info.external_attr = 3, (kind | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    assert "a link or a device" in refused(copy)


def _refusal_in_mb(file: Path, most: int) -> str:
    """Why it is refused, and that Python never held more than so many MB for it."""
    tracemalloc.start()
    try:
        with pytest.raises(BundleRefused) as told, bundle_read.opened(file):
            pass
        assert tracemalloc.get_traced_memory()[1] < most * 10**6
    finally:
        tracemalloc.stop()
    return str(told.value)


@pytest.mark.parametrize("members", [0, 2000])
def test_a_small_file_with_a_huge_manifest_is_refused_before_it_is_read(
    tmp_path: Path, members: int
) -> None:
    """Many files may need a large one, but none that is packed like this."""
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(members):
            archive.writestr(f"artifacts/s1/sweep/{number}", b"")
        objects = ", ".join(["{}"] * 1_000_000)
        told = f'{{"format": "specsweep bundle", "schema": 1, "members": [{objects}]}}'
        archive.writestr("manifest.json", told)
    assert "a manifest that is too large" in _refusal_in_mb(tmp_path / "bomb.zip", 10)


def test_a_manifest_that_says_more_than_of_its_files_is_refused(good: Path) -> None:
    noise = {str(number): secrets.token_hex(500) for number in range(2000)}
    file = rewritten(good, manifest=lambda told: told.update(noise=noise))
    assert "a manifest that is too large" in _refusal_in_mb(file, 10)


def test_points_of_no_run_are_refused_at_the_first(good: Path) -> None:
    def change(members: Members) -> None:
        ballast = b"".join(b'{"run":"%d"}\n' % number for number in range(500_000))
        members["metrics.jsonl"] = ballast

    assert "a metric of 0 belongs to no run" in _refusal_in_mb(rewritten(good, change), 10)


@pytest.mark.parametrize("table", ["runs.jsonl", "metrics.jsonl"])
def test_a_line_without_end_is_refused_before_it_is_parsed(good: Path, table: str) -> None:
    def change(members: Members) -> None:
        members[table] += b'{"run": "s1", "x": [' + b"{}, " * 2_000_000 + b"{}]}\n"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zips, "MOST_RATIO", 10_000)
        file = rewritten(good, change)
        assert f"a line in {table} that is too long" in _refusal_in_mb(file, 40)


@pytest.mark.parametrize("table", ["runs.jsonl", "metrics.jsonl"])
def test_a_table_with_too_many_lines_is_neither_written_nor_read(
    good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], table: str
) -> None:
    """The same figure for both; what was there in the export's place stays."""
    here = laptop(tmp_path / "here", "s1")
    before = bundle_of(here).read_bytes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(bundle_tables.MOST_LINES, table, 3)
        assert f"more than 3 lines in {table}" in _refusal_in_mb(good, 10)
        capsys.readouterr()
        assert tell(here, "export", tmp_path / "here.zip", "--all") == 1
    told = capsys.readouterr().err
    assert f"more in {table} than an import takes" in told and told.count("\n") == 1
    assert (tmp_path / "here.zip").read_bytes() == before


def test_an_object_of_many_keys_takes_no_longer_than_their_number() -> None:
    """With a search for each key of those that are there twice it would take hours."""
    text = b"{" + b", ".join(b'"%d": 0' % key for key in range(300_000)) + b', "299999": 1}'
    with pytest.raises(ValueError, match="'299999' is there twice"):
        parsed(text)


def test_a_member_that_would_swell_is_refused(good: Path, refused: Any) -> None:
    bomb = rewritten(good, lambda m: m.update({"artifacts/s1/sweep/x": b"\0" * 2**24}))
    assert bomb.stat().st_size < 10**6
    assert "would swell to 16,777,216 bytes" in refused(bomb)


def test_many_small_members_that_would_swell_together_are_refused(good: Path, refused: Any) -> None:
    parts = {f"artifacts/s1/sweep/{i}": b"\0" * 2**20 for i in range(30)}
    bomb = rewritten(good, lambda members: members.update(parts))
    assert "would swell from" in refused(bomb)


@pytest.mark.parametrize("clash", ["artifacts/s1/sweep/summary.md/x", "artifacts/s1/sweep"])
def test_a_file_that_is_a_folder_too_is_refused(good: Path, refused: Any, clash: str) -> None:
    hostile = rewritten(good, lambda members: members.update({clash: b"x"}))
    assert "in a folder that is a file too" in refused(hostile)


def test_a_member_that_hides_its_size_is_refused(good: Path, tmp_path: Path, refused: Any) -> None:
    """The directory says 100 bytes, the packed data are 16 MB."""
    name = "artifacts/s1/sweep/x"
    copy = rewritten(good, lambda members: members.update({name: b"\0" * 2**24}))
    told = copy.read_bytes().replace(struct.pack("<L", 2**24), struct.pack("<L", 100))
    (tmp_path / "lies.zip").write_bytes(told)
    with zipfile.ZipFile(tmp_path / "lies.zip") as archive:
        assert archive.getinfo(name).file_size == 100
    assert "x has another size" in refused(tmp_path / "lies.zip")


def test_members_that_share_their_bytes_are_refused(tmp_path: Path, refused: Any) -> None:
    """The classic of one kernel that many names point at."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", json.dumps({"format": "specsweep bundle", "schema": 1}))
        archive.writestr("kernel", bytes(range(256)) * 100)
        kernel = archive.getinfo("kernel")
        for i in range(100):
            twin = zipfile.ZipInfo(f"twin{i}")
            twin.header_offset, twin.CRC = kernel.header_offset, kernel.CRC
            twin.file_size, twin.compress_size = kernel.file_size, kernel.compress_size
            twin.compress_type = kernel.compress_type
            archive.filelist.append(twin)
    (tmp_path / "twins.zip").write_bytes(out.getvalue())
    told = refused(tmp_path / "twins.zip")
    assert "share their bytes" in told or "verlapped" in told


@pytest.mark.parametrize("limit", ["MOST_MEMBERS", "MOST_BYTES", "MOST_BYTES_OF_ONE"])
def test_more_than_the_bounds_is_refused(
    good: Path, refused: Any, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(zips, limit, 5)
    assert "is refused: it" in refused(rewritten(good))


def test_an_encrypted_member_is_refused(good: Path, tmp_path: Path, refused: Any) -> None:
    content = bytearray(rewritten(good).read_bytes())
    for sign, flags in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        at = -1
        while (at := content.find(sign, at + 1)) >= 0:
            content[at + flags] |= 1
    (tmp_path / "locked.zip").write_bytes(content)
    assert "is encrypted" in refused(tmp_path / "locked.zip")


def test_a_refused_file_leaves_a_full_store_as_it_was(good: Path, tmp_path: Path) -> None:
    there = laptop(tmp_path / "there", "t1")
    before = {file: file.read_bytes() for file in there.rglob("*") if file.is_file()}
    bad = rewritten(good, manifest=_wrong("sha256", "0" * 64))
    assert tell(there, "import", bad) == 1
    assert {file: file.read_bytes() for file in there.rglob("*") if file.is_file()} == before


def test_the_manifest_lists_every_member_as_it_is(good: Path) -> None:
    with zipfile.ZipFile(good) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    assert json.loads(members.pop("manifest.json"))["members"] == listed(members)
