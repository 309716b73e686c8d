"""Features that come, go or change while a store is in use: state is carried on only by the feature that made it."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from pipeline import stages
from pipeline.checks import prove_again, publish
from pipeline.contracts import PipelineError
from pipeline.features import load_features
from pipeline.stages import STAGES, Work, run_day
from pipeline.store import scan
from pipeline_tests.test_publish import LAST, START, make_work

BOTH = ("core", "history_position")


@pytest.fixture
def two_days(tmp_path: Path) -> Work:
    """The first two of three days, made with both features."""
    work = replace(make_work(tmp_path), force=False)
    for asset in STAGES:
        for number in range(2):
            run_day(asset, START + timedelta(days=number), work)
    for asset in STAGES[:-2]:
        run_day(asset, LAST, work)
    return work


def with_features(work: Work, *names: str) -> Work:
    return replace(work, features=load_features(names, {}))


def test_a_raised_version_does_not_build_on_older_state(two_days: Work) -> None:
    features = [replace(feature, version=feature.version + 1) for feature in two_days.features]
    with pytest.raises(PipelineError) as refusal:
        run_day("user_state", LAST, replace(two_days, features=features))
    assert str(refusal.value) == (
        "user_state of 2024-03-02 cannot be carried on by feature 'core' (version 2, parameters {}), since it was made with "
        "version 1 and parameters {}; run: dagster asset materialize -m pipeline.definitions --select 'user_state' "
        "--partition-range 2024-03-01...2024-03-03"
    )


def test_a_changed_parameter_does_not_build_on_older_state(two_days: Work) -> None:
    settings = two_days.dataset.features.model_copy()
    object.__setattr__(settings, "__pydantic_extra__", {"history_position": {"step": 10}})
    dataset = two_days.dataset.model_copy(update={"features": settings})
    with pytest.raises(PipelineError, match=r"'history_position' \(version 1, parameters {'step': 10}\)"):
        run_day("user_state", LAST, replace(two_days, dataset=dataset))


def test_a_new_feature_with_state_starts_from_the_first_day(tmp_path: Path) -> None:
    work = with_features(make_work(tmp_path), "core")
    for asset in STAGES[:-1]:
        run_day(asset, START, work)
    second = START + timedelta(days=1)
    run_day("events", second, work)
    with pytest.raises(
        PipelineError,
        match=r"feature 'history_position' .* since it was made without it; run: .*2024-03-01...2024-03-02",
    ):
        run_day("user_state", second, with_features(work, *BOTH))


def test_a_feature_that_goes_leaves_right_days(two_days: Work) -> None:
    fewer = with_features(two_days, "core")
    for asset in STAGES[-2:]:
        run_day(asset, LAST, fewer)
    proof = prove_again("user_state", LAST, dataset=fewer.dataset, features=fewer.features, store=fewer.store)
    assert proof.passed
    with pytest.raises(PipelineError, match=r"features of 2024-03-01, 2024-03-02 has other columns"):
        scan(two_days.store.root, "features", START, LAST)


def test_a_run_that_loses_the_race_for_the_log_makes_the_day_again(two_days: Work) -> None:
    vocabulary = "user_vocabulary"
    work = replace(two_days, force=True)
    (work.dataset.directory / "raw" / f"{LAST}.csv").write_text("u,i,t,a\n777,item1,1709424000,view\n")
    run_day("events", LAST, work)
    staged, _, segment = stages._make(vocabulary, LAST, work)
    assert segment is not None
    outcome = run_day(vocabulary, LAST, work)  # another run, which is faster
    lost = publish(staged, segment=segment, dataset=work.dataset, features=work.features, store=work.store)
    assert lost is None
    assert not segment.path.exists()
    again = run_day(vocabulary, LAST, work)
    assert again.manifest.content_version == outcome.manifest.content_version
    assert again.manifest.size == outcome.manifest.size
