"""Counts are equal to the bit: other instruction sets, threads, batches, and used processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.job import NEAR_TIE
from tests import bit_equal

PROJECT = Path(__file__).resolve().parent.parent
SETTINGS = [("default", 1), ("avx2", 2), (None, 1), (None, 2)]
"""Capability (None is the best there is; one the processor lacks falls back) and threads."""

Found = dict[tuple[str | None, int], tuple[dict[str, Any], np.ndarray]]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """What a fresh process came to under each setting."""
    out: Found = {}
    for capability, threads in SETTINGS:
        folder = tmp_path_factory.mktemp("process")
        environment = {k: v for k, v in os.environ.items() if k != "ATEN_CPU_CAPABILITY"}
        if capability:
            environment["ATEN_CPU_CAPABILITY"] = capability
        subprocess.run(
            [sys.executable, "-m", "tests.bit_equal", str(folder), str(threads)],
            cwd=PROJECT,
            env=environment,
            check=True,
        )
        digests = json.loads((folder / "digests.json").read_text(encoding="utf-8"))
        out[capability, threads] = (digests, np.load(folder / "rows.npy"))
    return out


def test_every_setting_and_way_gives_the_same_digests(found: Found) -> None:
    first = found[SETTINGS[0]][0]["alone"]
    assert len(set(first.values())) == len(first) == len(bit_equal.SEEDS) * len(bit_equal.OPTIONS)
    for digests, _ in found.values():
        assert digests["alone"] == first
        assert digests["batch"] == first
        assert digests["reused"] == {key: first[key] for key in digests["reused"]}


def test_capabilities_do_differ_where_the_processor_has_more_than_one(found: Found) -> None:
    assert found["default", 1][0]["capability"].upper() in ("DEFAULT", "NO AVX")


def test_rows_differ_by_far_less_than_the_bound_on_near_ties(
    found: Found, capsys: pytest.CaptureFixture[str]
) -> None:
    first = found[SETTINGS[0]][1]
    errors = {setting: float(np.abs(rows - first).max()) for setting, (_, rows) in found.items()}
    assert max(errors.values()) < NEAR_TIE / 1000
    with capsys.disabled():
        told = ", ".join(f"{name or 'best'}/{n}: {e:.0e}" for (name, n), e in errors.items())
        print(f"\nlargest difference of a row's entries from default/1: {told}")
