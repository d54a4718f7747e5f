"""Looks at a zip before anything is taken out of it, and refuses one that could do harm.

Pure Python's `zipfile` reads no more of a member than its declared size, and checks its CRC; what
it does not do is to judge names, kinds, numbers and sizes. Nothing is ever unpacked by a name that
stands in a zip without having passed here.
"""

from __future__ import annotations

import re
import stat
import unicodedata
import zipfile
from collections.abc import Iterable

MOST_MEMBERS = 200_000
MOST_BYTES = 8 * 2**30  # of all members together, unpacked
MOST_BYTES_OF_ONE = 2**30
MOST_RATIO = 200  # unpacked / packed: text of figures has 5 to 20
_SMALL_BYTES = 2**20  # below it a member may be as repetitive as it likes
_LONGEST_NAME = 500
_DEVICE = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")  # not files, on Windows


_LONGEST_PART_BYTES = 200  # of a path: what every system takes
_SOME_BYTES = 20 * 2**20  # that a zip may swell to by any factor


class BadZip(ValueError):
    """A zip that is damaged, or not to be trusted. The rest of a sentence that begins with it."""


def members(archive: zipfile.ZipFile, packed_bytes: int) -> dict[str, zipfile.ZipInfo]:
    """The files of a zip of `packed_bytes`, by name, with slashes. BadZip says what is wrong."""
    infos = archive.infolist()
    if len(infos) > MOST_MEMBERS:
        raise BadZip(f"holds {len(infos):,} files, and at most {MOST_MEMBERS:,} are read")
    found: dict[str, zipfile.ZipInfo] = {}
    for info in infos:
        name = safe_name(info.orig_filename)
        _check_kind(info, name)
        if name in found:
            raise BadZip(f"holds {name!r} twice")
        if not info.is_dir():
            found[name] = info
    check_together(found)
    _check_sizes(found, packed_bytes)
    return found


def check_together(names: Iterable[str]) -> None:
    """BadZip where two files are one, or one is a folder too, on a system that tells neither cases
    nor ways to write an accent apart."""
    folded: dict[str, str] = {}
    for name in names:
        if folded.setdefault(_folded(name), name) != name:
            raise BadZip(f"holds {name!r} twice")
    for one, name in folded.items():
        parts = one.split("/")
        if any("/".join(parts[:end]) in folded for end in range(1, len(parts))):
            raise BadZip(f"holds {name!r} in a folder that is a file too")


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", name).casefold())


def safe_name(name: str) -> str:
    """`name` with slashes. BadZip where it is not a path that stays in its folder, anywhere."""
    shown = repr(name[:80])
    if len(name) > _LONGEST_NAME or not name.isprintable():
        raise BadZip(f"holds a file with the impossible name {shown}")
    path = name.replace("\\", "/").removesuffix("/")
    if path.startswith("/") or ":" in path:
        raise BadZip(f"holds {shown}, which would be written outside its folder")
    for part in path.split("/"):
        if len(part.encode()) > _LONGEST_PART_BYTES:
            raise BadZip(f"holds a file with the impossible name {shown}")
        if part in ("", ".", ".."):
            raise BadZip(f"holds {shown}, which would be written outside its folder")
        if _DEVICE.fullmatch(part) or part[-1] in ". " or set(part) & set('<>"|?*'):
            raise BadZip(f"holds {shown}, which is no name of a file on every system")
    return path


def _check_kind(info: zipfile.ZipInfo, name: str) -> None:
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind and not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
        raise BadZip(f"holds {name!r}, which is a link or a device, no file")
    if info.flag_bits & 0x1:
        raise BadZip(f"holds {name!r}, which is encrypted")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise BadZip(f"holds {name!r}, which is packed in a way that is not read")


def would_swell(info: zipfile.ZipInfo) -> bool:
    """Whether a member is packed more than any real one could be."""
    return info.file_size > max(_SMALL_BYTES, MOST_RATIO * info.compress_size)


def _check_sizes(found: dict[str, zipfile.ZipInfo], packed_bytes: int) -> None:
    for name, info in found.items():
        if info.file_size > MOST_BYTES_OF_ONE:
            raise BadZip(f"holds {name!r} of {info.file_size:,} bytes: too large")
        if would_swell(info):
            raise BadZip(f"holds {name!r}, which would swell to {info.file_size:,} bytes")
    total = sum(info.file_size for info in found.values())
    if total > _SOME_BYTES and total > MOST_RATIO / 2 * packed_bytes:
        raise BadZip(f"would swell from {packed_bytes:,} to {total:,} bytes")
    if total > MOST_BYTES:
        raise BadZip(f"would swell to {total:,} bytes, and at most {MOST_BYTES:,} are read")
    if sum(info.compress_size for info in found.values()) > packed_bytes:
        raise BadZip("holds files that share their bytes")
