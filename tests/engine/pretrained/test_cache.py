"""Weights that are kept: a plain safetensors file, written tensor by tensor."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from engine.pretrained import cache
from tests.engine.cases import for_each

SHAPES = {"a": (3,), "b" * 300: (2, 5), "Ä.ö": (1, 1, 4), "none": (0, 7), "turned": (4, 3)}


class Opened:
    """A model of five tensors, which counts those that are in memory at once."""

    def __init__(self, broken: bool = False) -> None:
        self.names, self.differs, self.broken = set(SHAPES), dict[str, Any](), broken
        self.made: list[weakref.ref[Tensor]] = []
        self.most = 0

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        for at, (name, shape) in enumerate(SHAPES.items()):
            if self.broken and at == 3:
                raise OSError("no space left")
            made = torch.arange(torch.Size(shape).numel(), dtype=torch.float32) + 10 * at
            made = made.reshape(shape[::-1]).T if name == "turned" else made.reshape(shape)
            self.made.append(weakref.ref(made))
            self.most = max(self.most, sum(each() is not None for each in self.made))
            yield name, made

    def weights(self) -> dict[str, Tensor]:
        return dict(Opened().tensors())


def test_what_is_kept_is_what_was_made_and_never_all_of_it_in_memory(tmp_path: Path) -> None:
    opened, path = Opened(), tmp_path / "model.gguf"
    path.write_bytes(b"its numbers")
    found = cache.weights(opened, path, tmp_path / "keep")
    expected = opened.weights()
    assert opened.most == 2, "the one that is written, and the next"
    assert found.keys() == expected.keys() and all(torch.equal(found[name], expected[name]) for name in found)
    (kept,) = (tmp_path / "keep").glob("*.safetensors")
    theirs = load_file(kept)  # as anybody else reads it
    assert all(torch.equal(theirs[name], expected[name]) for name in expected)
    cache.weights(opened, path, tmp_path / "keep")
    assert len(opened.made) == len(SHAPES), "once made, it is mapped"


@for_each("before", [b"", b"half of a file"])
def test_where_it_cannot_be_written_nothing_half_is_left(before: bytes, tmp_path: Path) -> None:
    opened, path, keep = Opened(broken=True), tmp_path / "model.gguf", tmp_path / "keep"
    path.write_bytes(b"its numbers")
    keep.mkdir()
    if before:
        (keep / f"{cache.stamp(opened, path)}.safetensors").write_bytes(before)
    found = cache.weights(opened, path, keep)
    assert found.keys() == SHAPES.keys() and not list(keep.glob("*.half*"))
    assert not list(keep.glob("*.safetensors"))


def test_the_half_that_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    opened, path, keep = Opened(), tmp_path / "model.gguf", tmp_path / "keep"
    path.write_bytes(b"its numbers")
    keep.mkdir()
    stamp = cache.stamp(opened, path)
    (keep / f"{stamp}.4711.half").write_bytes(b"half")
    (keep / "another.4711.half").write_bytes(b"another model's, which may be under way")
    cache.weights(opened, path, keep)
    left = {file.name for file in keep.iterdir() if file.suffix != ".lock"}
    assert left == {f"{stamp}.safetensors", "another.4711.half"}
