"""Plain decoding and every draft's, one below the other: with verify=match the texts are the same.

    python -m pipeline.same_text
    python -m pipeline.same_text sampling=greedy verify=token,block,match draft=int4

Settings are those of a sweep. Under `match` the random number of a position decides its character,
whoever drafted it; under greedy decoding every rule must write the target's own text. The exit code
is 1 where a text differs that should not.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from pipeline import config
from pipeline.asked import settings
from pipeline.progress import Show
from pipeline.spec import JobSpec

DEFAULTS = {
    "draft": "glob(*)",
    "k": "4",
    "seed": "0",
    "tokens": "60",
    "verify": "match",
    "timing": "skip",
}
BAD_INPUT = 2


def main(arguments: Sequence[str] | None = None, show: Show | None = None) -> int:
    """0, 1 where a text departs from plain decoding's, 2 for settings that cannot be."""
    from pipeline.ties import two_texts  # brings torch

    show = show or Show()
    try:
        jobs = [config.to_spec(one.config) for one in settings(arguments, DEFAULTS, __doc__)]
    except ValueError as error:
        print(f"specsweep: {error}", file=sys.stderr)
        return BAD_INPUT
    shown: set[str] = set()
    written: list[JobSpec] = []
    wrong = 0
    for job in jobs:
        try:
            found = two_texts(job)
        except ValueError as error:  # the other drafts are still worth seeing
            print(f"specsweep: {_title(job)}: {error}", file=sys.stderr)
            continue
        written.append(job)
        if found.plain not in shown:
            shown.add(found.plain)
            show.say(_line("plain decoding", found.plain_passes, found.plain))
        same = found.plain == found.speculative
        wrong += not same and must_agree(job)
        tail = "" if same else "  (another text)"
        show.say(_line(_title(job), found.passes, found.speculative, tail))
    if written:
        show.say(_sentence(written, wrong))
    return int(wrong > 0) if len(written) == len(jobs) else BAD_INPUT


def must_agree(job: JobSpec) -> bool:
    """Whether the job's text is plain decoding's by construction, not only in distribution."""
    return job.verify == "match" or job.temperature == 0 or job.k == 0


def _title(job: JobSpec) -> str:
    return f"{job.draft} k={job.length} {job.verify}"


def _line(title: str, passes: int, text: str, tail: str = "") -> str:
    return f"{title:<20} {passes:>4} passes  {text.encode('unicode_escape').decode()}{tail}"


def _sentence(jobs: Sequence[JobSpec], wrong: int) -> str:
    due = sum(must_agree(job) for job in jobs)
    if wrong:
        return f"{wrong} of {due} texts are NOT plain decoding's"
    if due == 1:
        return "1 text, character by character plain decoding's; only the number of passes differs"
    if not due:
        return "these rules keep the distribution, not the text: try verify=match"
    return (
        f"{due} texts, character by character plain decoding's; only the number of passes differs"
    )


if __name__ == "__main__":
    sys.exit(main())
