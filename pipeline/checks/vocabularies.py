"""Proofs about a vocabulary: a bijection that only ever grows.

By induction: the log was one before, and a day adds ids that ascend and that it lacks. What the making looked up is proven
in reverse, from the index back to the id; that an id is lacking is proven by the two entries between which it would lie.
"""

import random
from collections.abc import Sequence

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.checks.blocks import run_starts
from pipeline.checks.findings import Findings
from pipeline.checks.reading import Subject, prove_manifest
from pipeline.store import ContentHash, manifest_schema
from pipeline.vocabularies import (
    FIRST_KNOWN,
    ID_COLUMNS,
    UNKNOWN,
    DamagedPieceError,
    DayVocabulary,
    MappedPiece,
    Segment,
    Segments,
    Vocabulary,
    keys_of,
    log_columns,
    log_directory,
    prove_index,
    segment_paths,
    vocabulary_recipe,
    with_index,
)

DRAWN_ROWS = 1_024  # of an old segment that are looked up again
UNIQUE_ROWS = 1 << 19  # at least, among which distinct ids are looked for at once
SHOWN = 5


def prove_vocabulary(
    subject: Subject, segment: Segment | None, findings: Findings, *, deep: bool = False
) -> dict[str, object]:
    """Proves a day of a vocabulary, with the segment that it is about to add.

    Args:
        subject: The day.
        segment: Written aside, not yet linked; None when no id is new.
        findings: Where to note.
        deep: Also the whole log and its index, at a cost that grows with the log.
    """
    vocabulary = subject.manifest.asset
    with findings.timed("the day's distinct ids"):
        ids = _distinct_ids(subject, ID_COLUMNS[vocabulary])
    findings.expect("rows = distinct ids of the day", expected=ids.len(), found=subject.manifest.rows)
    added = _read_segment(subject, segment, ids.dtype, findings)
    with findings.timed("looking up in reverse"):
        noted: Findings = with_index(
            subject.store,
            vocabulary,
            subject.dataset,
            lambda log: _prove_ids(subject, segment, log, ids, added),
        )
    findings.found += noted.found
    recipe = vocabulary_recipe(
        vocabulary=vocabulary, day=subject.manifest.day, dataset=subject.dataset, store=subject.store
    )
    prove_manifest(subject, log_columns(vocabulary, subject.dataset), recipe.inputs, findings)
    if segment is not None:
        findings.expect("new ids as recorded", expected=added.height, found=subject.manifest.counts["new_ids"])
    if deep:
        with findings.timed("the whole log"):
            _prove_log(subject, findings)
    return {"ids_covered": ids.len(), "log_covered": subject.manifest.size}


def _read_segment(subject: Subject, segment: Segment | None, dtype: pl.DataType, findings: Findings) -> pl.DataFrame:
    """What the day adds, as it lies on disk: id and index."""
    if segment is None:
        return pl.DataFrame(schema={"id": dtype, "index": pl.Int32})
    added = pl.read_parquet(segment.path, glob=False)
    start = _next_index(subject)
    expected = pl.int_range(start, start + added.height, dtype=pl.Int32, eager=True)
    differing = (expected.ne_missing(added["index"])).arg_true()[:SHOWN]
    findings.expect(
        "new indices go on where the log ends",
        expected=expected.gather(differing).to_list(),
        found=added["index"].gather(differing).to_list(),
    )
    ascending = (added["id"] > added["id"].shift(1)).fill_null(value=True).all() and not added["id"].null_count()
    findings.expect("new ids ascend", expected=True, found=bool(ascending))
    findings.expect(
        "the segment records the day", expected=[str(subject.manifest.day)], found=added["first_day"].unique().to_list()
    )
    return added.select("id", "index")


def _next_index(subject: Subject) -> int:
    """From the last entry of the last segment, without anything that is derived."""
    segments = Segments.of(subject.store, subject.manifest.asset, subject.dataset)
    if not segments.count:
        return FIRST_KNOWN
    last = pl.scan_parquet(segments.entries[-1].path, glob=False)
    return last.select(pl.last("index")).collect().item() + 1


def _prove_ids(
    subject: Subject, segment: Segment | None, log: Vocabulary, ids: pl.Series, added: pl.DataFrame
) -> Findings:
    """Every id of the day has the index that was recorded, and what is new was lacking.

    Raises:
        DamagedPieceError: The index of the log is damaged, and has to be left out.
    """
    findings = Findings()
    manifest = subject.manifest
    assert manifest.size is not None
    if segment is not None and log.segments != segment.number:
        findings.expect("no other run has added to the log meanwhile", expected=segment.number, found=log.segments)
        return findings
    pairs = _claimed(subject, log, ids, added)
    is_new = pl.col("index") >= FIRST_KNOWN + log.length
    old = pairs.filter((pl.col("index") >= FIRST_KNOWN) & ~is_new)
    wrong = old.filter(old["id"].ne_missing(log.ids_of(old["index"])))["id"]
    drawn = _wrong_in_drawn(subject, log)
    if (wrong.len() or drawn) and any(isinstance(piece, MappedPiece) for piece in log.pieces):
        raise DamagedPieceError("ids and indices do not fit")  # the log itself has to say so
    findings.expect("every index looked up in reverse gives its id", expected=[], found=wrong.head(SHOWN).to_list())
    new = pairs.filter(is_new)
    needless = pl.Series() if new.equals(added) else added.join(new, on=["id", "index"], how="anti")["id"]
    findings.expect("only ids of the day are added", expected=[], found=needless.head(SHOWN).to_list())
    findings.expect("new ids of the day = rows of the segment", expected=new.height, found=added.height)
    held = known_ids(log, added["id"].unique())
    findings.expect("ids that are added were not in the log", expected=[], found=held.head(SHOWN).to_list())
    unknown = pairs.filter(pl.col("index") < FIRST_KNOWN)["id"]
    held = known_ids(log, unknown)
    held = held.filter(log.index_of(held, size=manifest.size) != UNKNOWN)  # later ones may have come since
    findings.expect("unknown ids were not in the log", expected=[], found=held.head(SHOWN).to_list())
    if segment is not None:
        findings.expect("size = length of the log", expected=log.length + added.height, found=manifest.size)
    else:
        findings.expect("size is within the log", expected=manifest.size, found=min(manifest.size, log.length))
    outside = pairs.filter((pl.col("index") < UNKNOWN) | (pl.col("index") >= FIRST_KNOWN + manifest.size))["id"]
    findings.expect("indices are within the size", expected=[], found=outside.head(SHOWN).to_list())
    if subject.dataset.vocabulary.mode == "append":
        findings.expect("every id of the day has an index", expected=[], found=unknown.head(SHOWN).to_list())
    else:
        findings.expect("a frozen vocabulary does not grow", expected=0, found=added.height)
        findings.note("unknown ids", unknown.len())
    content = ContentHash()
    content.update(pairs)
    findings.expect(
        "content version is that of the ids and indices", expected=manifest.version(), found=content.hexdigest()
    )
    findings.expect_none("an old segment is found again, forwards and in reverse", drawn)
    return findings


def _claimed(subject: Subject, log: Vocabulary, ids: pl.Series, added: pl.DataFrame) -> pl.DataFrame:
    """The day's ids, each with the index that it is said to have: by the making, in the same run, or else by the log.

    Nothing rests on it: every index is then looked up in reverse, and every id without one is proven to be lacking.
    """
    made = DayVocabulary.remembered(subject.store, subject.manifest)
    if made is not None and made.ids.equals(ids):
        return pl.DataFrame({"id": ids, "index": made.indices})
    assert subject.manifest.size is not None
    found = pl.DataFrame({"id": ids, "found": log.index_of(ids, size=subject.manifest.size)})
    joined = found.join(added, on="id", how="left", maintain_order="left")
    return joined.select("id", pl.coalesce("index", "found").alias("index"))


def known_ids(log: Vocabulary, ids: pl.Series) -> pl.Series:
    """Those of some ids that a log may hold.

    In a file of the index, whose keys ascend and have been compared with their checksums, an id is lacking when it lies
    strictly between two neighbours, wherever they were found. Entries that no file of the index holds are gone through.

    Args:
        log: The log.
        ids: Series [N], distinct, without nulls.
    """
    ids = ids.gather(np.argsort(keys_of(ids)))
    keys = keys_of(ids)
    held = np.zeros(len(keys), dtype=bool)
    for piece in log.pieces:
        if not isinstance(piece, MappedPiece):
            assert piece.ids is not None
            held |= ids.is_in(piece.ids.implode()).to_numpy()
            continue
        unsure = np.flatnonzero(~_between_neighbours(piece, keys))
        if ids.dtype == pl.String:  # another text may have the same hash
            unsure = unsure[piece.find(ids.gather(unsure), keys[unsure]) >= FIRST_KNOWN]
        held[unsure] = True
    return ids.filter(pl.Series(held))


def _between_neighbours(piece: MappedPiece, keys: np.ndarray) -> np.ndarray:
    """Which of some ascending keys lie strictly between two that follow each other in a file, or before or after all."""
    between = np.zeros(len(keys), dtype=bool)
    for block, held, part in piece.blocks_of(keys, side="left"):
        wanted = keys[part]
        place = np.searchsorted(held, wanted)
        above_lower = np.where(place == 0, block == 0, held[np.maximum(place - 1, 0)] < wanted)
        below_next = wanted < piece.fences[block + 1] if block + 1 < len(piece.fences) else True
        below_higher = np.where(place == len(held), below_next, held[np.minimum(place, len(held) - 1)] > wanted)
        between[part] = above_lower & below_higher
    return between


def _wrong_in_drawn(subject: Subject, log: Vocabulary) -> list[dict[str, object]]:
    """Some entries of a segment that the day draws, compared with what the log finds for them."""
    if not log.segments:
        return []
    draw = random.Random(f"{subject.manifest.asset} {subject.manifest.day}")
    number = draw.randrange(log.segments)
    rows = pl.scan_parquet(log_directory(subject.store, subject.manifest.asset) / f"{number:08d}.parquet", glob=False)
    start = draw.randrange(max(rows.select(pl.len()).collect().item() - DRAWN_ROWS, 0) + 1)
    entries = rows.select("id", "index").slice(start, DRAWN_ROWS).collect()
    found = log.index_of(entries["id"], size=log.length)
    wrong = entries.filter((found != entries["index"]) | log.ids_of(entries["index"]).ne_missing(entries["id"]))
    return [{"column": "index", "expected": index, "found": f"another for {one!r}"} for one, index in wrong.iter_rows()]


def _distinct_ids(subject: Subject, column: str) -> pl.Series:
    """Of the day's events, ascending, whatever order they lie in; a row with the user of the row before tells nothing new.

    Apart from `vocabularies.day.distinct_ids` on purpose: that is what is proven.
    """
    events = subject.input("events")
    found = pl.Series("id", [], dtype=manifest_schema(events)[column])
    waiting, rows = list[pl.Series](), 0
    for block in subject.blocks([column], of=events):
        ids = block[column]
        waiting.append(ids.gather(run_starts(ids)) if column == "user_id" else ids)
        rows += waiting[-1].len()
        if rows >= max(UNIQUE_ROWS, 2 * found.len()):  # since what was found goes through the table again
            found = _unique([found, *waiting])
            waiting, rows = [], 0
    return _unique([found, *waiting]).drop_nulls().sort()


def _unique(parts: Sequence[pl.Series]) -> pl.Series:
    arrays = [part.to_arrow(compat_level=pl.CompatLevel.oldest()) for part in parts]
    return pl.Series("id", pc.unique(pa.chunked_array(arrays)))  # pyright: ignore[reportAttributeAccessIssue]


def _prove_log(subject: Subject, findings: Findings) -> None:
    """The whole log, from its segments alone, and its index against them."""
    vocabulary, store = subject.manifest.asset, subject.store
    paths = segment_paths(store, vocabulary)
    if paths:
        rows = pl.scan_parquet(paths, glob=False)
        count, ids, nulls, first, steps = rows.select(
            pl.len(),
            pl.col("id").n_unique(),
            pl.col("id").null_count().alias("nulls"),
            pl.first("index"),
            (pl.col("index").diff() == 1).sum().alias("steps"),
        ).collect().row(0)  # fmt: skip
        findings.expect("every id has one index (bijection)", expected=count, found=ids)
        findings.expect("no id is null", expected=0, found=nulls)
        findings.expect("indices are 2, 3, ... without gap", expected=[FIRST_KNOWN, count - 1], found=[first, steps])
        sizes = [found.size or 0 for day in store.days(vocabulary) if (found := store.manifest(vocabulary, day))]
        findings.expect("no published day saw a longer log", expected=True, found=max(sizes, default=0) <= count)
    damaged = prove_index(store, vocabulary, subject.dataset)
    findings.expect("the index holds what its segments hold", expected=[], found=damaged, blocking=False)
