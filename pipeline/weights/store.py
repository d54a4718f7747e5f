"""Write and read one part of a weights folder: tensors in safetensors, and a card that says whose.

A weights folder is `DIR/target`, `DIR/bigram`, and so on, one folder a part. The card holds the
SHA-256 of the tensor file, so that a damaged, cut off or exchanged file is found before it is used.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

SHIPPED = Path(__file__).parent
"""The folder of the weights that come with the package."""

CARD = "card.json"
MAKER = "specsweep"
SCHEMA = 1


def resolve(where: str | Path) -> Path:
    """The folder that `target.weights` means: `"shipped"`, or a path.

    ValueError where there is no such folder.
    """
    folder = SHIPPED if str(where) == "shipped" else Path(where).expanduser()
    if not folder.is_dir():
        raise ValueError(
            f"there is no weights folder {str(where)!r}: make one with "
            "`make train CORPUS=file.txt`, or use target.weights=shipped"
        )
    return folder


def file_name(kind: str) -> str:
    """Name of a part's tensor file. Models have the name that Hugging Face looks for."""
    stem = {"target": "model", "small": "model", "heads": "heads"}.get(kind, "table")
    return f"{stem}.safetensors"


def write_whole(path: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    draft = path.with_name(path.name + ".tmp")
    draft.write_bytes(data)
    os.replace(draft, path)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    text = json.dumps(value, indent=2, ensure_ascii=True, allow_nan=False)
    write_whole(path, (text + "\n").encode("utf-8"))


def save_part(
    where: Path, kind: str, tensors: Mapping[str, Tensor], card: Mapping[str, Any]
) -> dict[str, Any]:
    """Write `where/kind` and return its card: `card` and the form, kind and hash of the file.

    ValueError for a tensor that is not finite: such weights are of no use to anybody.
    """
    for name, tensor in tensors.items():
        if not bool(torch.isfinite(tensor).all()):
            raise ValueError(f"{kind}: {name} is not finite, so it is not saved; lower the rate")
    folder = where / kind
    folder.mkdir(parents=True, exist_ok=True)
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    data = save_tensors(plain, metadata={"format": "pt"})
    head = {"made_by": MAKER, "schema": SCHEMA, "kind": kind}
    full = {**head, **card, "file": file_name(kind), "sha256": hashlib.sha256(data).hexdigest()}
    write_whole(folder / file_name(kind), data)
    write_json(folder / CARD, full)
    return full


def _absent(where: str | Path, kind: str, name: str) -> ValueError:
    cure = "reinstall specsweep" if str(where) == "shipped" else "make it with `make train`"
    return ValueError(f"the weights folder {str(where)!r} has no {kind}/{name}: {cure}")


def _unreadable(path: Path, error: OSError) -> ValueError:
    what = "a folder" if path.is_dir() else error.strerror or "no file"
    return ValueError(
        f"{path} cannot be read ({what}): copy it again, or make the folder again with `make train`"
    )


def read_card(where: str | Path, kind: str) -> dict[str, Any]:
    """The card of one part. ValueError says what is missing, damaged or not ours."""
    folder = resolve(where) / kind
    try:
        card = json.loads((folder / CARD).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise _absent(where, kind, CARD) from None
    except OSError as error:
        raise _unreadable(folder / CARD, error) from None
    except ValueError:
        raise ValueError(
            f"{folder / CARD} is damaged (it is not JSON): copy it again, or make the folder "
            "again with `make train`"
        ) from None
    if not isinstance(card, dict) or card.get("made_by") != MAKER:
        raise ValueError(
            f"{folder} holds weights of another program: only folders written by "
            "`make train` can be used"
        )
    if card.get("schema") != SCHEMA or card.get("kind") != kind:
        raise ValueError(
            f"{folder / CARD} describes {card.get('kind')!r} in form {card.get('schema')!r}, but "
            f"{kind!r} in form {SCHEMA} is needed: make it again with `make train`"
        )
    return card


def read_part(where: str | Path, kind: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and card of one part, after its hash was checked. ValueError as `read_card`."""
    card = read_card(where, kind)
    path = resolve(where) / kind / file_name(kind)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise _absent(where, kind, path.name) from None
    except OSError as error:
        raise _unreadable(path, error) from None
    if hashlib.sha256(data).hexdigest() != card.get("sha256"):
        raise ValueError(
            f"{path} is damaged or not the file that its card describes ({len(data)} bytes, "
            "the SHA-256 differs): copy it again, or make it again with `make train`"
        )
    try:
        return load_tensors(data), card
    except SafetensorError:
        raise ValueError(f"{path} is not a safetensors file: make it with `make train`") from None


def digest(where: str | Path = "shipped", kinds: tuple[str, ...] = ("target",)) -> str:
    """SHA-256 over vocabulary and tensor files of the parts: the tag `weights.digest`.

    It is read from the cards; that the files agree with them is checked by loading.
    """
    total = hashlib.sha256()
    for kind in sorted(kinds):
        card = read_card(where, kind)
        total.update(json.dumps([kind, card["vocabulary"], card["sha256"]]).encode("utf-8"))
    return total.hexdigest()
