"""What torch computes with here, as tags: another instruction set or library rounds differently."""

from __future__ import annotations

import re

import torch


def tags() -> dict[str, str]:
    """`machine.torch_cpu` and, where torch tells it, `machine.blas`."""
    found = {"machine.torch_cpu": str(torch.backends.cpu.get_cpu_capability())}
    blas = re.search(r"\bBLAS_INFO=(\w+)", torch.__config__.show())
    return found | ({"machine.blas": blas[1]} if blas else {})
