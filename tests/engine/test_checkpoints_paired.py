"""Encoder-decoders and classifiers on disk: what was saved comes back, and what was touched is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.checkpoints_paired import load_labels, load_pair, save_labels, save_pair
from engine.classifier import Classifier, build_classifier
from engine.config import ModelConfig
from engine.errors import CheckpointError
from engine.paired import Labelled, LabelledText
from engine.paired_data import pair_text
from engine.seq2seq import Seq2Seq, build_pair
from engine.tokenizers.paired import PairTokenizer
from tests.engine.cases import for_each

SIZES = ModelConfig(d_model=16, n_layers=1, n_heads=2, dropout=0.5)
TOLD = (Labelled("abc", "x"), Labelled("dab", "y"))
TEXT = LabelledText("t", "T", PairTokenizer.train(["abcd"]), ("x", "y"), TOLD, (Labelled("cab", "x"),))


def a_pair() -> Seq2Seq:
    return build_pair(pair_text("reverse", 50, 5).fitted(SIZES), seed=1)


def a_classifier() -> Classifier:
    return build_classifier(TEXT.fitted(SIZES), 2, seed=1)


def rounded(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: p.detach().bfloat16().float() for name, p in model.named_parameters()}


def test_an_encoder_decoder_comes_back(tmp_path: Path) -> None:
    model, text = a_pair(), pair_text("reverse", 50, 5)
    save_pair(tmp_path / "a" / "b", model, text.tokenizer, {"exact": 0.5})
    found = load_pair(tmp_path / "a" / "b")
    assert found.model.config == model.config and found.tokenizer == text.tokenizer
    assert found.metrics == {"exact": 0.5} and not found.model.training
    assert not any(p.requires_grad for p in found.model.parameters())
    stored = dict(found.model.named_parameters())
    assert stored.keys() == rounded(model).keys()
    assert all(torch.equal(stored[name], value) for name, value in rounded(model).items())


def test_a_classifier_comes_back(tmp_path: Path) -> None:
    model = a_classifier()
    save_labels(tmp_path, model, TEXT.labels, TEXT.tokenizer, {})
    found = load_labels(tmp_path)
    assert found.labels == ("x", "y") and found.model.config == model.config
    assert not found.model.training  # no dropout: the same twice
    texts = TEXT.rows["train"].texts
    assert torch.equal(found.model(texts), found.model(texts))
    assert all(torch.equal(dict(found.model.named_parameters())[n], v) for n, v in rounded(model).items())


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
    "no decoder": (edited(lambda v: v.pop("decoder")), "must have the fields"),
    "both causal": (edited(lambda v: v["encoder"].update(causal=True)), "causal"),
}
OF_LABELS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "cut": CUT,
    "no labels": (edited(lambda v: v.pop("labels")), "must list the labels"),
    "another number of labels": (edited(lambda v: v["labels"].append("z")), "the config calls for"),
    "no encoder": (edited(lambda v: v.update(encoder=3)), "int"),
    "layers": (edited(lambda v: v["encoder"].update(n_layers=2)), "missing"),
}


@for_each("kind, name", [*(("pair", name) for name in OF_PAIRS), *(("labels", name) for name in OF_LABELS)])
def test_a_touched_model_is_refused(kind: str, name: str, tmp_path: Path) -> None:
    if kind == "pair":
        save_pair(tmp_path, a_pair(), pair_text("reverse", 50, 5).tokenizer, {})
    else:
        save_labels(tmp_path, a_classifier(), TEXT.labels, TEXT.tokenizer, {})
    load: Callable[[Path], Any] = load_pair if kind == "pair" else load_labels
    load(tmp_path)
    touch, said = (OF_PAIRS if kind == "pair" else OF_LABELS)[name]
    touch(tmp_path)
    with pytest.raises(CheckpointError, match=said):
        load(tmp_path)
