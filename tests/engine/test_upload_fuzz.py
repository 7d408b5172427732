"""Uploads that are nearly right, the same every time: each is read, or refused with a sentence, in little memory."""

from __future__ import annotations

import ctypes
import gc
import json
import random
import sys
from collections.abc import Callable
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


def memory(name: str) -> int:
    """What Linux says of this process: VmRSS is what it holds, VmHWM the most since the last reset. In bytes."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024


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
    whole = {"config": TINY.to_dict(), "tokenizer": LETTERS.to_dict(), "metrics": {"curve": []}}
    name = chance.choice(list(whole))
    bad = hurt(json.dumps(whole[name]).encode(), chance)
    unpack(zipped(**{f"{name}__json": bad}), partial(check_model, HOSTED))


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


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory can be set back on Linux alone")
@pytest.mark.parametrize("upload", [archive, entry, tensors, text])
def test_what_is_nearly_right_is_read_or_refused_with_a_sentence(
    upload: Callable[[random.Random], None],
) -> None:
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what earlier tests have freed would serve this one unseen
    Path("/proc/self/clear_refs").write_text("5")
    before, read = memory("VmRSS"), 0
    for seed in range(SEEDS):
        try:
            upload(random.Random(seed))
            read += 1
        except GlassformerError as error:
            said = str(error)
            assert said and "Traceback" not in said and len(said) < 2_000, (seed, said)
    assert read < SEEDS or upload is text, "nothing was hurt"  # a text may be anything
    assert memory("VmHWM") - before < MOST
