"""Trees as jobs: what can be asked for, what is refused and how, what is recorded and timed."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from rich.console import Console

from pipeline import costs, job, pairs, rule_gains
from pipeline.clocks import Timed
from pipeline.compose import CONF, compose
from pipeline.config import to_spec
from pipeline.context import Ints
from pipeline.drafts import BRANCHING
from pipeline.progress import Show
from pipeline.records import JobRecord, Round
from pipeline.sampling import Uniforms
from pipeline.spec import JobSpec
from pipeline.tree_cache import Parents
from pipeline.tree_decode import TreeMethod
from pipeline.verify import TREE_RULES, find_tree
from pipeline.verify.tree import tree
from tests.fake_machine import CostlySampling, Machine, Reader
from tracking.names import METRICS, PARAMS

FITTING = "proposal=chain goes with token, block, match, proposal=tree with specinfer, sequoia, "
WRONG = {
    "verify=block": f"verify=block: no such rule for proposal=tree; {FITTING}",
    "verify=token": FITTING,
    "proposal=chain": f"verify=sequoia: no such rule for proposal=chain; {FITTING}",
    "verify=sequoja": FITTING,
    "draft=ngram": f"goes with drafts that give a distribution, {BRANCHING}",
    "tree=[]": "give tree=[3,2,1] or the like, a width for each depth",
    "tree=[2,0]": "every depth needs a width of 1 or more",
    "tree=[2,x]": "tree must be a whole number",
    "tree=[40,9]": "tree=[40, 9] has 400 nodes",
    "k=0": "and a k of 1 or more",
}


def specs(*arguments: str) -> list[JobSpec]:
    usual = ["draft=bigram", "k=3", "seed=0", "proposal=tree", "verify=sequoia"]
    return [to_spec(one.config) for one in compose([*usual, *arguments])]


def small(*arguments: str) -> JobSpec:
    (spec,) = specs("tokens=14", "draws=300", "timing.pairs=2", *arguments)
    return spec


@pytest.mark.parametrize("argument", WRONG)
def test_what_makes_no_sense_fails_before_anything_runs_and_says_what_does(argument: str) -> None:
    with pytest.raises(ValueError) as error:
        for spec in specs(argument):
            job.check(spec)
    assert WRONG[argument] in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("rule", TREE_RULES)
def test_every_rule_for_trees_goes_with_every_draft_that_can_branch(rule: str) -> None:
    for spec in specs(f"draft={BRANCHING.replace(' ', '')}", f"verify={rule}"):
        job.check(spec)
    others = {path.stem for path in (CONF / "draft").glob("*.yaml")} - set(BRANCHING.split(", "))
    assert others == {"ngram"}


def test_k_is_the_depth_and_the_first_k_widths_count() -> None:
    found = [(spec.k, spec.tree) for spec in specs("tree=[4,2,2]", "k=1,2,3,8")]
    assert found == [(1, (4,)), (2, (4, 2)), (3, (4, 2, 2)), (3, (4, 2, 2))]
    assert specs("proposal=chain", "verify=token", "tree=[4,2]")[0].tree is None


def test_a_tree_is_part_of_a_jobs_name_and_comes_back_from_a_record() -> None:
    first, second = specs("tree=[4,2,2],[3,2,1]")
    assert first.name == "bigram k=3 seed=0 tree=[4,2,2] verify=sequoia"
    assert job.digest(first) != job.digest(second)
    assert JobSpec.from_dict(json.loads(json.dumps(first.to_dict()))) == first


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"tree": None}, "give tree="),
        ({"tree": (2,)}, "k=3: tree=\\[2\\] has depth 1"),
        ({"k_auto": 0.3}, "k=auto: that is for proposal=chain"),
        ({"proposal": "chain", "verify": "token"}, "give proposal=tree with it"),
    ],
)
def test_a_spec_that_contradicts_itself_is_refused(values: dict[str, object], told: str) -> None:
    data = {**specs()[0].to_dict(), **values}
    with pytest.raises(ValueError, match=told):
        JobSpec.from_dict(data).validate()


@pytest.fixture(scope="module")
def counted() -> JobRecord:
    return job.count(small())


def test_a_job_with_trees_is_counted_and_timed_like_any_other(counted: JobRecord) -> None:
    done = job.clock(small(), counted, {})
    assert done.metrics["time/timed_matches_counts"] == 1
    assert all(name in METRICS for name in [*done.metrics, *done.series])
    assert all(name in PARAMS or name.startswith("draft.") for name in done.params)
    assert done.params["tree"] == "[3,2,1]" and done.params["k"] == 3
    assert done.metrics["cost/v"] > 0 and done.metrics["cost/c"] > 0
    assert JobRecord.from_json(done.to_json()) == done


def test_the_record_tells_depth_and_nodes_of_every_round(counted: JobRecord) -> None:
    assert all(row["nodes"] == tree((3, 2, 1)[: row["k"]]).nodes for row in counted.rounds)
    assert counted.metrics["count/nodes"] == sum(row["nodes"] for row in counted.rounds)
    assert counted.metrics["count/drafted"] == sum(row["k"] for row in counted.rounds)
    rate = counted.metrics["count/accepted"] / counted.metrics["count/drafted"]
    assert counted.metrics["count/acceptance_rate"] == rate
    # 9 rows of q, 15 of p; 7 characters of the prompt and the text, and 15 nodes, in the cache
    assert counted.metrics["memory/extra_state_bytes"] == 84 * 8 * (10 + 15)


def test_the_experiment_compares_trees_with_chains_under_every_rule() -> None:
    jobs = [to_spec(one.config) for one in compose(["experiment=trees"])]
    assert {spec.tree for spec in jobs} == {(1, 1, 1), (3, 2, 1)}
    assert {spec.verify for spec in jobs} == set(TREE_RULES)
    assert len({spec.name for spec in jobs}) == len(jobs) == 16
    for spec in (jobs[0], jobs[-1]):
        short = replace(spec, tokens=6, draws=100, timing="skip")
        assert job.count(short).metrics["count/emitted"] == 6


class TreeReader(Reader):
    """A read of a tree costs what one of as many tokens does."""

    def read_tree(self, lanes: Ints, tokens: Ints, parents: Parents) -> NDArray[np.float64]:
        before = self.lengths.copy()
        rows = self.read(lanes, tokens)
        self.lengths[:] = before
        return rows

    def gather(self, lanes: Ints, nodes: Ints, counts: Ints) -> None:
        self.lengths[lanes] += counts


def timed_on(machine: Machine, draft_token_ns: int) -> Timed:
    """A target of 90 us and 10 us a token, a draft of 20 us a pass, 3 us a row call."""
    return Timed(
        open_target=lambda read: TreeReader(machine, read, 90_000, 10_000, sharpness=1.2),
        open_draft=lambda read: TreeReader(machine, read, 20_000, draft_token_ns),
        prompt=np.array([0, 3, 1]),
        tokens=90,
        method=TreeMethod(
            (3, 2), find_tree("sequoia"), CostlySampling(machine=machine, rows_ns=3000)
        ),
        uniforms=Uniforms(3),
    )


def rounds_of(timed: Timed) -> tuple[Ints, list[Round]]:
    side, rounds, start = timed.speculative(), [], 0
    while start < timed.tokens:
        _, count = side.advance(start + 1)
        drafted = min(2, timed.tokens - start - 1)
        rounds.append(Round(start, drafted, side.accepted[-1], (), tree((3, 2)[:drafted]).nodes))
        start += count
    return side.emitted(), rounds


def test_c_counts_draft_passes_and_v_a_pass_over_the_whole_tree() -> None:
    machine = Machine()
    timed = timed_on(machine, draft_token_ns=0)
    got = costs.measure(timed, *rounds_of(timed), clock=machine.clock().wall)
    assert got.target_pass_us == pytest.approx(90 + 10 + 3)
    assert got.draft_token_us == pytest.approx(20 + 3)
    assert got.verify_pass_us == pytest.approx(90 + 100 + 3, rel=0.02)  # some at the end are less


def test_on_a_machine_without_noise_the_full_formula_holds_for_trees() -> None:
    machine = Machine()
    timed = timed_on(machine, draft_token_ns=4_000)
    plan = pairs.PairPlan(90, 2, piece_tokens=10, round_tokens=3)
    found = pairs.measure(timed.baseline, timed.speculative, plan, machine.clock())
    emitted, rounds = rounds_of(timed)
    got = costs.measure(timed, emitted, rounds, clock=machine.clock().wall)
    predicted = got.predicted(90 / len(rounds))
    assert predicted == pytest.approx(pairs.statistics(found.pairs).median, rel=0.01)


def test_gains_of_the_better_rules_are_told_in_percent_with_their_error() -> None:
    out = io.StringIO()
    line = ["draft=bigram", "k=2", "tree=[2,2]", "seed=0,1,2", "tokens=30"]
    assert rule_gains.main(line, Show(Console(file=out, highlight=False, width=200))) == 0
    title, *lines, published = out.getvalue().splitlines()
    assert title == "bigram k=2 tree=[2,2]: 3 seeds, 30 characters each"
    assert [told.split()[0] for told in lines] == ["token", "block", "long", *TREE_RULES][:6]
    assert re.search(r"\d\.\d\d tokens a pass  [+-]\d+\.\d ± \d+\.\d% over specinfer", lines[4])
    assert lines[4].endswith("% over long") and lines[5].endswith("% over block")
    assert published == rule_gains.PUBLISHED


def test_gains_that_cannot_be_measured_are_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert rule_gains.main(["draft=ngram", "seed=0"]) == 2
    assert capsys.readouterr().err.startswith("specsweep: draft=ngram proposes one continuation")
