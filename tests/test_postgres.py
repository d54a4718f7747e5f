"""A team's server over a real PostgreSQL, where one is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bundling import bundle_of, held, laptop, tell
from tests.servers import free_port, postgres
from tracking.serve import ServerFailed
from tracking.team import backend_of, team_server
from tracking.trouble import StoreUnavailable


def test_a_server_over_postgresql_keeps_sweeps_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = laptop(tmp_path / "here", "s1")
    file, sent = bundle_of(here), held(here)
    with postgres() as address:
        backend = backend_of(address, tmp_path)
        assert "secret" not in backend.shown
        with team_server(backend, tmp_path / "team", port=free_port()) as page:
            monkeypatch.setenv("MLFLOW_TRACKING_URI", page.base)
            for _ in range(2):
                assert tell(tmp_path, "import", file) == 0
            family = [" ".join(one.cmdline()) for one in page.processes]
            assert len(family) > 1 and not [line for line in family if "secret" in line]
        # another server over the same database finds it all
        with team_server(backend, tmp_path / "team", port=free_port()) as page:
            monkeypatch.setenv("MLFLOW_TRACKING_URI", page.base)
            assert held(tmp_path) == sent
        with pytest.raises(StoreUnavailable, match="has no such database"):
            _start(address.replace("/postgres", "/nothing"), tmp_path)
    with pytest.raises((StoreUnavailable, ServerFailed), match="does not answer"):
        _start(address, tmp_path)


def _start(address: str, folder: Path) -> None:
    with team_server(backend_of(address, folder), folder, port=free_port()):
        pass
