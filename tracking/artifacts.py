"""A run's files: written, and read back, without asking the store where a folder will do.

MLflow's client looks a run up for every upload, which takes as long as all its figures. Where the
artifacts are a folder of this machine, the files are put there directly: it is what MLflow does.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import url2pathname

if TYPE_CHECKING:
    from mlflow import MlflowClient

Content = str | bytes | Callable[[], IO[bytes]]
"""A file's text or bytes, or what opens them."""


def local_folder(uri: str) -> Path | None:
    """The folder behind a `file:` address of this machine, None for any other address."""
    parts = urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    return Path(url2pathname(parts.path))


def put(client: MlflowClient, run_id: str, uri: str, files: Mapping[str, Content]) -> None:
    """Files by their path inside the run; those that are there are replaced.

    `uri` is the run's artifact address. Raises what MLflow raises, or OSError.
    """
    folder = local_folder(uri)
    if folder is not None:
        _write(folder, files)
    elif files:
        with tempfile.TemporaryDirectory(prefix="specsweep-") as draft:
            _write(Path(draft), files)
            client.log_artifacts(run_id, draft)


@contextmanager
def fetched(client: MlflowClient, run_id: str, uri: str) -> Iterator[dict[str, Path]]:
    """The run's files by their path inside it, "figures/speedup.png", until the block ends."""
    folder = local_folder(uri)
    if folder is not None:
        yield _files(folder)
        return
    with tempfile.TemporaryDirectory(prefix="specsweep-") as draft:
        if client.list_artifacts(run_id):
            client.download_artifacts(run_id, "", draft)
        yield _files(Path(draft))


def _write(folder: Path, files: Mapping[str, Content]) -> None:
    for path, content in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if callable(content):
            with content() as source, file.open("wb") as out:
                shutil.copyfileobj(source, out)
        else:
            file.write_bytes(content.encode() if isinstance(content, str) else content)


def _files(folder: Path) -> dict[str, Path]:
    if not folder.is_dir():
        return {}
    found = (file for file in sorted(folder.rglob("*")) if file.is_file() and not file.is_symlink())
    return {file.relative_to(folder).as_posix(): file for file in found}
