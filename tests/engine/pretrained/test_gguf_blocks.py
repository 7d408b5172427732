"""Blocks of quantised numbers in GGUF files: what `gguf` packs comes back within half a step, and the two
kinds that it cannot pack are taken apart here once more, by the format's own definition.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine.pretrained import gguf
from tests.engine.cases import for_each
from tests.engine.pretrained.test_gguf import written

quants = pytest.importorskip("gguf.quants")
NUMBER = {name: kind for kind, (name, _, _) in gguf.KINDS.items()}
LEVELS = {"Q4_0": 16, "Q4_1": 15, "Q5_0": 32, "Q5_1": 31, "Q8_0": 254}  # steps over the range of a block


def back(tmp_path: Path, raw: np.ndarray, name: str, shape: tuple[int, ...]) -> np.ndarray:
    return gguf.read(written(tmp_path / "a.gguf", {}, {"x": (raw, NUMBER[name], shape)})).numbers("x")


@for_each("name", LEVELS)
def test_what_is_packed_comes_back_within_half_a_step(name: str, tmp_path: Path) -> None:
    from gguf import GGMLQuantizationType

    x = np.random.default_rng(0).normal(size=(5, 96)).astype(np.float32)
    raw = quants.quantize(x, GGMLQuantizationType[name])
    found = back(tmp_path, raw, name, x.shape)
    blocks, errors = (each.reshape(-1, 32) for each in (x, np.abs(found - x)))
    even = name.endswith("_0")  # these are centred on 0: the largest size decides
    span = 2 * np.abs(blocks).max(1) if even else np.ptp(blocks, axis=1)
    step = span / LEVELS[name]
    # The far end of a centred range has one level less: there up to a whole step is lost. Scales are float16.
    assert (errors.max(1) <= step * (1.0 if even else 0.5) + 2e-3).all()
    assert np.median(errors / step[:, None]) < 0.3 and errors.max() > 0


@for_each("name", ["F16", "BF16", "F32"])
def test_plain_numbers_come_back(name: str, tmp_path: Path) -> None:
    from gguf import GGMLQuantizationType

    x = np.random.default_rng(1).normal(size=(3, 32)).astype(np.float32)
    raw = quants.quantize(x, GGMLQuantizationType[name])
    found = back(tmp_path, raw, name, x.shape)
    assert np.abs(found - x).max() <= {"F16": 2**-11, "BF16": 2**-8, "F32": 0}[name] * np.abs(x).max()


def random_block(size: int, halves: tuple[int, ...]) -> np.ndarray:
    """One block of random bytes, with small float16 numbers at `halves`."""
    raw = np.random.default_rng(2).integers(0, 256, size, dtype=np.uint8)
    for place, value in zip(halves, (0.37, -0.11), strict=False):
        raw[place : place + 2] = np.frombuffer(np.float16(value).tobytes(), np.uint8)
    return raw


def test_q4_k_by_its_definition(tmp_path: Path) -> None:
    """y = d sc q - dmin m: eight groups of 32, each with a scale and a least of six bits (k-quants, llama.cpp
    #1684).
    """
    raw = random_block(144, (0, 2))
    d, least = (float(np.frombuffer(raw[at : at + 2].tobytes(), np.float16)[0]) for at in (0, 2))
    packed, nibbles = raw[4:16].astype(int), raw[16:].astype(int)
    expected = np.empty(256)
    for group in range(8):
        if group < 4:
            scale, low = packed[group] & 63, packed[group + 4] & 63
        else:
            scale = (packed[group + 4] & 15) | (packed[group - 4] >> 6 << 4)
            low = (packed[group + 4] >> 4) | (packed[group] >> 6 << 4)
        of_pair = nibbles[32 * (group // 2) : 32 * (group // 2) + 32]
        quarter = of_pair >> 4 if group % 2 else of_pair & 15
        expected[32 * group : 32 * group + 32] = d * scale * quarter - least * low
    assert back(tmp_path, raw, "Q4_K", (1, 256))[0] == pytest.approx(expected, abs=1e-4)


def test_q6_k_by_its_definition(tmp_path: Path) -> None:
    """y = d sc (q - 32): four bits of q in one place and two in another, a scale of eight bits for each 16."""
    raw = random_block(210, (208,))
    d = float(np.frombuffer(raw[208:].tobytes(), np.float16)[0])
    low, high = raw[:128].astype(int), raw[128:192].astype(int)
    scales = raw[192:208].view(np.int8).astype(int)
    expected = np.empty(256)
    for half in range(2):
        for quarter in range(4):
            for i in range(32):
                four = low[64 * half + 32 * (quarter % 2) + i] >> (4 * (quarter // 2)) & 15
                two = high[32 * half + i] >> (2 * quarter) & 3
                scale = scales[8 * half + 2 * quarter + i // 16]
                expected[128 * half + 32 * quarter + i] = d * scale * ((four | two << 4) - 32)
    assert back(tmp_path, raw, "Q6_K", (1, 256))[0] == pytest.approx(expected, abs=1e-3)
