"""Character transformers on disk: the target and the small draft.

The tensors have GPT-2's names, and a `config.json` beside them tells Hugging Face's
`GPT2LMHeadModel.from_pretrained` the sizes; nothing here reads that file.
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import torch

from pipeline.model import CharTransformer, ModelConfig
from pipeline.text import Vocabulary
from pipeline.weights.store import read_part, save_part, write_json


def gpt2_config(cfg: ModelConfig) -> dict[str, Any]:
    """What Hugging Face has to know to build the same model."""
    return {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "vocab_size": cfg.vocab,
        "n_positions": cfg.context,
        "n_embd": cfg.width,
        "n_layer": cfg.layers,
        "n_head": cfg.heads,
        "activation_function": "gelu_new",
        "layer_norm_epsilon": 1e-5,
        "attn_pdrop": 0.0,
        "embd_pdrop": 0.0,
        "resid_pdrop": 0.0,
        "tie_word_embeddings": True,
        "bos_token_id": None,
        "eos_token_id": None,
        "dtype": "float32",
    }


def save_model(
    where: Path, kind: str, model: CharTransformer, vocabulary: Vocabulary, card: dict[str, Any]
) -> dict[str, Any]:
    """Write `where/kind` in float32, return its card. ValueError where a weight is not finite."""
    described = {"vocabulary": vocabulary.chars, "sizes": model.cfg.as_dict(), **card}
    tensors = {name: tensor.float() for name, tensor in model.state_dict().items()}
    full = save_part(where, kind, tensors, described)
    write_json(where / kind / "config.json", gpt2_config(model.cfg))
    return full


def same_vocabulary(where: str | Path, kind: str, found: str, wanted: Vocabulary | None) -> None:
    """ValueError unless a draft's characters are the target's, in the same order."""
    if wanted is not None and found != wanted.chars:
        raise ValueError(
            f"{kind} in the weights folder {str(where)!r} knows other characters ({len(found)}) "
            f"than the target ({len(wanted)}): train both on one text with `make train`"
        )


def load_model(
    where: str | Path, kind: str, vocabulary: Vocabulary | None = None
) -> tuple[CharTransformer, Vocabulary, dict[str, Any]]:
    """The model of `where/kind` in float32, frozen, with its vocabulary and its card.

    `where` is `"shipped"` or a folder. ValueError, in one sentence, for a folder or file that is
    missing, damaged, of another program or architecture, or of other characters than `vocabulary`.
    """
    tensors, card = read_part(where, kind)
    names = {field.name for field in fields(ModelConfig)}
    sizes, chars = card.get("sizes"), card.get("vocabulary")
    strange = ValueError(
        f"{kind} in the weights folder {str(where)!r} is not the architecture that its card says: "
        "make it again with `make train`"
    )
    if not isinstance(sizes, dict) or set(sizes) != names or not isinstance(chars, str):
        raise strange
    if sizes["vocab"] != len(chars) or len(set(chars)) != len(chars):
        raise strange
    same_vocabulary(where, kind, chars, vocabulary)
    with torch.device("meta"):
        model = CharTransformer(ModelConfig(**sizes))
    wanted = {name: tensor.shape for name, tensor in model.state_dict().items()}
    if wanted != {name: tensor.shape for name, tensor in tensors.items()}:
        raise strange
    if not all(bool(torch.isfinite(tensor).all()) for tensor in tensors.values()):
        raise ValueError(
            f"{kind} in {str(where)!r} holds weights that are not finite: train it again"
        )
    model.load_state_dict({name: t.float().clone() for name, t in tensors.items()}, assign=True)
    return model.eval().requires_grad_(False), Vocabulary(chars), card


def load_target(
    where: str | Path = "shipped",
) -> tuple[CharTransformer, Vocabulary, dict[str, Any]]:
    """The target of a weights folder; see `load_model`."""
    return load_model(where, "target")


def load_small(
    where: str | Path, vocabulary: Vocabulary
) -> tuple[CharTransformer, Vocabulary, dict[str, Any]]:
    """The small draft of a weights folder; see `load_model`."""
    return load_model(where, "small", vocabulary)
