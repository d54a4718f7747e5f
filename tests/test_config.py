"""The command line: what Hydra users expect of it, and one sentence for every mistake."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from pipeline import sweep
from pipeline.compose import CONF, ROOT, compose
from pipeline.config import crowded, to_spec, workers
from pipeline.progress import Show
from tests import fake_jobs
from tests.sweeping import RECORDER

WRONG = {
    "k=-1": "k=-1: give 0",
    "k=300": "k=300: give a k of up to tokens=200",
    "draws=20000000": "draws=20000000: give up to 10000000",
    "k=four": "k=four: k must be a whole number",
    "k=1,four": "k=four: k must be a whole number",
    "k=true": "k=True: k must be",
    "k=2.5": "k=2.5: k must be",
    "k_auto.treshold=1": "did you mean k_auto.threshold?",
    "k_auto.most=few": "k_auto.most=few: k_auto.most must be a whole number",
    "k=null": "k=null: k must be a whole number, 0 or more, or auto",
    "~k": "has no k",
    "draft=int9": "draft=int9 is not known: draft is one of bigram, ",
    "draft=int8,int9": "draft=int9 is not known",
    "draft.bitz=3": "there is no key draft.bitz; did you mean draft.bits?",
    "drft=int8": "there is no key drft; did you mean draft?",
    "timing.piars=6": "there is no key timing.piars; did you mean timing.pairs?",
    "temperature=1": "did you mean sampling.temperature?",
    "timing.pairs=0": "timing.pairs=0: give 1 pair or more",
    "timing.pairs=-2": "timing.pairs=-2: give 1 pair or more",
    "timing.threads=0": "timing.threads=0",
    "timing=adaptive timing.most_pairs=5": "timing.most_pairs=5: give no fewer than timing.pairs=6",
    "timing=adaptive timing.half_width=2": "timing.half_width=2.0: give a share of the median",
    "timing=adaptive timing.limit_s=0": "timing.limit_s=0.0: give a number of seconds above 0",
    "timing=adaptive timing.pairs=0": "timing.pairs=0: give 1 pair or more",
    "timing=off": "timing=off is not known: timing is one of",
    "tokens=0": "tokens=0: give 1 or more",
    "tokens=1.5": "tokens=1.5: tokens must be a whole number",
    "prompt=": "prompt is empty",
    "prompt='\t'": "the character '\\t' at position 0 is not known",
    "prompt=a(b": "cannot be read: write KEY=VALUE",
    "seed=-1": "seed=-1: give a whole number, 0 or more",
    "sampling.temperature=-0.5": "sampling.temperature=-0.5: give 0 (greedy)",
    "sampling.temperature=nan": "sampling.temperature=nan",
    "sampling.top_p=0": "sampling.top_p=0.0: give a number above 0, at most 1",
    "sampling.top_p=1.01": "sampling.top_p=1.01: give a number above 0, at most 1",
    "sampling.top_k=0": "sampling.top_k=0: give 1 or more",
    "verify=blocks": "verify=blocks",
    "proposal=bush": "proposal=bush",
    "experiment=nix": "experiment=nix is not known: experiment is one of ",
    "n_jobs=0": "n_jobs=0: give 1 or more workers",
    "n_jobs=1,2": "n_jobs is one for a whole sweep",
    "tracking.uri=file:///tmp/x": "is a folder",
    "tracking.uri=5": "tracking.uri=5: give an address",
    "tracking.anonymous=foo": "tracking.anonymous=foo: give true",
    "tracking.machine=''": "tracking.machine='': give a name",
    "tracking.machine=true": "tracking.machine=True: give a name",
    "tracking._target_=os.system": "tracking._target_=os.system: this is no recorder",
    "tracking._target_=no.such": "tracking._target_=no.such: this is no recorder",
    "tracking._target_=null": "tracking._target_=None: this is no recorder",
    "tracking=null": "tracking=null: name one of its options",
}


@pytest.mark.parametrize("argument", WRONG)
def test_a_mistake_is_one_sentence_and_nothing_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], argument: str
) -> None:
    words = argument.split() if argument.startswith("timing=") else [argument]
    line = ["draft=int8", "k=1", "seed=0", RECORDER, *words]
    show = Show(Console(stderr=False, highlight=False))
    code = sweep.main(line, jobs=fake_jobs, root=tmp_path, show=show)
    told = capsys.readouterr()
    assert code == 2 and not told.out and not list(tmp_path.iterdir())
    assert told.err.startswith("specsweep: ") and told.err.count("\n") == 1
    assert WRONG[argument] in told.err


@pytest.mark.parametrize(
    "argument", ["k=0", "sampling.temperature=0", "timing.pairs=5", "n_jobs=-1"]
)
def test_what_only_looks_like_a_mistake_is_allowed(tmp_path: Path, argument: str) -> None:
    line = ["draft=int8", "seed=0", RECORDER, argument, "dry_run=true"]
    assert sweep.main(line, jobs=fake_jobs, root=tmp_path, show=Show(Console(quiet=True))) == 0


@pytest.mark.parametrize(
    ("line", "drafts", "seeds"),
    [
        ([], "bigram trigram ngram small layerskip heads int8 int4", (0, 1)),
        (["experiment=reference"], "bigram int8 int4", (0, 1, 2)),
    ],
)
def test_the_default_grid_is_the_family_and_the_references_its_three_drafts(
    line: list[str], drafts: str, seeds: tuple[int, ...]
) -> None:
    specs = [to_spec(one.config) for one in compose(line)]
    points = [(spec.draft, spec.k, spec.seed) for spec in specs]
    assert points == [(d, k, s) for d in drafts.split() for k in (1, 2, 4, 8) for s in seeds]
    assert {spec.tokens for spec in specs} == {200} and {spec.pairs for spec in specs} == {6}


@pytest.mark.parametrize(
    "arguments, points",
    [
        (["-m", "draft=int8,int4", "k=1,2", "seed=5"], "int8 1 5, int8 2 5, int4 1 5, int4 2 5"),
        (["draft=int8", "k=3", "seed=range(0,3)"], "int8 3 0, int8 3 1, int8 3 2"),
        (["draft=glob(int*)", "k=1", "seed=0"], "int4 1 0, int8 1 0"),
        (["experiment=quick"], "bigram 1 0, bigram 4 0, int8 1 0, int8 4 0"),
        (["experiment=quick", "k=2", "draft=int4"], "int4 2 0"),
        (["hydra.sweeper.params.k='7'", "draft=int4", "seed=0"], "int4 7 0"),
    ],
)
def test_grids_are_written_as_hydra_users_write_them(arguments: list[str], points: str) -> None:
    specs = [to_spec(one.config) for one in compose(arguments)]
    assert [f"{spec.draft} {spec.k} {spec.seed}" for spec in specs] == points.split(", ")


def test_an_experiment_wins_over_the_defaults_and_the_command_line_over_it() -> None:
    assert to_spec(compose(["experiment=quick"])[0].config).tokens == 60
    assert to_spec(compose(["experiment=quick", "tokens=61"])[0].config).tokens == 61


def test_swept_options_of_a_draft_reach_the_jobs() -> None:
    jobs = compose(["draft=int8", "draft.bits=2,3", "k=1", "seed=0"])
    assert [to_spec(one.config).draft_options["bits"] for one in jobs] == [2, 3]
    assert [one.config["draft"]["per_channel"] for one in jobs] == [False, False]


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ("k=auto k_auto.threshold=2", "k_auto.threshold=2.0, k_auto.most=8: give a probability"),
        ("k=auto k_auto.most=0", "k_auto.most=0: give"),
        ("k=auto proposal=tree verify=sequoia", "k=auto is for proposal=chain"),
        ("k=-1 proposal=tree verify=sequoia", "k=-1: give 0"),
        ("k=0 proposal=tree verify=sequoia", "k of 1 or more"),
    ],
)
def test_a_length_that_cannot_be_is_refused(settings: str, told: str) -> None:
    (one,) = compose(["draft=int8", "seed=0", *settings.split()])
    with pytest.raises(ValueError, match=re.escape(told)):
        to_spec(one.config)


def test_auto_is_a_length_like_others_with_settings_of_its_own() -> None:
    jobs = [to_spec(one.config) for one in compose(["draft=int8", "k=2,auto", "seed=0"])]
    assert [(job.k, job.k_auto, job.length) for job in jobs] == [(2, None, 2), (8, 0.3, "auto")]
    settings = ["k=auto", "k_auto.threshold=0.5", "k_auto.most=3"]
    (job,) = [to_spec(one.config) for one in compose(["draft=int8", "seed=0", *settings])]
    assert (job.k, job.k_auto) == (3, 0.5)
    assert job.params()["k"] == "auto" and job.params()["k_most"] == 3


def test_each_job_is_composed_again_from_its_own_overrides() -> None:
    jobs = compose(["draft=int8", "k=1", "seed=0", "sampling.top_p=0.5,1", "prompt='a, \"b\"'"])
    for one in jobs:
        (again,) = compose(one.overrides)
        assert again.config == one.config


def test_a_folder_of_weights_is_kept_by_its_full_path() -> None:
    (one,) = compose(["target.weights=mine", "draft=int8", "k=1", "seed=0"])
    assert to_spec(one.config).weights == str(Path("mine").resolve())


@pytest.mark.parametrize(
    "path", sorted(CONF.glob("*/*.yaml")), ids=lambda p: f"{p.parent.name}/{p.stem}"
)
def test_every_option_says_what_it_is_and_how_to_call_it(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    comment = "\n".join(line for line in lines[:5] if line.startswith("#"))
    assert f"# {path.stem}: " in comment and f"{path.parent.name}={path.stem}" in comment


@pytest.mark.parametrize("path", sorted(CONF.glob("experiment/*.yaml")), ids=lambda p: p.stem)
def test_every_experiment_composes_to_valid_jobs(path: Path) -> None:
    assert [to_spec(one.config) for one in compose([f"experiment={path.stem}"])]


def hydra(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pipeline.sweep", *arguments]
    env = {"PYTHONPATH": str(ROOT), "PATH": ""}
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=env, timeout=60)


def test_help_shows_three_examples_first_and_every_option() -> None:
    told = hydra("--help")
    lines = told.stdout.splitlines()
    assert told.returncode == 0 and not told.stderr
    assert lines[0] == "Examples"
    assert all(line.strip().startswith("python -m pipeline.sweep") for line in lines[1:4])
    assert (
        "draft: bigram, " in told.stdout and "timing: adaptive, pairs, skip, whole" in told.stdout
    )


def test_the_configuration_is_shown_and_no_folder_is_left_anywhere(tmp_path: Path) -> None:
    told = hydra("--cfg", "job", "draft=int4", cwd=tmp_path)
    assert told.returncode == 0 and "name: int4" in told.stdout and "hydra" not in told.stdout
    wrong = hydra("seed=four", cwd=tmp_path)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr == "specsweep: seed=four: seed must be a whole number\n"
    assert not list(tmp_path.iterdir())


def test_far_more_workers_than_cores_are_warned_of() -> None:
    assert crowded(4, cores=2) == []
    (told,) = crowded(5, cores=2)
    assert told.startswith("5 workers on 2 cores")


def test_workers_are_counted_as_joblib_counts_them() -> None:
    assert [workers(n, cores=4) for n in (None, 1, 3, -1, -2, -9)] == [4, 1, 3, 4, 3, 1]


@pytest.mark.parametrize("command", ["same_text", "check_distribution", "rule_gains"])
def test_commands_with_a_sweeps_settings_have_help_of_their_own(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main = importlib.import_module(f"pipeline.{command}").main
    with pytest.raises(SystemExit) as left:
        main(["--help"])
    assert left.value.code == 0
    told = capsys.readouterr().out
    assert f"python -m pipeline.{command}" in told and "pipeline.sweep --help" in told


@pytest.mark.parametrize("command", ["same_text", "check_distribution", "rule_gains"])
def test_a_dry_run_is_refused_where_there_is_none(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert importlib.import_module(f"pipeline.{command}").main(["dry_run=true"]) == 2
    said = capsys.readouterr()
    assert not said.out and said.err.startswith("specsweep: dry_run=true: ")
