"""What a machine tells of itself, and how busy it is."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from tracking import identity, load, machine, names


def test_this_machine_is_described_in_known_tags() -> None:
    tags = machine.describe()
    names.check_tags(tags)
    assert {"machine.id", "machine.name", "machine.cores", "machine.python"} <= set(tags)
    assert all(isinstance(value, str) and value for value in tags.values())


def test_the_id_is_stable_and_tells_nothing_of_the_host() -> None:
    assert machine.machine_id() == machine.machine_id()
    assert len(machine.machine_id()) == 12
    assert set(machine.machine_id()) <= set("0123456789abcdef")


def test_a_given_name_makes_a_machine_of_its_own() -> None:
    given = machine.describe(name="laptop-a")
    assert given["machine.name"] == "laptop-a"
    assert given["machine.id"] == machine.machine_id("laptop-a") != machine.machine_id("laptop-b")


def test_an_anonymous_machine_hides_its_hosts_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.node", lambda: "annas-laptop")
    tags = machine.describe(anonymous=True)
    assert "annas-laptop" not in " ".join(tags.values())
    assert tags["machine.name"] == f"host-{tags['machine.id'][:6]}"


def test_what_a_system_does_not_tell_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def untold(*_: object, **__: object) -> Any:
        raise NotImplementedError

    for name in ("sensors_battery", "cpu_freq", "cpu_count", "virtual_memory"):
        monkeypatch.setattr(psutil, name, untold, raising=False)
    for name in ("_cpu", "_governor", "_virtual"):
        monkeypatch.setattr(machine, name, untold)
    monkeypatch.setattr(identity, "in_container", lambda: False)
    monkeypatch.setattr("machineid.hashed_id", lambda _: "0123")
    tags = machine.describe()
    assert not {"machine.power", "machine.frequency_mhz", "machine.cores", "machine.cpu"} & set(
        tags
    )
    assert "machine.os" in tags


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., str]:
    """The id on a system as described: its own id, in a container or not, the processor, a file."""

    def seen(
        own: str | None = "own",
        container: bool = False,
        processor: str = "cpu",
        file: str | None = None,
        host: str = "attic",
    ) -> str:
        def hashed(_: str) -> str:
            if own is None:
                raise RuntimeError("no machine id here")
            return own

        place = tmp_path / "machine-id"
        place.unlink(missing_ok=True)
        if file is not None:
            place.write_text(file + "\n", encoding="utf-8")
        monkeypatch.setattr(identity, "ID_FILES", (tmp_path / "none", place))
        monkeypatch.setattr(identity, "in_container", lambda: container)
        monkeypatch.setattr("machineid.hashed_id", hashed)
        monkeypatch.setattr("platform.node", lambda: host)
        return identity.machine_id(None, lambda: processor)

    return seen


@pytest.mark.parametrize("own, container", [("own", False), (None, False), ("own", True)])
def test_a_new_host_name_makes_no_new_machine(
    system: Callable[..., str], own: str | None, container: bool
) -> None:
    there = system(own, container)
    assert system(own, container, host="cellar") == there


def test_a_containers_own_id_is_not_the_machines(system: Callable[..., str]) -> None:
    there = system("of one container", True, file="of the image")
    assert system("of another container", True, file="of the image") == there
    assert system("of one container", True, "another cpu", file="of the image") != there
    assert system("of one container", True, file="of the host, mounted") != there
    assert system("of one container", True, file=None) == system("x", True, file="")


def test_outside_a_container_the_systems_id_decides(system: Callable[..., str]) -> None:
    assert system("own", processor="cpu", file="a") == system("own", processor="new", file="b")
    assert system("own") != system("another")
    assert system(None, processor="cpu") != system(None, processor="another")


@pytest.mark.parametrize("mark", ["file", "environment", None])
def test_containers_are_known_by_their_marks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mark: str | None
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setattr(identity, "_CONTAINER_FILES", (tmp_path / "a", tmp_path / "b"))
    if mark == "file":
        (tmp_path / "b").touch()
    if mark == "environment":
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert identity.in_container() == (mark is not None)


class _Battery:
    def __init__(self, plugged: bool | None) -> None:
        self.power_plugged = plugged


@pytest.mark.parametrize(
    ("battery", "power"),
    [(None, None), (_Battery(None), None), (_Battery(True), "mains"), (_Battery(False), "battery")],
)
def test_power_is_told_only_by_a_battery(
    monkeypatch: pytest.MonkeyPatch, battery: _Battery | None, power: str | None
) -> None:
    monkeypatch.setattr(psutil, "sensors_battery", lambda: battery, raising=False)
    assert machine.describe().get("machine.power") == power


@pytest.mark.parametrize(
    ("share", "state"),
    [
        (None, None),
        (0.0, "idle"),
        (0.049, "idle"),
        (0.05, "light"),
        (0.249, "light"),
        (0.25, "busy"),
    ],
)
def test_the_words_for_load_have_stated_bounds(share: float | None, state: str | None) -> None:
    assert load.load_state(share) == state


def test_a_busy_program_of_others_is_seen_and_ones_own_work_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cores = psutil.cpu_count() or 1

    def share(own_s: float) -> float:
        times = iter([_times(0.0), _times(10.0 * cores)])
        own = iter([0.0, own_s])
        monkeypatch.setattr(psutil, "cpu_times", lambda: next(times))
        monkeypatch.setattr(load, "_family", lambda process: [process])
        monkeypatch.setattr(load, "_cpu_s", lambda _: next(own))
        meter = load.LoadMeter()
        meter.start()
        told = meter.stop()
        assert told is not None
        return told

    assert share(own_s=0.0) == pytest.approx(0.5)  # half of all the time was busy
    assert share(own_s=5.0 * cores) == pytest.approx(0.0)


def _times(total_s: float) -> Any:
    class Times:
        def _asdict(self) -> dict[str, float]:
            return {"user": total_s / 2, "idle": total_s / 2, "guest": total_s / 2}

    return Times()


def test_the_meter_answers_on_this_machine_with_known_names() -> None:
    meter = load.Meter()
    meter.start()
    until(lambda: time.process_time() > 0.2)
    metrics, tags = meter.stop()
    names.check_metrics(metrics)
    names.check_tags(tags)
    assert 0.0 <= metrics.get("load/others_share", 0.0) <= 1.0


def test_slowing_down_for_heat_is_counted_where_the_system_counts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load, "_CPUS", tmp_path)
    monkeypatch.setattr(psutil, "cpu_freq", lambda: SimpleNamespace(current=2400.0))
    meter = load.Meter()
    meter.start()
    assert "load/throttle_events" not in meter.stop()[0]
    counters = [tmp_path / f"cpu{i}" / "thermal_throttle" / "core_throttle_count" for i in (0, 1)]
    for file in counters:
        file.parent.mkdir(parents=True)
        file.write_text("5\n", encoding="ascii")
    meter.start()
    counters[1].write_text("8\n", encoding="ascii")
    metrics, _ = meter.stop()
    assert metrics["load/throttle_events"] == 3
    assert metrics["load/frequency_mhz_before"] == metrics["load/frequency_mhz_after"] == 2400


def test_a_frequency_that_is_not_told_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for answer in (None, SimpleNamespace(current=0.0)):
        monkeypatch.setattr(psutil, "cpu_freq", lambda answer=answer: answer)
        assert load.frequency_mhz() is None


def test_work_of_a_child_process_is_ones_own() -> None:
    code = "import time\nwhile time.process_time() < 0.3: pass\nprint('done', flush=True)\ninput()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        family = load._family(psutil.Process())
        assert child.pid in [process.pid for process in family]
        assert load._cpu_s(psutil.Process(child.pid)) >= 0.25
        child.communicate("\n")


def test_a_meter_that_was_not_started_says_so() -> None:
    with pytest.raises(RuntimeError, match="without start"):
        load.LoadMeter().stop()


def until(true: Callable[[], bool]) -> None:
    end_s = time.monotonic() + 5.0
    while not true() and time.monotonic() < end_s:
        pass
