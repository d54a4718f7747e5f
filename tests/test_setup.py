"""Setting up: once, mended where it broke off, and plain words where it cannot be."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

needs_make = pytest.mark.skipif(
    sys.platform == "win32" or shutil.which("make") is None, reason="needs make and sh"
)

# stands for every Python: writes down what it is asked for, and fails at it where it is told to
PYTHON = """#!/bin/sh
case "$1 $2" in
"-c "*) test ! -e too-old ;;
"-V "*) echo "Python 3.9.2" ;;
"-m venv") rm -rf .venv && mkdir -p .venv/bin && cp "$0" .venv/bin/python && echo venv >> log ;;
"-m pip") echo "pip $*" >> log && test ! -e no-network ;;
*) echo "$*" >> log
  for word; do echo "$word" >> words; done
  echo "$SPECSWEEP_BACKEND" > backend ;;
esac
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    python = tmp_path / "some-python"
    python.write_text(PYTHON, encoding="utf-8")
    python.chmod(0o755)
    return tmp_path


def make(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs make there; what was asked of Python is in `log` afterwards."""
    (project / "log").write_text("", encoding="utf-8")
    env = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    command = ["make", "PYTHON=./some-python", *words]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, env=env)


def log(project: Path) -> list[str]:
    """What Python was asked for, each in one word."""
    lines = (project / "log").read_text(encoding="utf-8").splitlines()
    return [line.partition(" ")[0] for line in lines]


@needs_make
def test_the_first_call_sets_up_and_the_second_installs_nothing(project: Path) -> None:
    assert make(project, "setup").returncode == 0 and log(project) == ["venv", "pip"]
    assert make(project, "setup").returncode == 0 and log(project) == []
    assert make(project, "test").returncode == 0 and log(project) == ["-m"]


@needs_make
def test_a_set_up_that_broke_off_is_mended_by_the_next_call(project: Path) -> None:
    (project / "no-network").touch()
    assert make(project, "sweep").returncode != 0 and log(project) == ["venv", "pip"]
    (project / "no-network").unlink()
    assert make(project, "sweep").returncode == 0 and log(project) == ["venv", "pip", "-m"]


@needs_make
def test_a_venv_whose_python_is_gone_is_made_anew(project: Path) -> None:
    make(project, "setup")
    (project / ".venv/bin/python").unlink()
    assert make(project, "setup").returncode == 0 and log(project) == ["venv", "pip"]


@needs_make
def test_new_pins_are_installed_into_the_venv_that_is_there(project: Path) -> None:
    make(project, "setup")
    for stamp in (project / ".venv").glob(".ready*"):
        os.utime(stamp, (1, 1))
    assert make(project, "setup").returncode == 0 and log(project) == ["pip"]


@needs_make
def test_an_old_python_is_answered_in_one_sentence(project: Path) -> None:
    (project / "too-old").touch()
    told = make(project, "sweep")
    assert told.returncode != 0 and log(project) == []
    first = told.stderr.splitlines()[0]
    assert "needs Python 3.11 or newer, and Python 3.9.2 is what was found" in first
    assert "make PYTHON=/path/to/python" in first and not (project / ".venv").exists()


@needs_make
def test_another_torch_is_taken_instead_of_the_pinned_one(project: Path) -> None:
    assert make(project, "setup", "TORCH=torch==2.9.1").returncode == 0
    asked = (project / "log").read_text(encoding="utf-8")
    pins = (project / ".venv/constraints.txt").read_text(encoding="utf-8")
    assert "torch==2.9.1" in asked and "torch==" not in pins and "numpy==" in pins
    assert make(project, "setup", "TORCH=torch==2.9.1").returncode == 0 and log(project) == []


@needs_make
def test_settings_reach_the_sweep(project: Path) -> None:
    make(project, "setup")
    make(project, "sweep", "ARGS=draft=int8 k=1,2 seed='range(0,5)'", "N_JOBS=2")
    line = (project / "log").read_text(encoding="utf-8").strip()
    assert line == "-m pipeline.sweep n_jobs=2 draft=int8 k=1,2 seed=range(0,5)"


@needs_make
@pytest.mark.parametrize("name", ["a b.zip", "it's.zip", 'a "b" c.zip', "a;b&c.zip", "ü*.zip"])
def test_a_file_of_any_name_is_one_word(project: Path, name: str) -> None:
    make(project, "setup")
    for verb in ("import", "export"):
        (project / "words").write_text("", encoding="utf-8")
        assert make(project, verb, f"FILE={name}", "ARGS=--one two").returncode == 0
        asked = (project / "words").read_text(encoding="utf-8").splitlines()
        assert asked == ["-m", "tracking", verb, name, "--one", "two"]


@needs_make
def test_an_import_without_a_file_says_how_to_name_one(project: Path) -> None:
    told = make(project, "import")
    assert told.returncode != 0 and "make import FILE=" in told.stderr
    assert "-m tracking" not in (project / "log").read_text(encoding="utf-8")


@needs_make
def test_the_servers_settings_reach_it_and_a_shells_own_host_does_not(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(project, "setup")
    monkeypatch.setenv("HOST", "the-shells-own")
    make(project, "server")
    line = (project / "log").read_text(encoding="utf-8").strip()
    assert line == "-m tracking server"
    make(project, "server", "HOST=127.0.0.1", "PORT=5001", "ALLOWED_HOSTS=attic,*", "ARGS=--x y")
    line = (project / "log").read_text(encoding="utf-8").strip()
    assert line == ("-m tracking server --host 127.0.0.1 --port 5001 --allowed-hosts attic,* --x y")
    monkeypatch.setenv("PORT", "5002")
    make(project, "server")
    assert "--port 5002" in (project / "log").read_text(encoding="utf-8")


@needs_make
@pytest.mark.parametrize("by", ["word", "environment"])
def test_the_servers_database_is_handed_over_unseen(
    project: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    make(project, "setup")
    address = 'postgresql://u:it\'s a "p$w" `x`@h/d'
    if by == "word":
        make(project, "server", f"BACKEND={address}")
    else:
        monkeypatch.setenv("BACKEND", address)
        make(project, "server")
    assert (project / "log").read_text(encoding="utf-8").strip() == "-m tracking server"
    assert (project / "backend").read_text(encoding="utf-8").strip() == address


@needs_make
def test_the_bench_adds_transformers_once_and_goes_on_where_that_cannot_be(project: Path) -> None:
    make(project, "setup")
    assert make(project, "bench", "ARGS=--quick").returncode == 0 and log(project) == ["pip", "-m"]
    asked = (project / "log").read_text(encoding="utf-8")
    assert ".[dev,hf]" in asked and "-c .venv/constraints.txt" in asked
    assert asked.splitlines()[-1] == "-m pipeline.bench --quick"
    assert make(project, "bench").returncode == 0 and log(project) == ["-m"]
    for stamp in (project / ".venv").glob(".ready-hf"):
        stamp.unlink()
    (project / "no-network").touch()
    told = make(project, "bench")
    assert told.returncode == 0 and log(project) == ["pip", "-m"]
    assert "transformers could not be installed: it goes on without" in told.stderr


@needs_make
def test_make_alone_lists_every_target_and_sets_nothing_up(project: Path) -> None:
    told = make(project)
    targets = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    assert told.returncode == 0 and log(project) == [] and len(targets) >= 10
    for target in targets:
        assert f"make {target} " in told.stdout


def test_every_dependency_is_pinned_and_no_pin_is_of_one_machine_only() -> None:
    pins = {}
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            name, version = line.split("==")
            pins[re.sub(r"[-_.]+", "-", name).lower()] = version
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    needed = project["dependencies"] + extras["dev"] + extras["hf"]
    assert not {re.split(r"[<>=[]", one)[0] for one in needed} - set(pins)
    assert not [name for name, version in pins.items() if "+" in version]
