"""Prediction heads on disk. They belong to one target, whose file's hash their card holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from pipeline.heads import Heads
from pipeline.text import Vocabulary
from pipeline.weights.store import read_card, read_part, save_part

KIND = "heads"


def save_heads(
    where: Path, heads: Heads, vocabulary: Vocabulary, card: dict[str, Any]
) -> dict[str, Any]:
    """Write `where/heads` for the target in `where` and return the card."""
    described = {
        "vocabulary": vocabulary.chars,
        "heads": heads.count,
        "width": heads.width,
        "target_sha256": read_card(where, "target")["sha256"],
        **card,
    }
    return save_part(where, KIND, heads.state_dict(), described)


def load_heads(where: str | Path) -> Heads:
    """The heads of a weights folder in float32, frozen.

    ValueError, in one sentence, where they are missing, damaged, foreign or of another target.
    """
    tensors, card = read_part(where, KIND)
    if card.get("target_sha256") != read_card(where, "target").get("sha256"):
        raise ValueError(
            f"the heads in {str(where)!r} were trained on another target than the one beside them: "
            "train them again with `make train`"
        )
    count, width = card.get("heads"), card.get("width")
    if isinstance(count, int) and isinstance(width, int):
        heads = Heads(count, width)
        wanted = {name: tensor.shape for name, tensor in heads.state_dict().items()}
        if wanted == {name: tensor.shape for name, tensor in tensors.items()}:
            with torch.no_grad():
                heads.load_state_dict({name: tensor.float() for name, tensor in tensors.items()})
            return heads.eval().requires_grad_(False)
    raise ValueError(
        f"heads in {str(where)!r} is not the architecture that its card says: make it again with "
        "`make train`"
    )
