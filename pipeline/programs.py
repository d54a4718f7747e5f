"""Programs that torch's compiler has made of a module at fixed shapes, and where they are kept.

Compiling takes some ten seconds and a C++ compiler; what was compiled once on a machine is loaded.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

Program = Callable[[list[Tensor]], list[Tensor]]
"""Takes the tensors of its arguments one after the other, lists laid flat; what it writes to among
them is changed in place."""

FIX = (
    "install one (Linux: g++, as in `apt install g++`; macOS: `xcode-select --install`; Windows: "
    "Build Tools for Visual Studio), or leave target.compile=false"
)
_loaded: dict[str, Program] = {}
built = 0
"""Programs that this process has compiled."""


def check_compiler() -> None:
    """ValueError, one sentence, where this machine has no C++ compiler."""
    told = os.environ.get("CXX")
    known = {"win32": ["cl"], "darwin": ["clang++"]}.get(sys.platform, ["g++", "clang++"])
    if not any(shutil.which(name) for name in ([told] if told else known)):
        looked_for = f"CXX={told}" if told else " nor ".join(known)
        raise ValueError(
            f"target.compile=true needs a C++ compiler, not found ({looked_for}): {FIX}"
        )


def program(
    name: str, module: nn.Module, example: tuple[Any, ...], code: tuple[str, ...]
) -> Program:
    """`module` compiled for arguments like `example`, its `name` one among those of `code`'s files.

    ValueError, one sentence, where it cannot be compiled here.
    """
    key = _key(name, code)
    if key not in _loaded:
        import torch._inductor  # as dear as torch itself: only for those who compile

        path = folder() / f"{key}.pt2"
        if not path.exists():
            _build(module, example, path)
        with _quiet():
            model = torch._inductor.aoti_load_package(str(path))
        _loaded[key] = model.loader.run  # the call itself would take arguments apart each time
    return _loaded[key]


def _key(name: str, code: tuple[str, ...]) -> str:
    """A hash of all that makes one program another: code, torch, processor, threads."""
    sha = hashlib.sha256()
    machine = (platform.machine(), platform.processor(), torch.backends.cpu.get_cpu_capability())
    for part in (name, torch.__version__, *machine, str(torch.get_num_threads())):
        sha.update(part.encode() + b"\0")
    for path in (__file__, *code):
        sha.update(Path(path).read_bytes())
    return sha.hexdigest()[:32]


def _build(module: nn.Module, example: tuple[Any, ...], path: Path) -> None:
    """Into `path`, written whole or not at all."""
    global built
    import torch._inductor

    check_compiler()
    draft = path.with_name(f"{path.stem}-{os.getpid()}.pt2")
    try:
        with torch.no_grad(), _quiet():
            exported = torch.export.export(module, example, strict=False)
            torch._inductor.aoti_compile_and_package(exported, package_path=str(draft))
    except Exception as error:  # whatever the compiler beneath it raises
        first = next(iter(str(error).strip().splitlines()), "")[:200]
        raise ValueError(
            f"target.compile=true: torch cannot compile here ({type(error).__name__}: {first}); "
            f"if the C++ compiler is at fault, {FIX}"
        ) from error
    draft.replace(path)
    built += 1


def folder() -> Path:
    """Where programs are kept. They are run: so a folder that nobody else can write to."""
    user = os.environ.get("USER") or os.environ.get("USERNAME") or "me"
    own = Path(tempfile.gettempdir()) / f"specsweep-compiled-{user}"
    own.mkdir(mode=0o700, exist_ok=True)
    if sys.platform != "win32" and (own.is_symlink() or own.stat().st_uid != os.getuid()):
        return Path(tempfile.mkdtemp(prefix="specsweep-compiled-"))
    return own


@contextmanager
def _quiet() -> Iterator[None]:
    """Inside, torch warns of its own use of what it has deprecated."""
    with warnings.catch_warnings():
        for category in (DeprecationWarning, FutureWarning):
            warnings.simplefilter("ignore", category)
        yield
