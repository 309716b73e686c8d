"""The way of a chunk to its device and of the results back."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from pipeline.contracts import PipelineError

if TYPE_CHECKING:
    import numpy as np
    import torch

    Arrays = dict[str, np.ndarray]
    """Column -> values [E], in memory of their own."""

SLOTS = 2  # sets of buffers: one chunk is copied while the one before it is computed


class Transfer(Protocol):
    """Takes the tensors of a chunk to a device, and results back.

    Attributes:
        device: Where it goes.
        behind: How many chunks may be under way on the device while the caller goes on to the next one.
        bytes_to: Bytes copied to the device so far.
        bytes_from: Bytes copied back so far.
    """

    device: "torch.device"
    behind: int
    bytes_to: int
    bytes_from: int

    def start(self) -> None:
        """Begins the next chunk; the results of the one `behind` + 1 before it have to be taken by then."""
        ...

    def put(self, name: str, tensor: "torch.Tensor", /) -> "torch.Tensor":
        """A tensor of this chunk on the device; it may be the same memory and is only for reading."""
        ...

    def fetch(self, results: Mapping[str, "torch.Tensor"]) -> "Callable[[], Arrays]":
        """Starts to bring the results of this chunk back; the function returned waits for them."""
        ...


def transfer_to(device: "torch.device", *, staged: bool = False) -> Transfer:
    """The transfer for a device.

    Args:
        device: cpu, cuda or mps.
        staged: Goes through the buffers on the cpu too, where nothing would have to be copied.
    """
    return StagedTransfer(device) if staged or device.type != "cpu" else DirectTransfer(device)


class DirectTransfer:
    """The cpu: tensors lie on the columns' own memory, and results are used as they are."""

    behind = 0

    def __init__(self, device: "torch.device") -> None:
        self.device = device
        self.bytes_to = self.bytes_from = 0

    def start(self) -> None:
        """Nothing to wait for."""

    def put(self, _name: str, tensor: "torch.Tensor", /) -> "torch.Tensor":
        """The tensor itself."""
        return tensor

    def fetch(self, results: Mapping[str, "torch.Tensor"]) -> "Callable[[], Arrays]":
        """The results themselves."""
        return lambda: {name: tensor.numpy() for name, tensor in results.items()}


class StagedTransfer:
    """Host buffers that live on, pinned for CUDA, with a stream of its own for either direction.

    A copy to the device overlaps the chunk that is computed, and so does a copy back. Kernels wait for what is copied, the
    copy back waits for the kernels, and whoever takes the results waits for that copy; nobody waits for the whole device.
    """

    behind = SLOTS - 1

    def __init__(self, device: "torch.device") -> None:
        import torch

        self.device = device
        self.bytes_to = self.bytes_from = 0
        self._streams = [torch.cuda.Stream(device) for _ in range(2)] if device.type == "cuda" else None
        self._slots: list[dict[str, torch.Tensor]] = [{} for _ in range(SLOTS)]
        self._copied: list[torch.cuda.Event | None] = [None] * SLOTS
        self._slot = 0

    def start(self) -> None:
        """Takes the other set of buffers, once all that was copied out of it has arrived."""
        self._slot = (self._slot + 1) % SLOTS
        if (copied := self._copied[self._slot]) is not None:
            copied.synchronize()

    def put(self, name: str, tensor: "torch.Tensor", /) -> "torch.Tensor":
        """Copies to a buffer, and from there to the device."""
        import torch

        if self.device.type == "mps" and tensor.dtype == torch.float64:
            raise PipelineError(
                f'[compute] device = "mps": a feature in use asks for {name} as float64, which Metal does not have; write "cpu"'
            )
        buffer = self._buffer(f"to {name}", tensor)
        buffer.copy_(tensor)
        self.bytes_to += tensor.nbytes
        if self._streams is None:
            return buffer.to(self.device, copy=True)  # a buffer is written again: it is never handed out
        computing, copying = torch.cuda.current_stream(self.device), self._streams[0]
        with torch.cuda.stream(copying):
            there = buffer.to(self.device, non_blocking=True)
            copied = torch.cuda.Event()
            copied.record(copying)
        computing.wait_event(copied)
        there.record_stream(computing)
        self._copied[self._slot] = copied
        return there

    def fetch(self, results: Mapping[str, "torch.Tensor"]) -> "Callable[[], Arrays]":
        """Copies to buffers behind the kernels; the function returned waits for that and copies out of them."""
        import torch

        buffers = {name: self._buffer(f"from {name}", tensor) for name, tensor in results.items()}
        self.bytes_from += sum(tensor.nbytes for tensor in results.values())
        if self._streams is None:
            for name, tensor in results.items():
                buffers[name].copy_(tensor)
            return lambda: {name: buffer.clone().numpy() for name, buffer in buffers.items()}
        copying = self._streams[1]
        copying.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(copying):
            for name, tensor in results.items():
                buffers[name].copy_(tensor, non_blocking=True)
                tensor.record_stream(copying)
            arrived = torch.cuda.Event()
            arrived.record(copying)

        def wait() -> "Arrays":
            arrived.synchronize()
            return {name: buffer.clone().numpy() for name, buffer in buffers.items()}

        return wait

    def _buffer(self, name: str, tensor: "torch.Tensor") -> "torch.Tensor":
        """A view of the buffer of this name, as large as a tensor; the buffer grows where it is too small."""
        import torch

        slot = self._slots[self._slot]
        if name not in slot or slot[name].numel() < tensor.nbytes:
            pinned = self.device.type == "cuda"
            room = tensor.nbytes + tensor.nbytes // 8  # the next chunk may be a little larger, and pinning takes long
            slot[name] = torch.empty(room, dtype=torch.uint8, device="cpu", pin_memory=pinned)
        return slot[name][: tensor.nbytes].view(tensor.dtype).view(tensor.shape)
