"""GGUF files: a header of typed facts and tensors, then the tensors' numbers, mostly quantised.

The header is read here, field by field, and nothing in it is believed before it is held against the file's
length: what a stranger's file claims costs no more memory than the file has bytes. The blocks of quantised
numbers are taken apart by the package `gguf` (llama.cpp's own). The format:
https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import gcd, prod
from pathlib import Path

import numpy as np

from engine.errors import PretrainedError

Value = int | float | bool | str | tuple["Value", ...]
MAGIC, VERSIONS = b"GGUF", (2, 3)
MAX_FACTS, MAX_TENSORS, MAX_AXES = 10_000, 100_000, 4
OTHERS = {  # what a file begins with that is called so, and is none
    b"vers": "it is a pointer of Git LFS: fetch the file itself with `git lfs pull`",
    b"PK\x03\x04": "it is a zip, or PyTorch's pickle in one",
    b"<!DO": "it is a web page: the download went elsewhere",
    **dict.fromkeys((b"lmgg", b"fmgg", b"tjgg", b"algg"), "it is of the format before GGUF: convert it"),
}
STRING, ARRAY = 8, 9
ROW = 64  # blocks that are taken apart side by side
NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}

# ggml's number of a kind -> (name, numbers in a block, bytes of a block)
KINDS: dict[int, tuple[str, int, int]] = {
    0: ("F32", 1, 4),
    1: ("F16", 1, 2),
    2: ("Q4_0", 32, 18),
    3: ("Q4_1", 32, 20),
    6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24),
    8: ("Q8_0", 32, 34),
    10: ("Q2_K", 256, 84),
    11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144),
    13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210),
    30: ("BF16", 1, 2),
}


@dataclass(frozen=True)
class Stored:
    """Where a tensor lies: `begin` and `size` are bytes, `shape` as PyTorch writes it, rows first."""

    name: str
    kind: str
    shape: tuple[int, ...]
    begin: int
    size: int

    @property
    def bits(self) -> float:
        """Bits that one number takes, its share of the block's scales included."""
        return 8 * self.size / prod(self.shape)


@dataclass(frozen=True, eq=False)
class Gguf:
    """A file's facts and its tensors by name, in the order in which they lie. The numbers stay on disk."""

    path: Path
    facts: Mapping[str, Value] = field(repr=False)
    stored: Mapping[str, Stored] = field(repr=False)

    @property
    def title(self) -> str:
        return self.path.name

    @cached_property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        return {name: tensor.shape for name, tensor in self.stored.items()}

    @property
    def bits(self) -> float:
        """Bits that one number takes on disk, on average."""
        held = self.stored.values()
        return 8 * sum(tensor.size for tensor in held) / max(1, sum(prod(tensor.shape) for tensor in held))

    def raw(self, name: str) -> np.ndarray:
        """Returns a tensor's bytes, uint8 (bytes,). Raises PretrainedError where it is not there."""
        try:
            where = self.stored[name]
        except KeyError:
            raise PretrainedError(f"{self.path.name} has no tensor {name}") from None
        # As a plain array, still mapped: every slice of a memmap is made in Python, and slices are many.
        return np.asarray(np.memmap(self.path, np.uint8, "r", where.begin, (where.size,)))

    def numbers(self, name: str) -> np.ndarray:
        """Returns a tensor as float32. Raises PretrainedError where a number is not finite."""
        raw, where = self.raw(name), self.stored[name]
        result = dequantised(raw, where.kind).reshape(where.shape)
        if not np.isfinite(result).all():
            raise PretrainedError(f"{self.path.name}: {name} holds numbers that are not finite")
        return result


def dequantised(raw: np.ndarray, kind: str) -> np.ndarray:
    """Returns the numbers in blocks of a kind of KINDS: uint8 (bytes,) -> float32 (numbers,)."""
    if kind == "F32":
        return raw.view("<f4").astype(np.float32)
    if kind == "F16":
        return raw.view("<f2").astype(np.float32)
    if kind == "BF16":  # the upper half of a float32
        return (raw.view("<u2").astype(np.uint32) << 16).view(np.float32)
    from gguf import GGMLQuantizationType
    from gguf.quants import dequantize

    _, _, size = next(each for each in KINDS.values() if each[0] == kind)
    # The package takes sixteen rows at a time: with a block for a row it would spend its time between them.
    blocks = gcd(raw.size // size, ROW)
    result: np.ndarray = dequantize(raw.reshape(-1, blocks * size), GGMLQuantizationType[kind])
    return result.astype(np.float32, copy=False).ravel()


def read(path: Path | str) -> Gguf:
    """Reads the header of a little-endian GGUF file of version 2 or 3. Raises PretrainedError, naming what is
    wrong, for a file that is none, is cut short, or says what cannot be.
    """
    path = Path(path)
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _header(path, _Reader(data, path.name))
    except (OSError, ValueError) as error:  # an empty file cannot be mapped
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise PretrainedError(f"{path.name} cannot be read: {why}") from error


class _Reader:
    """Takes values off the front of a file, never past its end."""

    def __init__(self, data: mmap.mmap, name: str) -> None:
        self.data, self.name, self.at = data, name, 0

    def fail(self, what: str) -> PretrainedError:
        return PretrainedError(f"{self.name} is damaged, or is not a GGUF file: {what}")

    def take(self, count: int) -> bytes:
        if count > len(self.data) - self.at:
            raise self.fail(f"at byte {self.at:,} it announces {count:,} more bytes than it has")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, code: str) -> int:
        result: int = struct.unpack(f"<{code}", self.take(struct.calcsize(f"<{code}")))[0]
        return result

    def count(self, most: int, what: str) -> int:
        result = self.number("Q")
        if result > most:
            raise self.fail(f"it claims {result:,} {what}; at most {most:,} are accepted")
        return result

    def text(self) -> str:
        return self.take(self.number("Q")).decode("utf-8", "replace")

    def value(self, kind: int) -> Value:
        if kind == STRING:
            return self.text()
        if kind == ARRAY:
            return self.array()
        if kind not in NUMBERS:
            raise self.fail(f"there is no value type {kind}")
        return self.number(NUMBERS[kind])

    def array(self) -> tuple[Value, ...]:
        kind, length = self.number("I"), self.number("Q")
        if kind in NUMBERS:
            code = NUMBERS[kind]
            packed = self.take(length * struct.calcsize(f"<{code}"))
            return struct.unpack(f"<{length}{code}", packed)
        if kind != STRING:
            raise self.fail("it has an array of arrays")
        if length > (len(self.data) - self.at) // 8:  # each string has a length of 8 bytes at least
            raise self.fail(f"it claims an array of {length:,} strings")
        return tuple(self.text() for _ in range(length))


def _header(path: Path, reader: _Reader) -> Gguf:
    if (begin := reader.take(4)) != MAGIC:
        raise reader.fail(OTHERS.get(begin, "it does not begin with the letters GGUF"))
    version = reader.number("I")
    if int.from_bytes(version.to_bytes(4, "little"), "big") in VERSIONS:
        raise PretrainedError(
            f"{reader.name} is big-endian, made for another kind of machine; little-endian is read"
        )
    if version not in VERSIONS:
        raise reader.fail(f"its version is {version}; versions 2 and 3 are read")
    tensors, facts = reader.count(MAX_TENSORS, "tensors"), reader.count(MAX_FACTS, "facts")
    known: dict[str, Value] = {}
    for _ in range(facts):
        name = reader.text()
        known[name] = reader.value(reader.number("I"))
    _refuse_part(reader.name, known)
    claims = [_claim(reader) for _ in range(tensors)]
    alignment = known.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
        raise reader.fail(f"its alignment is {alignment!r}, which is not a power of two")
    base = -(-reader.at // alignment) * alignment
    return Gguf(path, known, _placed(reader, claims, base))


def _refuse_part(title: str, facts: Mapping[str, Value]) -> None:
    """Raises PretrainedError for a file that is not a whole model."""
    count, place = facts.get("split.count", 1), facts.get("split.no", 0)
    if isinstance(count, int) and isinstance(place, int) and count > 1:
        raise PretrainedError(
            f"{title} is part {place + 1:,} of {count:,} of a split model: join them first with"
            " `llama-gguf-split --merge`"
        )
    kind = facts.get("general.type", "model")
    if kind == "adapter":
        raise PretrainedError(f"{title} is an adapter without its base model: merge it into its base first")
    if kind != "model":
        raise PretrainedError(f"{title} holds no model: its general.type is {kind!r}")


def _claim(reader: _Reader) -> tuple[str, tuple[int, ...], int, int]:
    """(name, shape, kind, offset) as the file says it."""
    name, axes = reader.text(), reader.number("I")
    if not 1 <= axes <= MAX_AXES:
        raise reader.fail(f"{name} has {axes} axes")
    sizes = tuple(reader.number("Q") for _ in range(axes))
    kind, offset = reader.number("I"), reader.number("Q")
    return name, sizes[::-1], kind, offset  # ggml names the fastest axis first


def _kind_named(kind: int) -> str:
    """Its number, and its name where the package knows that."""
    from gguf import GGMLQuantizationType

    names = {each.value: each.name for each in GGMLQuantizationType}
    return f"{kind} ({names[kind]})" if kind in names else str(kind)


def _placed(
    reader: _Reader, claims: list[tuple[str, tuple[int, ...], int, int]], base: int
) -> dict[str, Stored]:
    result: dict[str, Stored] = {}
    for name, shape, kind, offset in claims:
        if kind not in KINDS:
            raise PretrainedError(
                f"{reader.name}: {name} has ggml's quantisation type {_kind_named(kind)}, which is not"
                f" supported; supported are {', '.join(known for known, _, _ in KINDS.values())}"
            )
        called, block, size = KINDS[kind]
        numbers = prod(shape)
        if name in result or not numbers or shape[-1] % block:
            raise reader.fail(f"{name} occurs twice, is empty, or its rows are not whole blocks of {block}")
        length = numbers // block * size
        if base + offset + length > len(reader.data):
            raise reader.fail(f"{name} would extend beyond the end of the file")
        result[name] = Stored(name, called, shape, base + offset, length)
    return result
