"""Events to chunks of users within a memory budget, handed to torch without a copy, on a device."""

from pipeline.chunks.cut import CHUNK_ROWS, EventChunk, halves, iter_chunks
from pipeline.chunks.device import device_of_day, out_of_memory, resolve_device
from pipeline.chunks.plan import Plan, plan_chunks, row_bytes
from pipeline.chunks.tensors import (
    action_codes,
    as_tensor,
    columns_to_summarise,
    from_array,
    opening_tensors,
    tensor_extras,
    to_tensors,
)
from pipeline.chunks.transfer import Transfer, transfer_to

__all__ = [
    "CHUNK_ROWS",
    "EventChunk",
    "Plan",
    "Transfer",
    "action_codes",
    "as_tensor",
    "columns_to_summarise",
    "device_of_day",
    "from_array",
    "halves",
    "iter_chunks",
    "opening_tensors",
    "out_of_memory",
    "plan_chunks",
    "resolve_device",
    "row_bytes",
    "tensor_extras",
    "to_tensors",
    "transfer_to",
]
