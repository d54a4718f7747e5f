"""A file of a newer form names the version that reads it: so a new form needs a new version."""

from __future__ import annotations

import tomllib

from pipeline import plan, records
from tests.sweeping import PROJECT
from tracking import bundle

FORMS = {"0.1.0": {"record": 2, "bundle": 1, "plan": 1}}


def test_a_new_form_comes_with_a_new_version() -> None:
    told = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    ours = {"record": records.SCHEMA, "bundle": bundle.SCHEMA, "plan": plan.SCHEMA}
    assert FORMS[told["project"]["version"]] == ours
