"""Every mutant of `make mutants` still applies: its text stands exactly once in the file that it breaks."""

import pytest

from pipeline_tests.mutants import MUTANTS, REPOSITORY, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_applies(mutant: Mutant) -> None:
    text = (REPOSITORY / "pipeline" / mutant.file).read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1
    assert mutant.new != mutant.old
    for test in mutant.tests:
        assert (REPOSITORY / "pipeline_tests" / test).exists()
