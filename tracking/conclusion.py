"""What a sweep found, in a sentence that is computed from its rows. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from tracking.rows import Row


def conclusion(rows: Sequence[Row]) -> str:
    """Which draft is fastest here, which saves the most passes, and why they differ if they do."""
    finished = [row for row in rows if row.tokens_per_pass is not None]
    if not finished:
        return "No job finished, so there is nothing to compare." + _missing(rows)
    drafting = [row for row in finished if row.k > 0] or finished
    timed = [row for row in drafting if row.measured is not None]
    saver = max(drafting, key=lambda row: (row.tokens_per_pass or 0.0, row.measured or 0.0))
    if not timed:
        told = f"{saver.name} {_saves(saver)}; nothing was timed, so which is fastest is open"
    else:
        best = max(timed, key=lambda row: (row.verdict == "faster", row.measured or 0.0))
        told = _fastest(best, timed, _because(best) if best is saver else "")
        if best is not saver:
            told += f"; {saver.name} {_saves(saver)}, and {_speed(saver)}"
        elif len(drafting) > 1:
            told += f"; it also {_saves(saver)}"
    return f"{told}.{_missing(rows)}"


def _fastest(best: Row, timed: Sequence[Row], why: str) -> str:
    """`why` stands next to the speed, which is what it explains."""
    if len(timed) == 1:
        return f"{best.name} is {_against_plain(best)} here, at {ratio(best)}{why}"
    if best.verdict == "faster":
        rivals = _rivals(best, timed)
        link = ("; it is " if why else ", ") if rivals else ""
        return f"{best.name} is fastest here at {ratio(best)}{why}{link}{rivals}"
    if best.verdict == "slower":
        told = "Every draft is slower than plain decoding here"
    else:
        told = "No draft is clearly faster than plain decoding here"
    return f"{told}: the best, {best.name}, runs at {ratio(best)}{why}"


def _against_plain(row: Row) -> str:
    if row.verdict == "ambiguous" or row.verdict is None:
        return "not told apart from plain decoding"
    return f"{row.verdict} than plain decoding"


def _rivals(best: Row, timed: Sequence[Row]) -> str:
    """Those whose range overlaps the best one's: nobody can say that they are slower than it."""
    floor = best.low or 0.0
    names = [row.name for row in timed if row is not best and (row.high or 0.0) >= floor]
    if not names:
        return ""
    told = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
    return f"not told apart from {told}"


def _saves(row: Row) -> str:
    return f"saves the most passes, {row.passes or 0:.0f} instead of {row.tokens or 0:.0f}"


def _speed(row: Row) -> str:
    if row.measured is None:
        return "was not timed"
    return f"runs at {ratio(row)}{_because(row)}"


def _because(row: Row) -> str:
    """Why a draft is as fast as it is, as far as the measured costs tell."""
    if not row.k or row.c is None or row.predicted_simple is None or row.verdict is None:
        return ""
    cost = f"a draft token costs {row.c:{'.2g' if row.c < 0.1 else '.2f'}} target passes"
    if row.verdict != "faster" and row.predicted_simple >= 1:
        cost = cost if row.verdict == "slower" else cost.replace("costs", "costs only", 1)
        return (
            f", although {cost}, which alone would allow {row.predicted_simple:.2f}×: "
            "verification and the loop take the rest"
        )
    if row.verdict == "faster" and row.predicted_simple <= 1:
        return f", although {cost}, which would allow only {row.predicted_simple:.2f}×"
    return f" because {cost}" if row.verdict == "slower" else f", as {cost}"


def _missing(rows: Sequence[Row]) -> str:
    failed, jobs = sum(row.failed for row in rows), sum(row.jobs for row in rows)
    return f" {failed} of {jobs} jobs did not finish." if failed else ""


def ratio(row: Row) -> str:
    """The measured median and range: "1.30× (1.19-1.47)"."""
    if row.measured is None:
        return "not timed"
    told = f"{row.measured:.2f}×"
    if row.low is not None and row.high is not None:
        told += f" ({row.low:.2f}-{row.high:.2f})"
    return told
