"""Models of every kind and training states come back exactly, and what was touched is refused."""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import shutil
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from safetensors.torch import save as save_tensors
from torch import Tensor

from engine import checkpoints
from engine.checkpoints import load, load_state, load_weights, pack, save, save_state, slim_state, unpack
from engine.config import ModelConfig
from engine.data.tokenizers.char import CharTokenizer
from engine.errors import CheckpointError
from engine.model import Transformer
from engine.training.records import TrainState
from studies.pairs.checkpoints import labelled, load_labels, load_pair
from studies.pairs.corpora import pair_text
from studies.pairs.dataset import Labelled, LabelledText
from studies.pairs.seq2seq import Classifier, Seq2Seq, build_classifier, build_pair
from studies.pairs.tokenizer import PairTokenizer
from tests.engine.cases import for_each
from tests.engine.helpers import loud, some_tokens, tiny

LETTERS = CharTokenizer("abcdefghijk")  # eleven, as tiny() has
METRICS_VALUE = {"validation_loss": 1.5, "curve": [[0, 4.1], [100, 2.0]], "machine": "a laptop"}
WEIGHT = torch.randn(3, 4)
OPTIMISED = {"steps": torch.tensor(7.0), "model.embedding": WEIGHT, "first.embedding": torch.zeros(3, 4)}
STATE = TrainState(7, 1.25, OPTIMISED)
SIZES = ModelConfig(d_model=16, n_layers=1, n_heads=2, dropout=0.5)
TOLD = (Labelled("abc", "x"), Labelled("dab", "y"))
TEXT = LabelledText("t", "T", PairTokenizer.train(["abcd"]), ("x", "y"), TOLD, (Labelled("cab", "x"),))


def _model(**fields: object) -> Transformer:
    return loud(tiny(**fields))


def _saved(tmp_path: Path) -> Path:
    save(tmp_path / "model", _model(), LETTERS, METRICS_VALUE)
    return tmp_path / "model"


def _refused(folder: Path, says: str) -> None:
    with pytest.raises(CheckpointError) as caught:
        load(folder)
    assert says in str(caught.value), str(caught.value)


@for_each("fields", [
    {}, {"tie_embeddings": False, "ffn": "swiglu", "norm": "rmsnorm"}, {"position": "t5", "n_kv_heads": 1},
    {"norm_gain": False},
])  # fmt: skip
def test_a_model_comes_back_exactly(tmp_path: Path, fields: dict) -> None:
    model = _model(**fields)
    save(tmp_path, model, LETTERS, METRICS_VALUE)
    for checkpoint in (load(tmp_path), unpack(pack(model, LETTERS, METRICS_VALUE))):
        assert checkpoint.config == model.config == checkpoint.model.config
        assert checkpoint.tokenizer == LETTERS and checkpoint.metrics == METRICS_VALUE
        assert torch.equal(checkpoint.model(some_tokens(model.config)), model(some_tokens(model.config)))
        assert not checkpoint.model.training
    assert sorted(os.listdir(tmp_path)) == sorted(
        [checkpoints.WEIGHTS, checkpoints.CONFIG, checkpoints.TOKENIZER, checkpoints.METRICS]
    )


def test_weights_can_be_stored_small(tmp_path: Path) -> None:
    model = _model()
    for dtype in (torch.bfloat16, torch.float16):
        save(tmp_path, model, LETTERS, {}, dtype=dtype)
        stored = load_file(tmp_path / checkpoints.WEIGHTS)
        assert {tensor.dtype for tensor in stored.values()} == {dtype}
        for name, parameter in load(tmp_path).model.named_parameters():
            assert parameter.dtype == torch.float32
            assert torch.allclose(parameter, dict(model.named_parameters())[name], rtol=1e-2, atol=1e-3)


@for_each("name", ["", checkpoints.WEIGHTS, checkpoints.CONFIG, checkpoints.TOKENIZER, checkpoints.METRICS])
def test_what_is_missing_is_named(tmp_path: Path, name: str) -> None:
    folder = _saved(tmp_path)
    (folder / name).unlink() if name else shutil.rmtree(folder)
    _refused(folder, name or folder.name)


def test_weights_cut_short_and_headers_that_claim_to_be_huge(tmp_path: Path) -> None:
    folder = _saved(tmp_path)
    data = (folder / checkpoints.WEIGHTS).read_bytes()
    for keep in (0, 1, 7, 8, 100, len(data) // 2, len(data) - 1):
        (folder / checkpoints.WEIGHTS).write_bytes(data[:keep])
        _refused(folder, f"{checkpoints.WEIGHTS} is damaged or cut short")
    for wrong in (
        data + b"more",
        *(struct.pack("<Q", length) + data[8:] for length in (2**63, 2**40, 10**6)),
    ):
        (folder / checkpoints.WEIGHTS).write_bytes(wrong)
        _refused(folder, checkpoints.WEIGHTS)


@for_each("name", [checkpoints.CONFIG, checkpoints.TOKENIZER, checkpoints.METRICS])
@for_each("text", ["", "{", "[]", "3", "null", "\x00", "{'a': 1}", "[" * 100_000])
def test_json_that_is_none(tmp_path: Path, name: str, text: str) -> None:
    folder = _saved(tmp_path)
    (folder / name).write_text(text)
    _refused(folder, name)


def _edit(folder: Path, name: str, **changes: object) -> None:
    values = json.loads((folder / name).read_text("utf-8"))
    (folder / name).write_text(json.dumps({**values, **changes}))


@for_each("changes, says", [
    ({"d_model": 32}, "numbers, but the config calls for"), ({"d_ff": 25}, "numbers, but the config calls for"),
    ({"n_layers": 3}, "numbers, but the config calls for"), ({"n_layers": 10**12}, "at most 1,024 are read"),
    ({"n_layers": 10**9, "norm": "none", "mixer": "none", "ffn": "none"}, "at most 1,024 are read"),
    ({"d_model": "16"}, "d_model = '16': must be a whole number"),
    ({"n_heads": 5, "d_head": None}, "n_heads = 5: must divide d_model"),
    ({"norm": "batchnorm"}, "norm = 'batchnorm': must be one of"), ({"heads": 4}, "heads = 4: is not a field"),
    ({"vocab_size": 12}, ""), ({"vocab_size": 13}, "vocab_size 13, but the tokenizer knows 11 tokens"),
    ({"vocab_size": 40}, "the tokenizer knows 11 tokens"),
    ({"norm": "rmsnorm", "n_layers": 0}, "n_layers = 0: must be at least 1"),
    ({"alphabet": "abc"}, ""), ({"alphabet": "aabcdefghij"}, ""), ({"alphabet": 5}, ""), ({"kind": "bpe"}, ""),
    ({"kind": []}, ""),
])  # fmt: skip
def test_an_edited_config_or_tokenizer(tmp_path: Path, changes: dict, says: str) -> None:
    folder = _saved(tmp_path)
    _edit(
        folder,
        checkpoints.TOKENIZER if changes.keys() & {"alphabet", "kind"} else checkpoints.CONFIG,
        **changes,
    )
    _refused(folder, says)


W_O, W_IN, W_QKV = "blocks.0.mixer.w_o.weight", "blocks.0.ffn.w_in.weight", "blocks.0.mixer.w_qkv.weight"
EDITS: list[tuple[str, Callable[[Tensor], Tensor], str]] = [
    (W_O, lambda x: x.reshape(8, 32), "is torch.float32 of shape (8, 32), but the config calls for (16, 16)"),
    (W_IN, lambda x: x.T.contiguous(), "is torch.float32 of shape (16, 24), but the config calls for"),
    (W_IN, lambda x: x * math.inf, "holds values that are not finite"),
    (W_O, lambda x: x * math.nan, "holds values that are not finite"),
    (W_QKV, lambda x: x.long(), "is torch.int64"),
]


@for_each("name, edit, says", EDITS)
def test_edited_weights_are_named(tmp_path: Path, name: str, edit: Callable, says: str) -> None:
    folder = _saved(tmp_path)
    tensors = load_file(folder / checkpoints.WEIGHTS)
    save_file(tensors | {name: edit(tensors[name])}, folder / checkpoints.WEIGHTS)
    _refused(folder, f"'{name}' {says}")
    rest = {other: x for other, x in tensors.items() if other != name}
    save_file(rest, folder / checkpoints.WEIGHTS)
    _refused(folder, "numbers, but the config calls for")
    save_file(rest | {"another": tensors[name]}, folder / checkpoints.WEIGHTS)
    with pytest.raises(CheckpointError, match=r"is missing|not part of this architecture"):
        load(folder)


@given(place=st.floats(0, 1), value=st.integers(0, 255))
def test_one_changed_byte_never_crashes(place: float, value: int) -> None:
    data = bytearray(pack(_model(n_layers=1), LETTERS, {}))
    data[int(place * (len(data) - 1))] = value
    with contextlib.suppress(CheckpointError):
        unpack(bytes(data))


def _zip(**files: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name.replace("__", "."), data)
    return buffer.getvalue()


def test_an_upload_that_is_no_model_or_is_cut_short() -> None:
    whole = pack(_model(), LETTERS, {})
    cut = [whole[:keep] for keep in (10, len(whole) // 2, len(whole) - 1)]
    for data in (b"", b"PK\x03\x04", b"\x80\x04\x95pickle", _zip(), _zip(readme__txt=b"hello"), *cut):
        with pytest.raises(CheckpointError, match="zip"):
            unpack(data)


def test_a_zip_that_was_made_again_has_its_files_in_a_folder() -> None:
    model = _model()
    with zipfile.ZipFile(io.BytesIO(pack(model, LETTERS, METRICS_VALUE))) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    within = {f"my model/{name}": data for name, data in files.items()}
    beside = {f"__MACOSX/my model/._{name}": b"\0\5" for name in files} | {
        "my model/.DS_Store": b"",
        "my model/": b"",
    }
    windows = {name.replace("/", "\\"): data for name, data in within.items()}
    for there in (within, beside | within, windows, {"README.md": b"", **files}):
        assert unpack(_zip(**there)).metrics == METRICS_VALUE
    with pytest.raises(CheckpointError, match="holds 2 models"):
        unpack(_zip(**within, **{f"another/{name}": data for name, data in files.items()}))
    with pytest.raises(CheckpointError, match=r"the zip lacks metrics\.json"):
        unpack(_zip(**{name: data for name, data in within.items() if "metrics" not in name}))


def test_a_zip_that_unpacks_to_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "MAX_ZIP_BYTES", 10_000)
    names = (checkpoints.CONFIG, checkpoints.TOKENIZER, checkpoints.METRICS)
    bomb = _zip(model__safetensors=bytes(1_000_000), **dict.fromkeys(names, b"{}"))
    assert len(bomb) < 10_000
    with pytest.raises(CheckpointError, match="unpacks to more than"):
        unpack(bomb)


def test_names_in_a_zip_cannot_lead_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CheckpointError, match="the zip lacks"):
        unpack(_zip(**{"../model__safetensors": b"", "/etc/x": b""}))
    assert not list(tmp_path.iterdir())


def test_a_state_comes_back_exactly_and_slimmed_with_its_weights_alone(tmp_path: Path) -> None:
    path, meta = tmp_path / "7.safetensors", {"run": "x", "best": 1.5}
    whole = save_state(path, STATE, meta)
    assert whole == path.stat().st_size
    for names in (STATE.tensors.keys(), ["model.embedding"], ["model.embedding"]):
        state, said = load_state(path)
        assert (state.step, state.seconds, said) == (7, 1.25, meta) and state.tensors.keys() == set(names)
        assert all(torch.equal(tensor, STATE.tensors[name]) for name, tensor in state.tensors.items())
        weights, said = load_weights(path)
        assert list(weights) == list(state.weights()) == ["embedding"] and said == meta
        assert torch.equal(weights["embedding"], STATE.tensors["model.embedding"])
        assert slim_state(path) == path.stat().st_size < whole
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@for_each("read", [load_state, load_weights, slim_state])
def test_what_is_no_snapshot_is_neither_read_nor_slimmed(
    tmp_path: Path, read: Callable[[Path], object]
) -> None:
    path = tmp_path / "7.safetensors"
    with pytest.raises(CheckpointError, match=r"^7\.safetensors is not a whole snapshot") as gone:
        read(path)
    assert str(tmp_path) not in str(gone.value), "strangers see it"
    assert not list(tmp_path.iterdir())
    save_state(path, STATE, {})
    data = path.read_bytes()
    somebody_else = save_tensors({"steps": torch.zeros(())})
    for damaged in (b"", data[:20], data[:-3], data + b"x", b"\xff" * 64, somebody_else):
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match=r"^7\.safetensors is not a whole snapshot"):
            read(path)
        assert path.read_bytes() == damaged


@for_each("read", [load_state, load_weights, slim_state])
def test_a_snapshot_that_goes_while_it_is_being_opened(
    tmp_path: Path, read: Callable[[Path], object]
) -> None:
    """The manager thins snapshots out while the worker makes them smaller: torch then raises a RuntimeError."""
    path = tmp_path / "7.safetensors"
    save_state(path, STATE, {})
    with safe_open(path, "pt") as file:
        opened = mock.MagicMock(metadata=file.metadata)
        opened.__enter__.return_value = opened
        opened.keys.side_effect = lambda: path.unlink(missing_ok=True) or list(file.keys())
        opened.get_tensor.side_effect = lambda name: torch.UntypedStorage.from_file(str(path), False, 4)
        patched = mock.patch.object(checkpoints, "safe_open", return_value=opened)
        with patched, pytest.raises(CheckpointError, match="is not a whole snapshot"):
            read(path)
    assert opened.get_tensor.called and not path.exists()


@for_each("write", [slim_state, lambda path: save_state(path, STATE, {"version": 2})])
def test_a_full_disk_leaves_the_old_snapshot_and_nothing_else(
    tmp_path: Path, write: Callable[[Path], object]
) -> None:
    path = tmp_path / "7.safetensors"
    save_state(path, STATE, {"version": 1})
    full = OSError(28, "No space left on device")
    with mock.patch.object(os, "replace", side_effect=full), pytest.raises(OSError, match="No space left"):
        write(path)
    state, meta = load_state(path)
    assert meta == {"version": 1} and state.tensors.keys() == STATE.tensors.keys()
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def a_pair() -> Seq2Seq:
    return build_pair(pair_text("reverse", 50, 5).fitted(SIZES), seed=1)


def a_classifier() -> Classifier:
    return build_classifier(TEXT.fitted(SIZES), 2, seed=1)


def test_an_encoder_decoder_and_a_classifier_come_back(tmp_path: Path) -> None:
    pair, classifier, tokenizer = a_pair(), a_classifier(), pair_text("reverse", 50, 5).tokenizer
    save(tmp_path / "a" / "b", pair, tokenizer, {"exact": 0.5}, torch.bfloat16)
    save(tmp_path, classifier, TEXT.tokenizer, {}, torch.bfloat16, labelled(classifier, TEXT.labels))
    one, other = load_pair(tmp_path / "a" / "b"), load_labels(tmp_path)
    assert one.tokenizer == tokenizer and one.metrics == {"exact": 0.5} and other.labels == ("x", "y")
    for saved, found in ((pair, one.model), (classifier, other.model)):
        assert found.config == saved.config and not found.training
        stored = dict(found.named_parameters())
        assert stored.keys() == dict(saved.named_parameters()).keys()
        for name, p in saved.named_parameters():
            assert torch.equal(stored[name], p.bfloat16().float()) and not stored[name].requires_grad


def edited(change: Callable[[dict[str, Any]], object], name: str = "config.json") -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        values = json.loads((folder / name).read_text())
        change(values)
        (folder / name).write_text(json.dumps(values))

    return edit


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


CUT = (lambda folder: cut(folder / "model.safetensors"), "damaged or cut short")
OF_PAIRS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "cut": CUT,
    "vocabulary": (edited(lambda v: v["symbols"].pop(), "tokenizer.json"), "vocab_size"),
    "symbols": (edited(lambda v: v.update(symbols=7), "tokenizer.json"), "symbols"),
    "layers": (edited(lambda v: v["decoder"].update(n_layers=2)), "missing"),
    "very many layers": (edited(lambda v: v["encoder"].update(n_layers=9999)), "at most 1,024"),
    "a field that is none": (edited(lambda v: v["encoder"].update(colour="red")), "colour"),
    "no decoder": (edited(lambda v: v.pop("decoder")), "is not a field"),
    "both causal": (edited(lambda v: v["encoder"].update(causal=True)), "causal"),
}
OF_LABELS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "cut": CUT,
    "no labels": (edited(lambda v: v.update(labels="xy")), "must list the labels"),
    "another number of labels": (edited(lambda v: v["labels"].append("z")), "the config calls for"),
    "no encoder": (edited(lambda v: v.update(encoder=3)), "int"),
    "layers": (edited(lambda v: v["encoder"].update(n_layers=2)), "missing"),
}


@for_each("kind, name", [*(("pair", name) for name in OF_PAIRS), *(("labels", name) for name in OF_LABELS)])
def test_a_touched_model_is_refused(kind: str, name: str, tmp_path: Path) -> None:
    if kind == "pair":
        save(tmp_path, a_pair(), pair_text("reverse", 50, 5).tokenizer, {})
    else:
        save(tmp_path, model := a_classifier(), TEXT.tokenizer, {}, config=labelled(model, TEXT.labels))
    load: Callable[[Path], Any] = load_pair if kind == "pair" else load_labels
    load(tmp_path)
    touch, said = (OF_PAIRS if kind == "pair" else OF_LABELS)[name]
    touch(tmp_path)
    with pytest.raises(CheckpointError, match=said):
        load(tmp_path)
