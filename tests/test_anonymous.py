"""With tracking.anonymous=true nothing that is kept tells who measured, or where."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from pipeline import anonymous
from pipeline.compose import compose
from pipeline.config import to_spec
from pipeline.plan import Plan
from tests import fake_jobs
from tests.records_factory import make_failed
from tests.sweeping import go_on, records, run

HOST = "annas-laptop"


@pytest.fixture
def anna(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a user with a name, on a host with a name."""
    home = tmp_path / "homes" / "annamaria"
    home.mkdir(parents=True)
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(home))
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "annamaria")
    monkeypatch.setattr("platform.node", lambda: HOST)
    return home


@pytest.mark.parametrize(
    "told, kept",
    [
        ("{home}/w", "~/w"),
        ("{home}", "~"),
        ("/x{home}/w", "/x~/w"),
        ('File "{home}/p/x.py", line 3', 'File "~/p/x.py", line 3'),
        ("sqlite:///{home}/x.db", "sqlite:///~/x.db"),
        ("/media/annamaria/disk", "/media/USER/disk"),
        ("annamaria is a name", "annamaria is a name"),
        ("draft=int8", "draft=int8"),
    ],
)
def test_home_and_user_are_hidden_in_paths(anna: Path, told: str, kept: str) -> None:
    assert anonymous.hidden(told.format(home=anna)) == kept


def test_a_folder_whose_name_only_begins_like_the_home_is_another(anna: Path) -> None:
    assert anonymous.hidden(f"{anna}-too/w") == f"{anna}-too/w"


def test_the_host_is_hidden_in_addresses(anna: Path) -> None:
    for address in (f"http://{HOST}:5000", f"http://u@{HOST}/x", f"//{HOST}.local"):
        shown = anonymous.hidden(address)
        assert HOST not in shown and "HOST" in shown
    assert anonymous.hidden(f"http://not-{HOST}:5000") == f"http://not-{HOST}:5000"


def test_a_command_that_hides_the_home_means_the_same_weights(anna: Path) -> None:
    for folder in ("w", "my weights"):
        override = f"target.weights='{anna / folder}'" if " " in folder else None
        typed = ["draft=bigram", "k=1", override or f"target.weights={anna / folder}"]
        shown = [anonymous.hidden_override(text) for text in typed]
        assert "annamaria" not in shlex.join(shown)
        (composed,) = compose([*shown, "seed=0"])
        assert to_spec(composed.config).weights == str((anna / folder).resolve())


def test_a_record_tells_nothing_in_any_part(anna: Path) -> None:
    failed = make_failed()
    assert failed.error is not None
    data = json.loads(failed.to_json())
    data["error"]["traceback"] = f'File "{anna}/p/x.py"'
    data["error"]["message"] = f"no {anna}/w"
    data["params"]["target"] = f"{anna}/w"
    data["overrides"] = [f"target.weights={anna}/w"]
    data["notes"] = [f"see {anna}/x"]
    record = anonymous.hidden_record(type(failed).from_json(json.dumps(data)))
    assert "annamaria" not in record.to_json()
    assert record.overrides == ("target.weights='~/w'",)


def test_a_sweep_leaves_no_name_on_disk_or_in_the_store_and_goes_on(anna: Path) -> None:
    weights = anna / "w"
    weights.mkdir()
    words = ("draft=int8", "k=1", "seed=0,13", "n_jobs=1", "tracking.anonymous=true")
    assert run(anna / "p", *words, f"target.weights={weights}").code == 1
    kept = [path for path in (anna / "p").rglob("*") if path.is_file()]
    assert len(kept) >= 4
    for path in kept:
        text = path.read_text(encoding="utf-8")
        assert "annamaria" not in text and HOST not in text, path
    plan = next((anna / "p").glob("outputs/[0-9]*/plan.json"))
    read = Plan.from_dict(json.loads(plan.read_text(encoding="utf-8")))
    assert {job.spec.weights for job in read.jobs} == {str(weights)}
    assert read.with_digests_of(fake_jobs) == read
    done = records(anna / "p")[0]
    stamp = done.stat().st_mtime_ns
    assert go_on(anna / "p").code == 1 and done.stat().st_mtime_ns == stamp
