"""An independent witness: Hugging Face's GPT-2 reads the shipped weights and says the same."""

from __future__ import annotations

import pytest
import torch

from pipeline.weights import SHIPPED, load_target

transformers = pytest.importorskip(
    "transformers", reason="needs the extra `hf`: pip install specsweep[hf]"
)


@pytest.mark.parametrize("length", [1, 17, 256])
def test_gpt2_of_hugging_face_gives_equal_logits(length: int) -> None:
    ours, vocabulary, _ = load_target("shipped")
    theirs = transformers.GPT2LMHeadModel.from_pretrained(SHIPPED / "target").eval()
    source = torch.Generator().manual_seed(0)
    ids = torch.randint(len(vocabulary), (3, length), generator=source)
    with torch.inference_mode():
        torch.testing.assert_close(ours(ids), theirs(ids).logits, rtol=1e-4, atol=1e-4)
