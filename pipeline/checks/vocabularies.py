"""Proofs about a vocabulary: a bijection that only ever grows."""

import polars as pl

from pipeline.checks.findings import Findings
from pipeline.checks.reading import Subject, prove_manifest
from pipeline.store import ContentHash
from pipeline.vocabularies import (
    FIRST_KNOWN,
    ID_COLUMNS,
    UNKNOWN,
    Segment,
    log_columns,
    read_vocabulary,
    vocabulary_recipe,
)


def prove_vocabulary(subject: Subject, segment: Segment | None, findings: Findings) -> dict[str, object]:
    """Proves a day of a vocabulary, with the segment that it is about to add.

    Args:
        subject: The day.
        segment: Written aside, not yet linked; None when no id is new.
        findings: Where to note.
    """
    vocabulary = subject.manifest.asset
    size = subject.manifest.size or 0
    log = read_vocabulary(subject.store, vocabulary, subject.dataset).ids
    added = pl.Series("id", [], dtype=log.dtype)
    if segment is not None:
        frame = pl.read_parquet(segment.path, glob=False)
        added = frame["id"]
        indices = frame["index"].to_list()
        start = FIRST_KNOWN + log.len()
        findings.expect(
            "new indices go on where the log ends", expected=list(range(start, start + len(indices))), found=indices
        )
        findings.expect(
            "new ids ascend", expected=True, found=bool((added.shift(-1) > added).fill_null(value=True).all())
        )
        findings.expect(
            "the segment records the day",
            expected=[str(subject.manifest.day)],
            found=frame["first_day"].unique().to_list(),
        )
    whole = pl.concat([log, added])
    findings.expect("every id has one index (bijection)", expected=whole.len(), found=whole.n_unique())
    findings.expect("no id is null", expected=0, found=whole.null_count())
    column = ID_COLUMNS[vocabulary]
    ids = subject.events().select(pl.col(column).drop_nulls().alias("id")).collect().to_series().unique().sort()
    findings.expect("rows = distinct ids of the day", expected=ids.len(), found=subject.manifest.rows)
    up_to = whole[:size]
    findings.expect(
        "size = length of the log" if segment else "size is within the log", expected=size, found=up_to.len()
    )
    absent = ids.filter(~ids.is_in(up_to.implode()))
    if subject.dataset.vocabulary.mode == "append":
        findings.expect("every id of the day has an index", expected=[], found=absent.head(5).to_list())
        needless = added.filter(~added.is_in(ids.implode()))
        findings.expect("only ids of the day are added", expected=[], found=needless.head(5).to_list())
    else:
        findings.expect("a frozen vocabulary does not grow", expected=0, found=added.len())
        findings.note("unknown ids", absent.len())
    recipe = vocabulary_recipe(
        vocabulary=vocabulary, day=subject.manifest.day, dataset=subject.dataset, store=subject.store
    )
    prove_manifest(subject, log_columns(vocabulary, subject.dataset), recipe.inputs, findings)
    recorded = subject.manifest.counts["new_ids"]
    if segment is not None:
        findings.expect("new ids as recorded", expected=added.len(), found=recorded)
    content = ContentHash()
    content.update(_pairs(ids, up_to))
    findings.expect(
        "content version is that of the ids and indices", expected=subject.manifest.version(), found=content.hexdigest()
    )
    return {"ids_covered": ids.len(), "log_covered": whole.len()}


def _pairs(ids: pl.Series, log: pl.Series) -> pl.DataFrame:
    """(id, index) of the day's ids, by a join."""
    numbered = log.alias("id").to_frame().with_row_index("index", offset=FIRST_KNOWN)
    joined = ids.to_frame().join(numbered, on="id", how="left").sort("id")
    return joined.select("id", pl.col("index").fill_null(UNKNOWN).cast(pl.Int32))
