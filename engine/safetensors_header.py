"""Contents of a safetensors file, read from its header alone: before a single tensor takes memory."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping

from engine.errors import CheckpointError

MAX_HEADER_BYTES = 8 * 2**20
LARGEST = 8  # bytes of a number: float64
MAX_DIMENSIONS = 8  # a parameter has three at most
MAX_SIZE = 2**40  # of one dimension; a product of so few and so small factors is made at once
MAX_SAID = 80  # characters of a name in a sentence


def shapes(data: bytes) -> Mapping[str, tuple[int, ...]]:
    """Returns the shape of every tensor, by name. The format is eight bytes with the length of a JSON object,
    that object (name -> dtype, shape, place), and the numbers (https://huggingface.co/docs/safetensors).

    Raises CheckpointError for a header that is none. Loading the file shows whether the places are right.
    """
    try:
        (length,) = struct.unpack_from("<Q", data)
        if length > min(MAX_HEADER_BYTES, len(data) - 8):
            raise ValueError(f"a header of {length:,} bytes")
        entries = json.loads(data[8 : 8 + length])
        result = {name: entry["shape"] for name, entry in entries.items() if name != "__metadata__"}
    except (struct.error, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise CheckpointError(f"its header cannot be read: {error}") from error
    for name, shape in result.items():
        if not (
            isinstance(shape, list)
            and len(shape) <= MAX_DIMENSIONS
            and all(type(size) is int and 0 <= size <= MAX_SIZE for size in shape)
        ):
            raise CheckpointError(f"{name[:MAX_SAID]!r} has no shape that a parameter can have")
    return {name: tuple(shape) for name, shape in result.items()}


def numbers(data: bytes) -> int:
    """Returns how many numbers a file says that it holds. Raises CheckpointError as `shapes` does."""
    return sum(math.prod(shape) for shape in shapes(data).values())


def most_bytes(count: int) -> int:
    """Returns the largest file that holds so many numbers, whatever their type."""
    return 8 + MAX_HEADER_BYTES + LARGEST * count
