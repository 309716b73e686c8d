"""The device that features are computed on."""

import re
from datetime import date
from typing import TYPE_CHECKING

from pipeline.contracts import PipelineError

if TYPE_CHECKING:
    import torch


def resolve_device(setting: str) -> "torch.device":
    """The device that `[compute] device` means on this machine.

    Args:
        setting: auto, cpu, cuda, cuda:N or mps.

    Raises:
        PipelineError: This machine lacks it.
    """
    import torch

    if setting == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("cpu")
    device = torch.device(setting)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise PipelineError(
            f'[compute] device = "{setting}": this machine has {torch.cuda.device_count()} CUDA devices that torch can use; '
            'write "auto" or "cpu", or install a torch build with CUDA'
        )
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise PipelineError(f'[compute] device = "{setting}": torch finds no Metal device here; write "auto" or "cpu"')
    return device


def device_of_day(device: "torch.device", day: date) -> "torch.device":
    """The device of one day: runs of neighbouring days use one GPU each where `cuda` names none of several.

    Args:
        device: As `resolve_device` gives it.
        day: UTC day.
    """
    import torch

    if device.type != "cuda" or device.index is not None:
        return device
    return torch.device("cuda", day.toordinal() % max(1, torch.cuda.device_count()))


def out_of_memory(error: BaseException) -> bool:
    """Whether an error says that a device has no memory left; not all of torch's are of its own class."""
    import torch

    return isinstance(error, torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and re.search("out of memory|can't allocate memory", str(error)) is not None
    )
