"""What a bundle says of itself: who wrote it, and in which form."""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from tracking import zips
from tracking.bundle import FORMAT, MANIFEST, SCHEMA, About
from tracking.bundle_json import parsed
from tracking.printable import is_printable, printable

_MOST_MANIFEST_BYTES = 2**20  # and what it says of each file
_MOST_BYTES_A_MEMBER = 3000  # a name of 500 characters, a hash
_EXPORTED = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)
_WRONG = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    struct.error,
    EOFError,
    RuntimeError,  # encrypted; nested without end; packed in an unknown way
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    OverflowError,
    OSError,
)
"""What `zipfile`, `json` and the checks raise where the bytes are not what they should be."""


NOTHING = "; nothing was imported"


class BundleRefused(ValueError):
    """A file that is not imported. One sentence says which, and why."""

    def __init__(self, sentence: str) -> None:
        super().__init__(printable(sentence))


def read_manifest(file: Path) -> dict[str, Any]:
    """What the bundle says of itself. BundleRefused where the file is none, or a newer one."""
    with ExitStack() as stack:
        return enter(file, stack)[2]


def enter(
    file: Path, stack: ExitStack
) -> tuple[zipfile.ZipFile, dict[str, zipfile.ZipInfo], dict[str, Any]]:
    """The open zip until the stack ends, its harmless members, and its manifest. BundleRefused."""
    if not file.is_file():
        raise BundleRefused(_no_file(file))
    with telling(file):
        raw = stack.enter_context(_open(file))
        if not zipfile.is_zipfile(raw):
            raise BundleRefused(
                f"{file} is no bundle, or was cut off: write it again with `make export`; "
                "nothing was imported"
            )
        archive = stack.enter_context(zipfile.ZipFile(raw))
        manifest = _manifest(file, archive)
        _refuse_newer(file, manifest)  # before its members are judged: they may be of another form
        return archive, zips.members(archive, file.stat().st_size), manifest


def about(manifest: dict[str, Any]) -> About:
    """ValueError where the manifest is not what an export writes."""
    texts = [manifest["exported"], manifest["program"], *manifest["machines"]]
    if not all(isinstance(text, str) and len(text) < 200 for text in texts):
        raise ValueError("its manifest is not what `make export` writes")
    if not all(map(is_printable, texts)):
        raise ValueError("its manifest holds control characters")
    if not _EXPORTED.fullmatch(texts[0]):
        raise ValueError(f"it was written at the impossible time {texts[0]!r}")
    datetime.fromisoformat(texts[0])  # no 30th of February
    return About(texts[0], texts[1], tuple(texts[2:]))


def writer_of(manifest: dict[str, Any]) -> str:
    """Which version can read it."""
    program = manifest.get("program")
    known = isinstance(program, str) and 0 < len(program) < 50
    return f"specsweep {program} or newer, which wrote it" if known else "a newer specsweep"


@contextmanager
def telling(file: Path) -> Iterator[None]:
    """Whatever is found wrong inside becomes one sentence about the file."""
    try:
        yield
    except BundleRefused:
        raise
    except zips.BadZip as error:
        raise BundleRefused(f"{file} is refused: it {error}{NOTHING}") from error
    except _WRONG as error:
        raise BundleRefused(
            f"{file} is damaged ({_told(error)}): copy it again, or write it again with "
            "`make export`; nothing was imported"
        ) from error


def _told(error: BaseException) -> str:
    if isinstance(error, RecursionError):
        return "its JSON is nested without end"
    if isinstance(error, KeyError):
        return f"{error} is missing"
    if isinstance(error, TypeError | AttributeError):
        return "a part of it has another form"
    return str(error)[:500] or type(error).__name__


def _no_file(file: Path) -> str:
    where = Path.cwd() / file
    if file.is_dir():
        return f"{where} is a folder: name the file that `make export` wrote"
    if file.exists():
        return f"{where} is a pipe or a device: name the file that `make export` wrote"
    return f"there is no file {where}"


def _open(file: Path) -> IO[bytes]:
    try:
        return file.open("rb")
    except OSError as error:
        raise BundleRefused(f"{file} cannot be read: {error.strerror}") from error


def _manifest(file: Path, archive: zipfile.ZipFile) -> dict[str, Any]:
    foreign = BundleRefused(
        f"{file} is a zip, but no bundle of specsweep's: see `make export`; nothing was imported"
    )
    if MANIFEST not in archive.namelist():
        raise foreign
    info = archive.getinfo(MANIFEST)
    most = _MOST_MANIFEST_BYTES + _MOST_BYTES_A_MEMBER * len(archive.infolist())
    if info.file_size > most or zips.would_swell(info):
        raise zips.BadZip("has a manifest that is too large")
    manifest = parsed(archive.read(info))
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise foreign
    return manifest


def _refuse_newer(file: Path, manifest: dict[str, Any]) -> None:
    schema = manifest.get("schema")
    if type(schema) is not int or schema < 1:
        raise ValueError(f"its manifest has no schema but {str(schema)[:80]!r}")
    if schema > SCHEMA:
        raise BundleRefused(
            f"{file} has schema {schema}, and this specsweep reads up to {SCHEMA}: update to "
            f"{writer_of(manifest)}; nothing was imported"
        )
