"""What all tests share: how hard hypothesis tries, and what a machine may lack."""

import os
import warnings
from pathlib import Path

import pytest
from hypothesis import Phase, settings

REPOSITORY = Path(__file__).parents[1]

settings.register_profile("default", max_examples=50, deadline=None)
settings.register_profile("ci", max_examples=200, deadline=None, print_blob=True)
settings.register_profile("no_shrinking", settings.get_profile("default"), phases=[Phase.explicit, Phase.generate])
settings.load_profile("ci" if os.environ.get("CI") == "true" else "default")


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("cuda") is not None and not _torch_sees_cuda():
        pytest.skip("torch sees no CUDA device on this machine")


def _torch_sees_cuda() -> bool:
    import torch

    with warnings.catch_warnings():  # a driver that is too old is announced by a warning
        warnings.simplefilter("ignore")
        return torch.cuda.is_available()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with the real logs, which are no part of the repository."""
    folder = REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the real logs are not here: there is no folder ../shared/data beside the repository")
    return folder
