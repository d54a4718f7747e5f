"""The markdown that MLflow shows above an experiment and a run."""

from __future__ import annotations

from pipeline.records import JobRecord
from tracking import names
from tracking.python import command_line, this_python

LONGEST_NOTE = 7500
"""Characters; MLflow takes 8000 in a run's description."""


def command(record: JobRecord) -> str:
    """The command line that runs this very job again, quoted for this system's shell."""
    return command_line([this_python(), "-m", "pipeline.sweep", *record.overrides])


def run_note(record: JobRecord, verdict: str | None) -> str:
    """A child run's description: its result in a sentence, what to beware of, how to repeat it."""
    parts = [f"**{headline(record, verdict)}**"]
    if record.notes:
        parts.append("\n".join(f"- {note}" for note in record.notes))
    if record.error is not None:
        tail = record.error.traceback[-3000:]
        parts.append(f"```\n{tail}\n```\nWhole in the artifact `error.txt`.")
    parts.append(f"Run it again: `{command(record)}`")
    return "\n\n".join(parts)[:LONGEST_NOTE]


def headline(record: JobRecord, verdict: str | None) -> str:
    """The result of a job in one sentence."""
    if record.error is not None:
        return f"{record.status}: {record.error.type}: {record.error.message[:500]}"
    if record.status == "killed":
        return "Stopped before it had finished."
    parts = [*_speed(record, verdict), *_counts(record)]
    return ("; ".join(parts) or "No figure.") + "."


def _speed(record: JobRecord, verdict: str | None) -> list[str]:
    m = record.metrics
    if "time/speedup_median" not in m:
        return ["not timed"]
    told = f"{m['time/speedup_median']:.2f}×"
    if "time/speedup_min" in m and "time/speedup_max" in m:
        told += f" ({m['time/speedup_min']:.2f}-{m['time/speedup_max']:.2f}"
        told += f" over {m['time/pairs']:.0f} pairs)" if "time/pairs" in m else ")"
    parts = [f"{told}, {verdict}" if verdict else told]
    if "cost/c" in m:
        parts.append(f"a draft token costs {m['cost/c']:.3g} target passes")
    return parts


def _counts(record: JobRecord) -> list[str]:
    m = record.metrics
    parts = []
    if "count/acceptance_rate" in m:
        parts.append(f"acceptance {m['count/acceptance_rate']:.3f}")
    if "count/target_passes" in m and "count/emitted" in m:
        parts.append(f"{m['count/target_passes']:.0f} passes for {m['count/emitted']:.0f} tokens")
    return parts


def experiment_note() -> str:
    """How to read the experiment's page, with the meaning of every metric and tag."""
    parts = [_INTRODUCTION, *(_section(name) for name in names.SECTIONS), _TAGS]
    return for_page("\n\n".join(parts))


def _section(section: str) -> str:
    side, meaning = names.SECTIONS[section]
    rows = [m for m in names.METRICS.values() if m.name.startswith(f"{section}/")]
    lines = [
        f"**`{section}/`** ({side}): {meaning}.",
        "",
        "| metric | unit | meaning |",
        "|---|---|---|",
    ]
    for metric in rows:
        by = f", by {metric.step}" if metric.step else ""
        lines.append(f"| `{metric.name}` | {metric.unit} | {metric.meaning}{by} |")
    return "\n".join(lines)


def for_page(markdown: str) -> str:
    """`markdown` as MLflow's page needs it.

    The page breaks every line where it ends, and sets the cells of a table, and what follows one,
    without a gap.
    """
    blocks = []
    for block in markdown.strip().split("\n\n"):
        lines = block.splitlines()
        if lines and lines[0].startswith("|"):
            blocks += ["\n".join(_spaced(line) for line in lines), "&nbsp;"]
        else:
            text = "\n".join(lines).replace("\n  ", " ")  # a list item that goes on
            blocks.append(text if "\n- " in f"\n{text}" or "```" in text else " ".join(lines))
    return "\n\n".join(blocks)


def _spaced(line: str) -> str:
    return line if set(line) <= set("|-: ") else line.replace(" |", "&nbsp;&nbsp; |")


_INTRODUCTION = """\
**Speculative decoding: exact counts, and timings of the machines that ran it.** How to read it:

A run with a **+** is a sweep: open it for the table, the figures and the conclusion. The runs under
it are its jobs, one for a draft, a `k` and a seed. A run called **compare** puts sweeps of several
machines side by side (`make compare`): its page is the artifact `compare.html`. `make ui` prints
the address of a table of a sweep's jobs with the columns that matter in front. MLflow's own
Assistant, open at the first visit, takes a quarter of the window: its × closes it for good.

- **Counts** (`count/`, `dist/`, `memory/`) are exact: the same job gives the same figures on every
  machine. `counts.digest` says in one value whether two runs emitted the same text in the same way.
- **Clocks** (`time/`, `cost/`, `null/`, `load/`) are this machine's, under the load it had: compare
  ranges (`time/speedup_min` to `time/speedup_max`), never single figures. `verdict` is `ambiguous`
  where the range overlaps 1 or what the baseline gives against itself (`null/`).
- To compare, tick runs and press *Compare*, or group the table by the parameter `draft`. Worth a
  column: `count/acceptance_rate`, `count/tokens_per_pass`, `cost/c`, `cost/predicted`,
  `time/speedup_median`, and the tags `verdict` and `load.state`."""

_TAGS = "**Tags**\n\n| tag | side | meaning |\n|---|---|---|\n" + "\n".join(
    f"| `{tag.name}` | {tag.side} | {tag.meaning} |" for tag in names.TAGS.values()
)
