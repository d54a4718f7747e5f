"""A request whose answer is lost may have been carried out, or may yet be: still one run stays."""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from mlflow.exceptions import MlflowException

from tests.records_factory import make_record
from tests.servers import free_port, team
from tests.tracking_store import client, project, runs
from tracking.recorder import Recorder
from tracking.runs import PARENT_TAG, SweepRuns, search, without_doubles
from tracking.trouble import StoreUnavailable

TAGS = {"machine.id": "abc", "machine.name": "here"}


@pytest.fixture
def late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Recorder, list[Callable[[], Any]]]:
    """A recorder whose server takes the first request for a run too slowly: its answer is lost, and
    it is carried out when what is in the list is called."""
    recorder = Recorder(root=project(tmp_path))
    api = client(recorder)
    create, waiting = api.create_run, list[Callable[[], Any]]()

    def slow(*arguments: Any, **named: Any) -> Any:
        if waiting:
            return create(*arguments, **named)
        waiting.append(lambda: create(*arguments, **named))
        raise MlflowException("HTTPConnectionPool: Read timed out.")

    monkeypatch.setattr(api, "create_run", slow)
    return recorder, waiting


def test_a_sweeps_run_that_arrives_late_does_not_stay_beside_the_second(
    late: tuple[Recorder, list[Callable[[], Any]]],
) -> None:
    recorder, waiting = late
    with pytest.raises(StoreUnavailable, match="does not answer in time"):
        recorder.open_sweep("s1", "a test", TAGS)
    record = make_record()
    recorder.log_job(record)
    waiting[0]()
    recorder.close_sweep("FINISHED", {"sweep/jobs": 1.0}, "the table", {}, {})
    parent, (child,) = runs(recorder)
    assert (parent.info.status, child.info.status) == ("FINISHED", "FINISHED")
    assert child.data.tags[PARENT_TAG] == parent.info.run_id
    assert parent.data.metrics == {"sweep/jobs": 1.0}


def test_of_doubled_sweeps_the_one_with_jobs_stays_else_the_oldest(tmp_path: Path) -> None:
    recorder = Recorder(root=project(tmp_path))
    store = recorder.open()
    first, second, third = (SweepRuns.create(store, "s1", {"sweep.id": "s1"}) for _ in range(3))
    left = SweepRuns.find(store, "s1")
    assert left is not None and left.parent_id == first.parent_id
    second, third = (SweepRuns.create(store, "s1", {"sweep.id": "s1"}) for _ in range(2))
    third.create_child("d1", "one", 1000, {"sweep.id": "s1"})
    third.create_child("d2", "two", 1000, {"sweep.id": "s1"})
    first.create_child("d3", "three", 1000, {"sweep.id": "s1"})
    found = list(search(store, "tags.`sweep.id` = 's1'"))
    kept = without_doubles(store, found)
    assert kept[0].info.run_id == third.parent_id and len(kept) == 4
    parent, children = runs(recorder)
    assert parent.info.run_id == third.parent_id
    assert {child.data.tags[PARENT_TAG] for child in children} == {third.parent_id}
    assert [run.info.run_id for run in without_doubles(store, [parent, *children])] == [
        run.info.run_id for run in (parent, *children)
    ]


@contextmanager
def losing(base: str, lost: Callable[[str], bool]) -> Iterator[str]:
    """A way to the server at `base` on which the answers to some requests are lost."""

    class Way(BaseHTTPRequestHandler):
        def _pass(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            kept = {
                k: v for k, v in self.headers.items() if k.lower() not in ("host", "connection")
            }
            asked = urllib.request.Request(
                base + self.path, body or None, kept, method=self.command
            )
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            try:
                with opener.open(asked, timeout=60) as answer:
                    status, told = answer.status, answer.read()
            except urllib.error.HTTPError as error:
                status, told = error.code, error.read()
            if lost(self.path):
                self.close_connection = True
                return
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

        do_GET = do_POST = do_PUT = do_PATCH = _pass

        def log_message(self, *words: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Way) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_answers_lost_on_the_way_from_a_real_server_double_nothing(tmp_path: Path) -> None:
    every = {"runs/create": 0, "log-batch": 0, "runs/update": 0}

    def lost(path: str) -> bool:
        """The first answer to a request of a kind, and the fourth."""
        for name in every:
            if path.endswith(name):
                every[name] += 1
                return every[name] in (1, 4)
        return False

    with team(tmp_path / "team", free_port()) as page, losing(page.base, lost) as way:
        recorder = Recorder(uri=way, root=tmp_path)
        record = make_record()
        failures = 0
        steps: list[Callable[[], None]] = [
            lambda: recorder.open_sweep("s1", "a test", TAGS),
            lambda: recorder.start_job(record.digest, record.name, {"draft": "int8"}),
            lambda: recorder.log_job(record),
            lambda: recorder.close_sweep("FINISHED", {"sweep/jobs": 1.0}, "the table", {}, {}),
        ]
        for step in steps:
            for _ in range(6):
                try:
                    step()
                    break
                except StoreUnavailable:
                    failures += 1
            else:
                raise AssertionError("the store never took it")
        parent, (child,) = runs(recorder)
    assert failures >= 3
    assert (parent.info.status, child.info.status) == ("FINISHED", "FINISHED")
    assert child.data.metrics["count/emitted"] == record.metrics["count/emitted"]
