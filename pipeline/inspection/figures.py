"""What a pass over the rows found, written into the draft: days, actions, and the share that may be refused."""

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from math import ceil

from pipeline.inspection.counts import MOST_KEYS, Counts
from pipeline.inspection.no_layout import HEADING, of_headings
from pipeline.inspection.places import Place, share_of_days
from pipeline.inspection.propose import Proposal
from pipeline.inspection.words import listed

DEFAULT_SHARE = 0.01
FAR_DAYS = 30  # a gap before or behind a few rows, which then are no days of the log
MANY_GAPS = 0.2  # of the days; where fewer have no file, the files are rather lost than never written
MOST_ACTIONS = 255  # as many as a dataset file may name


def set_days(proposal: Proposal, start: date, end: date | None) -> None:
    """Writes `[partitions]`."""
    proposal.draft.tables["partitions"] = {"start": start, **({"end": end} if end else {})}


def say_sample_days(proposal: Proposal, place: Place) -> None:
    """Writes the days that the sample and the names of the files tell."""
    if not _say_known_days(proposal, place):
        proposal.draft.doubt("partitions: no time could be read, so that start is not known")
        return
    if place.days:
        _say_gaps(proposal, place, min(place.days), max(place.days), ())
    proposal.draft.doubt(
        "partitions: only a sample was read; leave --quick out to count the days, the actions and the refused rows"
    )


def _say_known_days(proposal: Proposal, place: Place) -> bool:
    """Writes the first and the last day that are known without counting; False where none is."""
    days = list(place.days)
    if not days and proposal.first_us is not None and proposal.last_us is not None:
        days = [datetime.fromtimestamp(us // 1_000_000, UTC).date() for us in (proposal.first_us, proposal.last_us)]
    if not days:
        set_days(proposal, date(1990, 1, 1), None)
        return False
    set_days(proposal, min(days), max(days))
    where = "the names of the files" if place.days else "the sample"
    proposal.draft.reasons["partitions", "start"] = f"the first day in {where}"
    proposal.draft.reasons["partitions", "end"] = f"the last day in {where}"
    return True


def say_counts(proposal: Proposal, counts: Counts, place: Place) -> None:
    """Writes what a pass over all rows found."""
    draft = proposal.draft
    for problem in counts.problems:
        draft.doubt(f"a run would stop: {problem}")
    first, last, outside = _days_of_log(counts)
    if first is None or last is None:
        known = _say_known_days(proposal, place)
        if counts.rows:
            draft.doubt("partitions: no row has a usable time, so that start is not known")
        elif known:
            draft.doubt("partitions: start and end are of a sample, since the rows could not be counted")
    else:
        set_days(proposal, first, last)
        with_rows = sum(first <= day <= last for day in counts.days)
        every = (last - first).days + 1
        draft.reasons["partitions", "start"] = (
            f"{with_rows} of {every:,} days have rows" if with_rows < every else "every day from here to end has rows"
        )
        if outside:
            draft.doubt(
                f"partitions: {outside:,} rows lie far before or behind, the first on {min(counts.days)} and the last on "
                f"{max(counts.days)}; they are counted as outside_partitions"
            )
        edges = [
            day for day in counts.days if (day < first or day > last) and counts.days[day][0] == counts.days[day][1]
        ]
        if edges:
            draft.doubt(
                f"partitions: all rows of {listed([str(day) for day in edges])}, beyond start and end, are refused"
            )
        if place.days:
            _say_dated(proposal, counts)
            _say_gaps(proposal, place, first, last, counts.days)
    _say_actions(proposal, counts)
    within = [day for day in counts.days if first is not None and last is not None and first <= day <= last]
    _say_quality(proposal, counts, within)
    _say_population(proposal, counts)


def _days_of_log(counts: Counts) -> tuple[date | None, date | None, int]:
    """First and last day, and how many rows lie beyond a long gap before the first or behind the last."""
    days = sorted(day for day, (rows, refused) in counts.days.items() if rows > refused) or sorted(counts.days)
    if not days:
        return None, None, 0
    total, few = sum(rows for rows, _ in counts.days.values()), 0.001
    outside = 0
    for side in (0, -1):
        beyond = 0
        while len(days) > 1:
            ordered = days if side == 0 else days[::-1]
            run, at = 0, 0
            # Up to the next long gap, as long as hardly any rows lie before it.
            while at + 1 < len(ordered) and abs((ordered[at + 1] - ordered[at]).days) <= FAR_DAYS:
                run += counts.days[ordered[at]][0]
                at += 1
            run += counts.days[ordered[at]][0]
            if at + 1 == len(ordered) or beyond + run > few * total:
                break
            beyond += run
            days = days[at + 1 :] if side == 0 else days[: len(days) - at - 1]
        outside += beyond
    return days[0], days[-1], outside


def _say_dated(proposal: Proposal, counts: Counts) -> None:
    draft = proposal.draft
    before, after, _ = share_of_days(counts.distances)
    if before or after:
        rows = counts.distances[1] + counts.distances[-1]
        draft.say(
            "source",
            "neighbours",
            [before, after],
            f"{rows:,} rows belong to the day after or before that of their file",
        )


def _say_gaps(proposal: Proposal, place: Place, first: date, last: date, with_rows: Iterable[date]) -> None:
    """Says what is to become of the days that have no file.

    Args:
        proposal: Gets the keys.
        place: The days that have files.
        first: The first day of the log.
        last: The last one.
        with_rows: Days that have rows, also in the file of a day next to them.
    """
    days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    gaps = sorted(set(days) - set(place.days))
    if not gaps:
        return
    draft, names = proposal.draft, listed([day.isoformat() for day in gaps])
    has = "has" if len(gaps) == 1 else "have"
    if len(gaps) < MANY_GAPS * len(days) and not set(gaps) & set(with_rows):
        draft.say("partitions", "skip", gaps, f"days without a file: {len(gaps)} of {len(days):,}")
        draft.doubt(
            f"partitions: {names} {has} no file and will be skipped; is a file missing? Bring it and take its day out "
            'of skip. If nothing happened, [source] missing_day = "empty" says so'
        )
        return
    draft.say("source", "missing_day", "empty", f"{len(gaps)} days have no file")
    draft.doubt(
        f"source: {names} {has} no file ({len(gaps)} of {len(days):,} days) and will be empty, but for rows in files "
        "next to them; are files missing? Bring them, or leave missing_day out and name such days in [partitions] skip"
    )


def _say_actions(proposal: Proposal, counts: Counts) -> None:
    draft, found = proposal.draft, counts.actions + counts.unknown
    names = draft.get("actions", "names")
    # Of equally frequent ones the order of the draft, so that twice gives the same file.
    order: dict[str, int] = {name: at for at, name in enumerate(names or ())}
    counted = dict(sorted(found.items(), key=lambda entry: (-entry[1], order.get(entry[0], len(order)), entry[0])))
    shown = ", ".join(f"{name} {rows:,}" for name, rows in list(counted.items())[:12])
    if len(counted) > 12:
        shown += f" and {len(counted) - 12} others"
    if proposal.preset and names is None:
        draft.remark("columns", f"rows of each action: {shown}")
        return
    if not proposal.preset:
        # What never occurs in an accepted row stays out, unless nothing else is there.
        names = [
            *(name for name in counted if name in counts.actions),
            *(name for name in names if name not in counts.actions),
        ]
    if len(names) > MOST_ACTIONS:
        draft.doubt(
            f"actions: of {len(names):,} only the {MOST_ACTIONS} most frequent are declared, others are refused"
        )
    draft.say("actions", "names", names[:MOST_ACTIONS], f"rows: {shown}" if shown else "")
    rare = [name for name, rows in counted.items() if rows * 10_000 < counts.rows]
    if rare:
        draft.doubt(
            f"actions: {listed(rare)} {'occurs' if len(rare) == 1 else 'occur each'} in less than one row of 10,000; "
            "an action, or a slip?"
        )


def _say_quality(proposal: Proposal, counts: Counts, days: Sequence[date]) -> None:
    draft = proposal.draft
    day, share = counts.worst_day(days)
    if counts.without_elements:
        have = "record has" if counts.without_elements == 1 else "records have"
        draft.doubt(f"source.explode: {counts.without_elements:,} {have} an empty list, and no event comes of it")
    if counts.rows and not counts.accepted:
        draft.doubt("no row is accepted: the columns or their types are not what they were taken for")
        return
    refused = ", ".join(f"{reason} {rows:,}" for reason, rows in counts.reasons.most_common())
    if share > DEFAULT_SHARE and day is not None:
        allowed = min(1.0, ceil(share * 1.02 * 20) / 20)
        draft.say(
            "quality", "max_rejected_share", allowed, f"on {day} {share:.1%} of the rows are refused; in all: {refused}"
        )
        lost = (counts.rows - counts.accepted) / counts.rows
        draft.doubt(
            f"quality: {lost:.1%} of all rows are refused, because of {refused}; max_rejected_share = {allowed} lets "
            "that pass: is the right column taken, and read the right way?"
        )
    elif refused:
        draft.remark("quality", f"refused, within the default of 1 % a day: {refused}")
    if counts.reasons["outside_day"]:
        rows = counts.reasons["outside_day"]
        draft.doubt(f"path: {rows:,} rows lie two days or more from the day in the name of their file, and are refused")
    headings = [line.strip() for line in counts.refused_lines if HEADING.fullmatch(line.strip())]
    if headings and len(headings) > 0.9 * len(counts.refused_lines):
        draft.doubt(f"malformed_line: {of_headings(headings[0])}")
    elif "malformed_line" in counts.examples:
        draft.doubt(f"malformed_line: lines that cannot be cut, such as {counts.examples['malformed_line']!r}")
    if counts.headers:
        draft.doubt(f"{counts.headers} rows repeat the header, and are refused: the file was put together from several")


def _say_population(proposal: Proposal, counts: Counts) -> None:
    draft = proposal.draft
    if counts.users is None and counts.accepted:
        draft.remark("", f"users, items, ties and duplicates are not counted in more than {MOST_KEYS:,} rows")
    if counts.ties:
        draft.remark(
            "", f"{counts.ties:,} rows equal another of their user in time; these keep their order in the file"
        )
    if counts.duplicates:
        draft.remark(
            "", f'{counts.duplicates:,} rows repeat another in all columns; [quality] duplicates = "drop" drops them'
        )
    if counts.floored:
        draft.remark("", f"{counts.floored:,} times are finer than a microsecond, and are floored")
