"""Every name that reaches MLflow: what it means, its unit, and which side it is on.

Counts are exact and equal on every machine; clocks are ranges of this machine. The slash in a
metric's name makes a section of the charts in MLflow's page. Nothing else may be recorded.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from pipeline.records import JobRecord
from tracking.load import BOUNDS

MetricSide = Literal["counts", "clocks"]
Step = Literal["", "position", "pair"]


@dataclass(frozen=True, slots=True)
class Metric:
    """`step` says what the step counts where the metric is a series, and is empty otherwise."""

    name: str
    unit: str
    side: MetricSide
    meaning: str
    step: Step = ""


@dataclass(frozen=True, slots=True)
class Tag:
    name: str
    side: Literal["counts", "clocks", "about"]
    meaning: str


SECTIONS: dict[str, tuple[MetricSide, str]] = {
    "time": ("clocks", "baseline time over speculative time, pair by pair"),
    "count": ("counts", "what was drafted, accepted and emitted, to the last token"),
    "dist": ("counts", "whether the text still has the target's distribution"),
    "memory": ("counts", "what each model keeps"),
    "cost": ("clocks", "what the parts of a round cost, and the speedup they predict"),
    "null": ("clocks", "the baseline against itself: what this machine's noise alone gives"),
    "load": ("clocks", "how busy the machine was meanwhile"),
    "sweep": ("counts", "the sweep as a whole, on its parent run; its seconds are clocks"),
    "compare": ("counts", "sweeps side by side, on a run of its own; its flips are of clocks"),
}


def _count(name: str, unit: str, meaning: str, step: Step = "") -> Metric:
    return Metric(name, unit, "counts", meaning, step)


def _clock(name: str, unit: str, meaning: str, step: Step = "") -> Metric:
    return Metric(name, unit, "clocks", meaning, step)


_METRICS = (
    _count("count/acceptance_rate", "1", "accepted / drafted, totals over all rounds"),
    _count("count/alpha", "1", "mean of Σ min(p, q): the expected acceptance, less noisy"),
    _count("count/target_passes", "passes", "through the target, the prompt's prefill not counted"),
    _count("count/tokens_per_pass", "tokens", "emitted / target passes"),
    _count("count/drafted", "tokens", "proposed by the draft"),
    _count("count/accepted", "tokens", "proposals that were kept"),
    _count("count/nodes", "tokens", "drafted in all trees; count/drafted is their depths"),
    _count("count/emitted", "tokens", "length of the text that came out"),
    _count("count/draft_length", "tokens", "drafted in a round, on average where k had room"),
    _count("count/rounds", "rounds", "draft, verify, keep a prefix, add one token"),
    _count("count/margin_min", "1", "smallest distance of a random number to the threshold it met"),
    _count("count/accept_at", "1", "P(accepted, given that the one before was)", "position"),
    _count("count/accept_joint", "1", "P(all positions up to this one are accepted)", "position"),
    _count("dist/tv", "1", "total variation of the drawn first characters from the target's law"),
    _count("dist/tv_null_median", "1", "tv of as many draws from the target itself: median"),
    _count("dist/tv_null_p95", "1", "tv of as many draws from the target itself: 95% quantile"),
    _count("dist/draws", "draws", "how many first characters were drawn"),
    _count("dist/p_value", "1", "how often the target itself would stray as far"),
    _count(
        "dist/recheck_p_value", "1", "the same with ten times the draws, where it was asked for"
    ),
    _count("dist/detectable_leak", "1", "smallest share of the draft's law that would be found"),
    _count("dist/pit_p_value", "1", "uniformity of the whole text's probability transform"),
    _count("memory/target_weight_bytes", "bytes", "the target's weights"),
    _count("memory/draft_weight_bytes", "bytes", "the draft's weights as it would be stored"),
    _count("memory/target_cache_bytes", "bytes", "the target's key-value cache at its longest"),
    _count("memory/draft_cache_bytes", "bytes", "the draft's key-value cache at its longest"),
    _count("memory/extra_state_bytes", "bytes", "anything else that the draft keeps"),
    _clock(
        "time/speedup_median", "1", "median of the pairs' ratios: above 1, speculation was faster"
    ),
    _clock("time/speedup_min", "1", "smallest ratio of a pair"),
    _clock("time/speedup_max", "1", "largest ratio of a pair"),
    _clock("time/speedup_low", "1", "lower end of the interval for the median"),
    _clock("time/speedup_high", "1", "upper end of the interval for the median"),
    _clock("time/order_effect", "1", "ratio of pairs in order AB / in order BA: 1 without effect"),
    _clock("time/pairs", "pairs", "pairs measured"),
    _clock("time/flagged_pairs", "pairs", "pairs whose halves got unequal shares of the CPU"),
    _clock("time/baseline_tokens_per_s", "tokens/s", "plain decoding"),
    _clock("time/speculative_tokens_per_s", "tokens/s", "speculative decoding"),
    _clock("time/timed_s", "s", "spent inside timed halves"),
    _clock("time/timed_matches_counts", "1", "1 where the timed text is the counted one, else 0"),
    _clock("time/pair_ratio", "1", "baseline time / speculative time of one pair", "pair"),
    _clock("time/pair_baseline_s", "s", "the pair's baseline half", "pair"),
    _clock("time/pair_speculative_s", "s", "the pair's speculative half", "pair"),
    _clock("cost/target_pass_us", "us", "one token through the target"),
    _clock("cost/verify_pass_us", "us", "the k + 1 positions of a round through the target"),
    _clock("cost/draft_token_us", "us", "one drafted token"),
    _clock("cost/c", "target passes", "one drafted token"),
    _clock("cost/v", "target passes", "one verify pass"),
    _clock("cost/o", "target passes", "everything else in a round"),
    _clock("cost/predicted_simple", "1", "tokens per pass / (1 + k c)"),
    _clock("cost/predicted", "1", "tokens per pass / (v + k c + o)"),
    _clock("cost/prediction_error", "1", "predicted / measured - 1"),
    _clock("null/ratio_median", "1", "baseline against itself: median ratio"),
    _clock("null/ratio_min", "1", "baseline against itself: smallest ratio"),
    _clock("null/ratio_max", "1", "baseline against itself: largest ratio"),
    _clock("load/before_1m", "processes", "load average of the last minute when the timing began"),
    _clock("load/after_1m", "processes", "load average of the last minute when the timing ended"),
    _clock("load/others_share", "1", "part of the machine's CPU time that other programs took"),
    _clock("load/frequency_mhz_before", "MHz", "the cores' mean frequency when the timing began"),
    _clock("load/frequency_mhz_after", "MHz", "the cores' mean frequency when the timing ended"),
    _clock("load/throttle_events", "events", "times that the CPU slowed down for heat meanwhile"),
    _clock("load/cpu_share_baseline", "1", "CPU time / wall time of the baseline halves"),
    _clock("load/cpu_share_speculative", "1", "CPU time / wall time of the speculative halves"),
    _count("sweep/jobs", "jobs", "jobs of the grid"),
    _count("sweep/failed", "jobs", "jobs that failed"),
    _count("sweep/tests", "tests", "distribution checks of all jobs together"),
    _count(
        "sweep/holm_p_value", "1", "smallest p-value of them, corrected for their number (Holm)"
    ),
    _count("sweep/rejected", "jobs", "jobs whose text is not the target's"),
    _clock("sweep/draft_pairs", "pairs", "of drafts that were timed under one setting"),
    _clock(
        "sweep/misleading_pairs",
        "pairs",
        "of drafts of which the one that is accepted more writes fewer tokens a second",
    ),
    _clock("sweep/count_s", "s", "the counting phase"),
    _clock("sweep/clock_s", "s", "the timing phase, without waits for an idle machine"),
    _clock("sweep/timed_share", "1", "part of the timing phase that was spent inside timed halves"),
    _count("compare/matched", "jobs", "jobs that two or more of the sweeps have"),
    _count("compare/agreeing", "jobs", "those of them whose counts are equal"),
    _clock("compare/flips", "rows", "draft and k faster in one column, and slower in another"),
)
METRICS: dict[str, Metric] = {metric.name: metric for metric in _METRICS}

PARAMS: dict[str, str] = {
    "draft": "what proposes",
    "k": "tokens drafted in a round; auto where the draft's own sureness decides",
    "seed": "of the addressed random numbers",
    "target": "whose distribution the text has",
    "verify": "rule that accepts or rejects",
    "proposal": "shape of what is drafted: a chain, a tree",
    "tree": "children of a node at each depth; k is the depth",
    "tokens": "length of the text",
    "temperature": "0 is greedy",
    "top_k": "only the k likeliest tokens",
    "top_p": "only the likeliest tokens of this total probability",
    "dtype": "arithmetic of the counts / of the clocks",
    "threads": "of the timed side",
    "pairs": "baseline and speculative halves that are compared; of timing=adaptive the least",
    "most_pairs": "at which timing=adaptive stops in any case",
    "half_width": "of the interval, as a share of the median, at which timing=adaptive stops",
    "limit_s": "seconds of pairs after which timing=adaptive stops",
    "prompt": "what the text goes on from",
    "k_auto": "with k=auto: a round stops after a token that the draft gave less than this",
    "k_most": "with k=auto: the most tokens drafted in a round",
    "eos": "token that ends the text early",
    "timing": "how the clock side measures",
    "piece_tokens": "tokens between two clock readings",
    "draws": "first characters drawn for the distribution check",
    "compile": "passes of target and draft compiled by torch, on the timed side",
}
"""Parameters of a job. A draft's own options are called `draft.OPTION`."""

SWEEP_PARAMS: dict[str, str] = {
    "command": "what was typed to begin the sweep",
    "drafts": "all drafts of the grid",
    "k": "all tokens drafted in a round",
    "seeds": "all seeds",
    "jobs": "how many jobs the grid has",
    "workers": "processes that counted",
}
"""Parameters of a sweep, on its parent run."""

_TAGS = (
    Tag("counts.digest", "counts", "SHA-256 over emitted tokens and accepted counts"),
    Tag("weights.digest", "counts", "hash of the weights in use"),
    Tag("job.digest", "counts", "hash of all that can change the job's figures"),
    Tag("code.digest", "counts", "hash of the sources that count and time"),
    Tag("exactness", "counts", "what the distribution checks say"),
    Tag("verdict", "clocks", "faster, slower, or ambiguous: the range overlaps 1 or the null's"),
    Tag("timing.stopped", "clocks", "why no more pairs were measured"),
    Tag("load.state", "clocks", BOUNDS),
    Tag("machine.id", "clocks", "the same for every sweep of this machine, unlike any other's"),
    Tag("machine.name", "clocks", "host name, or the name that was given"),
    Tag("machine.cpu", "clocks", "processor"),
    Tag("machine.cores", "clocks", "physical / logical cores"),
    Tag("machine.memory_bytes", "clocks", "main memory"),
    Tag("machine.os", "clocks", "operating system"),
    Tag("machine.arch", "clocks", "instruction set"),
    Tag("machine.python", "clocks", "version of Python"),
    Tag("machine.torch", "clocks", "version of torch"),
    Tag("machine.torch_cpu", "clocks", "instruction set that torch uses"),
    Tag("machine.blas", "clocks", "library that multiplies matrices"),
    Tag("machine.power", "clocks", "mains or battery"),
    Tag("machine.governor", "clocks", "frequency governor"),
    Tag("machine.frequency_mhz", "clocks", "lowest and highest clock frequency"),
    Tag("machine.virtual", "clocks", "kind of virtual machine or container, or no"),
    Tag("run.kind", "about", "sweep, job of a sweep, or compare"),
    Tag("compare.digest", "about", "hash of what a comparison was made from"),
    Tag("compare.sweeps", "about", "the sweeps that were compared"),
    Tag("sweep.id", "about", "the sweep that the run belongs to"),
    Tag("sweep.description", "about", "what the sweep was for"),
    Tag("job.command", "about", "runs this very job again"),
    Tag("git.commit", "about", "of the code"),
    Tag("git.dirty", "about", "true where the code had uncommitted changes"),
    Tag("record.digest", "about", "SHA-256 over all that the run was logged from"),
    Tag("record.schema", "about", "version of the record's form"),
    Tag("bundle.digest", "about", "SHA-256 over all of the run that came with a bundle"),
    Tag("bundle.run_id", "about", "the run's id in the store that recorded it"),
    Tag("bundle.exported", "about", "when the bundle that brought the run was written, UTC"),
    Tag("bundle.schema", "about", "version of the form of that bundle"),
)
TAGS: dict[str, Tag] = {tag.name: tag for tag in _TAGS}


def check_record(record: JobRecord) -> None:
    """ValueError naming the first metric, series, parameter or tag that is not in these tables."""
    check_metrics(record.metrics)
    check_names("series", record.series, [m.name for m in METRICS.values() if m.step])
    check_names("parameter", [p for p in record.params if not p.startswith("draft.")], PARAMS)
    check_tags(record.tags)


def check_metrics(names: Iterable[str]) -> None:
    check_names("metric", names, [m.name for m in METRICS.values() if not m.step])


def check_tags(names: Iterable[str]) -> None:
    check_names("tag", names, TAGS)


def check_names(kind: str, names: Iterable[str], known: Iterable[str]) -> None:
    """ValueError for a name that is not known, with the nearest known one."""
    known = list(known)
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ValueError(f"{kind} {name!r} is not in tracking/names.py{hint}")
