"""Uploads that are nearly right, the same every time: each is read, or refused with a sentence, in little memory."""

from __future__ import annotations

import ctypes
import gc
import random
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import torch
from safetensors.torch import save as save_tensors

from engine import corpora, weights
from engine.checkpoints import pack, unpack
from engine.errors import GlassformerError
from engine.model import build
from engine.service.profiles import MB, PROFILES, check_model
from tests.engine.uploading import LETTERS, TINY, zipped

pytestmark = pytest.mark.exhaustive

SEEDS = 200
MOST = 64 * MB  # more than before, at the worst moment; the uploads have a few kB
HOSTED = PROFILES["hosted"]
ZIP = pack(build(TINY), LETTERS, {"curve": [{"step": 1, "loss": 2.0}]})
TENSORS = save_tensors({"embedding": torch.zeros(2, 8), "blocks.0.norm1.scale": torch.ones(8)})
TEXT = ("To be, or not to be: that is the question. Über Maß, 那只猫 🎉\n" * 20).encode()
NAMES = ("config__json", "tokenizer__json", "metrics__json")


@contextmanager
def peak() -> Iterator[list[int]]:
    """How much more memory than at its beginning the process has held at the worst moment of the block: one number,
    in bytes, that is there at its end. Skips where the system does not say.

    The peak that Linux keeps is of all the process's life, which earlier tests have raised: it is set back first. So is
    what they have freed and the allocator has kept, out of which the block would be served unseen.
    """
    found: list[int] = []
    try:
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
    except (OSError, AttributeError):
        pytest.skip("the peak of memory can be set back on Linux alone")
    before = _status("VmRSS")
    yield found
    found.append(_status("VmHWM") - before)


def _status(name: str) -> int:
    """A line of what Linux says of this process, in bytes."""
    line = re.search(rf"^{name}:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert line is not None
    return int(line[1]) * 1024


def hurt(data: bytes, chance: random.Random) -> bytes:
    """A few bytes of it changed, cut out, doubled, or the end gone."""
    found = bytearray(data)
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(found) or 1)
        part = slice(at, at + chance.randint(1, 40))
        found[part] = chance.choice(
            [chance.randbytes(1), chance.randbytes(8), b"", found[part] * 2, b"\xff" * 8, b"9" * 12]
        )
    return bytes(found[: chance.randrange(len(found) or 1)] if chance.random() < 0.1 else found)


def archive(chance: random.Random) -> None:
    unpack(hurt(ZIP, chance), partial(check_model, HOSTED))


def entry(chance: random.Random) -> None:
    """The archive is whole, and one file in it is not."""
    whole = {
        "config__json": TINY.to_dict(),
        "tokenizer__json": LETTERS.to_dict(),
        "metrics__json": {"curve": []},
    }
    name = chance.choice(NAMES)
    written = str(whole[name]).replace("'", '"').replace("True", "true").replace("False", "false")
    bad = hurt(written.replace("None", "null").encode(), chance)
    unpack(zipped(**{name: bad}), partial(check_model, HOSTED))


def tensors(chance: random.Random) -> None:
    bad = hurt(TENSORS, chance)
    try:
        weights.shapes(bad)
    finally:
        unpack(zipped(model__safetensors=bad), partial(check_model, HOSTED))


def text(chance: random.Random) -> None:
    """The page of Train refuses bytes that are not UTF-8; what reads behind it gets them here, as half pairs."""
    bad = hurt(TEXT, chance)
    try:
        found = bad.decode("utf-8-sig")
    except UnicodeDecodeError:
        found = bad.decode("utf-8", "surrogateescape")
    corpora.from_text(found, tokenizer=chance.choice(["char", "byte", "bpe:300"]))


@pytest.mark.parametrize("upload", [archive, entry, tensors, text])
def test_what_is_nearly_right_is_read_or_refused_with_a_sentence(
    upload: Callable[[random.Random], None],
) -> None:
    read = 0
    with peak() as more:
        for seed in range(SEEDS):
            try:
                upload(random.Random(seed))
                read += 1
            except GlassformerError as error:
                said = str(error)
                assert said and "Traceback" not in said and len(said) < 2_000, (seed, said)
    assert read < SEEDS or upload is text, "nothing was hurt"  # a text may be anything
    assert more[0] < MOST


def test_memory_is_seen_after_a_test_that_held_more() -> None:
    held = b"1" * (4 * MOST)
    del held
    with peak() as nothing:
        pass
    with peak() as much:
        held = b"1" * (2 * MOST)
        del held
    assert nothing[0] < MOST < 2 * MOST <= much[0] + MB
