"""The parts that are trained: the target, the small draft, and heads on the target."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pipeline.checkpoint import Checkpoint
from pipeline.fitting import Loss, Recipe, fit
from pipeline.heads import Heads
from pipeline.model import CharTransformer, ModelConfig
from pipeline.parts import Bench
from pipeline.weights import load_target, save_heads, save_model

CONTEXT = 256
HEADS = 8


def target_config(vocab: int) -> ModelConfig:
    return ModelConfig(vocab, context=CONTEXT, layers=3, heads=4, width=128)


def small_config(vocab: int) -> ModelConfig:
    """Under a tenth of the target's parameters, and a third of its layers."""
    return ModelConfig(vocab, context=CONTEXT, layers=1, heads=4, width=56)


def windows(ids: Tensor, length: int) -> Tensor:
    """A text `(N,)` as examples `(B, T + 1)` side by side: each one's last is the next one's first.

    T is `length`, or all of a text that is shorter.
    """
    length = min(length, len(ids) - 1)
    return ids.unfold(0, length + 1, length)


def next_loss(model: CharTransformer, batch: Tensor) -> Tensor:
    """Nats per character of each next one, `(1,)`, of examples `(B, T + 1)`."""
    logits = model(batch[:, :-1]).float()
    return F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())[None]


def heads_loss(heads: Heads, target: CharTransformer, batch: Tensor) -> Tensor:
    """Nats per character of each head, `(heads,)`, of examples `(B, T + 1)`.

    At text position t the target's state and the character at t + 1 are known; head i = 1.. is
    asked for the one at t + 1 + i, wherever the example reaches that far.
    """
    embedding = target.transformer.wte.weight
    with torch.no_grad():
        hidden = target.hidden(batch[:, :-1]).float()
    known = embedding[batch[:, 1:]]
    logits = heads(hidden.flatten(0, 1), known.flatten(0, 1), embedding)
    logits = logits.view(*hidden.shape[:2], heads.count, -1).float()
    losses = []
    for index in range(heads.count):
        wanted = batch[:, 2 + index :]
        rows = logits[:, : wanted.shape[1], index]
        losses.append(F.cross_entropy(rows.flatten(0, 1), wanted.flatten()))
    return torch.stack(losses)


@torch.inference_mode()
def held_out(bench: Bench, losses: Loss, length: int) -> list[float]:
    """`losses` averaged over the held-out text."""
    examples = windows(bench.ids(bench.corpus.held), length)
    pieces = [examples[start : start + 64] for start in range(0, len(examples), 64)]
    total = torch.stack([losses(piece) * len(piece) for piece in pieces]).sum(dim=0)
    return [round(value, 4) for value in (total / len(examples)).tolist()]


def learn(
    bench: Bench, kind: str, module: nn.Module, losses: Loss, recipe: Recipe, made: dict[str, Any]
) -> dict[str, Any]:
    """Train `module` by the mean of `losses`, and return its card."""
    checkpoint = Checkpoint(bench.out / f"{kind}.checkpoint", made)
    ids = bench.ids(bench.corpus.train)
    fitted = fit(
        module,
        lambda batch: losses(batch).mean(),
        ids,
        recipe,
        checkpoint,
        lambda line: bench.say(f"{kind}: {line}"),
    )
    found = held_out(bench, losses, recipe.length)
    bench.say(f"{kind}: {', '.join(map(str, found))} nats a character on held-out text")
    result = {
        "loss": found[0] if len(found) == 1 else found,
        "train_loss": round(fitted.train_loss, 4),
        "train_s": round(fitted.seconds, 1),
        "precision": fitted.precision,
        "threads": torch.get_num_threads(),
    }
    return bench.card(made, result)


def train_model(bench: Bench, kind: str, cfg: ModelConfig, recipe: Recipe) -> None:
    """Train a character transformer on the corpus and write it as the part `kind`."""
    made = {
        "sizes": cfg.as_dict(),
        "corpus": bench.corpus.card(),
        "training": recipe.as_dict(),
    }
    if bench.has(kind, made):
        bench.say(f"{kind}: already trained in {bench.out / kind}")
        return
    torch.manual_seed(recipe.seed)
    model = CharTransformer(cfg)
    card = learn(bench, kind, model, lambda batch: next_loss(model, batch), recipe, made)
    save_model(bench.out, kind, model, bench.vocabulary, card)
    Checkpoint(bench.out / f"{kind}.checkpoint", made).remove()


def train_heads(bench: Bench, count: int, recipe: Recipe) -> None:
    """Train `count` heads on the target that is in the folder, which stays as it is."""
    target, _, target_card = load_target(bench.out)
    made = {
        "heads": count,
        "target_sha256": target_card["sha256"],
        "corpus": bench.corpus.card(),
        "training": recipe.as_dict(),
    }
    if bench.has("heads", made):
        bench.say(f"heads: already trained in {bench.out / 'heads'}")
        return
    heads = Heads(count, target.cfg.width)

    def losses(batch: Tensor) -> Tensor:
        return heads_loss(heads, target, batch)

    card = learn(bench, "heads", heads, losses, recipe, made)
    save_heads(bench.out, heads, bench.vocabulary, card)
    Checkpoint(bench.out / "heads.checkpoint", made).remove()
