"""Uploads obey the limits of the server before they take any memory, and what is nearly right is read or refused."""

from __future__ import annotations

import ctypes
import gc
import itertools
import json
import random
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save as save_tensors

from engine import checkpoints, safetensors_header
from engine.checkpoints import pack, unpack
from engine.config import TrainConfig
from engine.data import corpora
from engine.data.tokenizers.char import CharTokenizer
from engine.errors import CheckpointError, ConfigError, GlassformerError
from engine.model import build
from runs.process_guards import ROOT
from runs.profiles import MB, PROFILES, check, check_model
from runs.state import RunSpec
from studies.costs.ledger import parameter_formula
from tests.engine.cases import for_each
from tests.engine.uploading import LETTERS, TINY, zipped

HOSTED = PROFILES["hosted"]
# 5 kB each, and once gigabytes: sizes without parameters of their own
EMPTY: dict[str, Any] = {"norm": "none", "ffn": "none", "mixer": "mean", "position": "none"}
DEEP = {**TINY.to_dict(), **EMPTY, "d_model": 1024, "n_heads": 1024, "n_layers": 256}
WIDE = {**TINY.to_dict(), **EMPTY, "d_model": 1_000_000, "n_heads": 100, "n_layers": 60, "context": 256}
LONG = {**TINY.to_dict(), **EMPTY, "context": 20_000_000}
ENDLESS = {**TINY.to_dict(), **EMPTY, "context": 10**9, "position": "sinusoidal"}
SEEDS = 200
MOST = 64 * MB  # more than before, at the worst moment; the uploads have a few kB
ZIP = pack(build(TINY), LETTERS, {"curve": [{"step": 1, "loss": 2.0}]})
TENSORS = save_tensors({"embedding": torch.zeros(2, 8), "blocks.0.norm1.scale": torch.ones(8)})
PLAIN = ("To be, or not to be: that is the question. Über Maß, 那只猫 🎉\n" * 20).encode()


def of(config: dict[str, Any]) -> bytes:
    size = (config["vocab_size"], config["d_model"])
    return zipped(
        config__json=json.dumps(config).encode(),
        model__safetensors=save_tensors({"embedding": torch.zeros(size, dtype=torch.float16)}),
    )


@for_each("config, says", [
    (DEEP, "n_layers = 256: must be at most 64 here"),
    ({**DEEP, "n_layers": 64}, "n_heads = 1024: must be at most 128 here"),
    (LONG, "context = 20000000: must be at most 256 here"),
    (ENDLESS, "context = 1000000000: must be at most 256 here"),
    (WIDE, "GB of memory"),
    ({**TINY.to_dict(), "d_model": 4096, "n_heads": 1}, "parameters; at most 4,000,000 are allowed"),
    ({**TINY.to_dict(), "context": 0}, "context = 0: must be at least 1"),
])  # fmt: skip
def test_a_model_beyond_the_limits_is_a_sentence(config: dict[str, Any], says: str) -> None:
    with pytest.raises(CheckpointError) as caught:
        unpack(of(config), partial(check_model, HOSTED))
    assert says in str(caught.value), str(caught.value)


SCRIPT = """
import resource, sys
from functools import partial
from pathlib import Path
from engine.checkpoints import unpack
from engine.errors import CheckpointError
from runs.profiles import PROFILES, check_model
for path in sys.argv[1:]:
    data = Path(path).read_bytes()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        unpack(data, partial(check_model, PROFILES["hosted"]))
    except CheckpointError as error:
        sys.stdout.write(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before} {error}\\n")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kB on Linux")
def test_it_is_refused_before_it_takes_memory(tmp_path: Path) -> None:
    lie = save_tensors({"embedding": torch.zeros(2, 8)}) + bytes(100 * MB)  # the header is a small model's
    refused = [of(DEEP), of(LONG), of(ENDLESS), of(WIDE)]
    refused += [zipped(model__safetensors=lie), zipped(metrics__json=b"[" * (80 * MB))]
    for number, data in enumerate(refused):
        assert len(data) < 3 * MB
        (tmp_path / f"{number}.zip").write_bytes(data)
    command = [sys.executable, "-c", SCRIPT, *map(str, sorted(tmp_path.iterdir()))]
    said = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True).stdout.splitlines()
    assert len(said) == len(refused)
    for line in said:
        taken, _, sentence = line.partition(" ")
        assert sentence and int(taken) < 20_000, f"{taken} kB for: {sentence}"


def test_what_is_trained_here_can_be_used_here() -> None:
    for profile in PROFILES.values():
        for config in (TINY, replace(TINY, context=256, d_model=128, n_layers=4, n_heads=8, vocab_size=65)):
            check(profile, RunSpec(config, TrainConfig(steps=10, batch_size=2), "text", "a text"))
            check_model(profile, config)
            letters = CharTokenizer("".join(map(chr, range(97, 97 + config.vocab_size))))
            found = unpack(pack(build(config), letters, {}), partial(check_model, profile))
            assert found.config == config.resolved()


@given(st.integers(1, 64), st.integers(1, 256), st.sampled_from([8, 64, 256]), st.integers(1, 12))
def test_the_limits_of_a_model_are_never_tighter_than_those_of_a_training(
    layers: int, context: int, width: int, batch: int
) -> None:
    config = replace(TINY, n_layers=layers, context=context, d_model=width)
    try:
        check(HOSTED, RunSpec(config, TrainConfig(steps=10, batch_size=batch), "text", "a text"))
    except ConfigError:
        return
    check_model(HOSTED, config)


def test_shapes_are_told_without_loading() -> None:
    tensors = {"a": torch.zeros(2, 3), "b": torch.zeros(()), "c": torch.zeros(0, 5)}
    data = save_tensors(tensors, {"more": "words"})
    assert (
        safetensors_header.shapes(data) == {"a": (2, 3), "b": (), "c": (0, 5)}
        and safetensors_header.numbers(data) == 7
    )
    assert safetensors_header.shapes(data[: data.index(b"}}") + 10]), "the numbers themselves are not needed"


def _header(text: bytes) -> bytes:
    return struct.pack("<Q", len(text)) + text


NO_HEADERS = [
    b"", b"1234567", struct.pack("<Q", 2**63) + b"{}", _header(b"[]"), _header(b"{"), _header(b'{"a": 3}'), _header(b'{"a": {}}'),
    _header(b'{"a": {"shape": 3}}'), _header(b'{"a": {"shape": [-1]}}'), _header(b'{"a": {"shape": [1.5]}}'), _header(b'{"a": {"shape": [true]}}'),
    _header(b'{"a":' * 5000), _header(b'{"a": {"shape": [1, 1, 1, 1, 1, 1, 1, 1, 1]}}'),
    _header(b'{"a": {"shape": [%d]}}' % (2**40 + 1)), _header(b'{"a": {"shape": [1%s]}}' % (b"0" * 4300)),
]  # fmt: skip


def test_a_header_that_is_none_is_refused() -> None:
    for data in NO_HEADERS:
        with pytest.raises(CheckpointError):
            pytest.fail(f"{data[:60]!r} was read as {safetensors_header.shapes(data)}")


@for_each("sizes", ["9," * 200_000 + "9", f"{2**40}," * 7 + f"{2**40}", "9" * 4_299, "9" * 5_000])
def test_a_shape_that_says_endlessly_much_is_refused_at_once(sizes: str) -> None:
    data = _header(f'{{"a": {{"dtype": "F32", "shape": [{sizes}], "data_offsets": [0, 0]}}}}'.encode())
    began = time.process_time()
    with pytest.raises(CheckpointError) as caught:
        unpack(zipped(model__safetensors=data), partial(check_model, HOSTED))
    assert time.process_time() - began < 1 and len(str(caught.value)) < 500


def test_what_says_endlessly_much_is_a_short_sentence() -> None:
    values = ("9" * 4_299, '"' + "9" * 1_000_000 + '"', "[" * 900 + "]" * 900, "-" + "9" * 400)
    for field, value in itertools.product(("d_model", "rope_theta", "norm", "x" * 10_000), values):
        said = json.dumps({**TINY.to_dict(), field: 0}).replace(f'"{field}": 0', f'"{field}": {value}')
        with pytest.raises(CheckpointError) as caught:
            unpack(zipped(config__json=said.encode()), partial(check_model, HOSTED))
        assert len(str(caught.value)) < 2_000, (field[:9], value[:9])
    for row in ([0, 1, 10**400, 2], [0, 1, 2] * 100_000):
        merges = {"kind": "bpe", "level": "char", "split": "none", "base": "ab", "merges": [row]}
        with pytest.raises(CheckpointError) as caught:
            unpack(zipped(tokenizer__json=json.dumps(merges).encode()), partial(check_model, HOSTED))
        assert "merge 0 must be" in str(caught.value) and len(str(caught.value)) < 500


def test_more_numbers_than_the_config_calls_for_are_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "load_tensors", lambda data: pytest.fail("it was loaded"))
    said = f"holds 8,000 numbers, but the config calls for {parameter_formula(TINY)}"
    with pytest.raises(CheckpointError, match=said):
        unpack(zipped(model__safetensors=save_tensors({"embedding": torch.zeros(1000, 8)})))


def test_the_memory_of_a_checkpoint() -> None:
    found = unpack(pack(build(TINY), LETTERS, {"curve": [{} for _ in range(10_000)]}))
    least = 4 * parameter_formula(TINY) + sys.getsizeof({}) * 10_000
    assert least <= found.memory() < 2 * least + 10_000


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
    whole = {"config": TINY.to_dict(), "tokenizer": LETTERS.to_dict(), "metrics": {"curve": []}}
    name = chance.choice(list(whole))
    bad = hurt(json.dumps(whole[name]).encode(), chance)
    unpack(zipped(**{f"{name}__json": bad}), partial(check_model, HOSTED))


def headers(chance: random.Random) -> None:
    bad = hurt(TENSORS, chance)
    try:
        safetensors_header.shapes(bad)
    finally:
        unpack(zipped(model__safetensors=bad), partial(check_model, HOSTED))


def plain(chance: random.Random) -> None:
    """The page of Train refuses bytes that are not UTF-8; what reads behind it gets them here, as half pairs."""
    bad = hurt(PLAIN, chance)
    try:
        found = bad.decode("utf-8-sig")
    except UnicodeDecodeError:
        found = bad.decode("utf-8", "surrogateescape")
    corpora.from_text(found, tokenizer=chance.choice(["char", "byte", "bpe:300"]))


@pytest.mark.exhaustive
@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory can be set back on Linux alone")
@pytest.mark.parametrize("upload", [archive, entry, headers, plain])
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
    assert read < SEEDS or upload is plain, "nothing was hurt"  # a plain may be anything
    assert memory("VmHWM") - before < MOST
