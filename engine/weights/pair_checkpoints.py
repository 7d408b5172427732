"""Encoder-decoders and classifiers on disk: the four files of engine/weights/checkpoints.py, read as
strictly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from torch import Tensor, nn

from engine.config import ModelConfig, Seq2SeqConfig
from engine.data.tokenizers.pairs import PairTokenizer
from engine.errors import CheckpointError, GlassformerError
from engine.parts.registry import HEALTHY, Parts
from engine.seq2seq import Classifier, Seq2Seq, build_classifier, build_pair
from engine.weights.checkpoints import (
    CONFIG,
    MAX_LAYERS,
    METRICS,
    TOKENIZER,
    WEIGHTS,
    files_of,
    filled,
    json_object,
    read,
    write_files,
    zipped,
)

M = TypeVar("M", bound=nn.Module)


@dataclass(frozen=True)
class PairCheckpoint:
    """A trained encoder-decoder. `metrics` says how it was trained and what it reached."""

    model: Seq2Seq
    tokenizer: PairTokenizer
    metrics: dict[str, Any]


@dataclass(frozen=True)
class LabelCheckpoint:
    """A trained classifier; `labels` by the place of their logit."""

    model: Classifier
    tokenizer: PairTokenizer
    labels: tuple[str, ...]
    metrics: dict[str, Any]


def save_pair(folder: Path, model: Seq2Seq, tokenizer: PairTokenizer, metrics: Mapping[str, Any]) -> None:
    """Writes the four files, each whole or not at all; weights as bfloat16."""
    write_files(folder, files_of(model, model.config.to_dict(), tokenizer, metrics, torch.bfloat16))


def save_labels(
    folder: Path,
    model: Classifier,
    labels: tuple[str, ...],
    tokenizer: PairTokenizer,
    metrics: Mapping[str, Any],
) -> None:
    """Saves a classifier with its labels, as `save_pair` saves an encoder-decoder."""
    write_files(folder, files_of(model, _labelled(model, labels), tokenizer, metrics, torch.bfloat16))


def load_pair(folder: Path | str) -> PairCheckpoint:
    """Reads a folder into a float32 model on the CPU, in evaluation mode.

    Raises CheckpointError when a file is missing, cut short or edited, or is not of this kind of model.
    """
    config, tokenizer, metrics = _read(Path(folder))
    try:
        parsed = Seq2SeqConfig.from_dict(config).validate()
    except (GlassformerError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{folder}: {error}") from error
    _check_sizes(folder, tokenizer, parsed.encoder, parsed.decoder)
    model = build_pair(parsed, device="meta")
    return PairCheckpoint(_with_weights(model, Path(folder)), tokenizer, metrics)


def load_labels(folder: Path | str) -> LabelCheckpoint:
    """Loads a classifier, as `load_pair` loads an encoder-decoder."""
    config, tokenizer, metrics = _read(Path(folder))
    labels = config.get("labels")
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise CheckpointError(f"{folder}: {CONFIG} must list the labels")
    try:
        parsed = ModelConfig.from_dict(config.get("encoder", {})).validate()
        _check_sizes(folder, tokenizer, parsed)
        model = build_classifier(parsed, len(labels), device="meta")
    except (GlassformerError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{folder}: {error}") from error
    return LabelCheckpoint(_with_weights(model, Path(folder)), tokenizer, tuple(labels), metrics)


def pair_from(
    values: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    metrics: dict[str, Any],
    parts: Parts = HEALTHY,
) -> PairCheckpoint:
    """Returns an encoder-decoder from a snapshot's `model` and `tokenizer`, and its parameters. Raises
    CheckpointError naming the first that does not fit.
    """
    model = build_pair(Seq2SeqConfig.from_dict(values["model"]), device="meta", parts=parts)
    filled(model, tensors, "this snapshot")
    tokenizer = PairTokenizer.from_dict(values["tokenizer"])
    parts.mode(model, False)
    return PairCheckpoint(model.requires_grad_(False), tokenizer, metrics)


def labels_from(
    values: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    metrics: dict[str, Any],
    parts: Parts = HEALTHY,
) -> LabelCheckpoint:
    """Builds a classifier with its `labels` from the contents of a file, as `pair_from`."""
    config, labels = ModelConfig.from_dict(values["model"]), tuple(values["labels"])
    model = build_classifier(config, len(labels), device="meta", parts=parts)
    filled(model, tensors, "this snapshot")
    tokenizer = PairTokenizer.from_dict(values["tokenizer"])
    parts.mode(model, False)
    return LabelCheckpoint(model.requires_grad_(False), tokenizer, labels, metrics)


def pack_files(checkpoint: PairCheckpoint | LabelCheckpoint) -> bytes:
    """Returns the four files that `load_pair` or `load_labels` reads, as one zip for a download; float32."""
    if isinstance(checkpoint, LabelCheckpoint):
        config = _labelled(checkpoint.model, checkpoint.labels)
    else:
        config = checkpoint.model.config.to_dict()
    return zipped(files_of(checkpoint.model, config, checkpoint.tokenizer, checkpoint.metrics, torch.float32))


def _labelled(model: Classifier, labels: tuple[str, ...]) -> dict[str, Any]:
    """Returns the config entries of a classifier."""
    return {"encoder": model.config.to_dict(), "labels": list(labels)}


def _read(folder: Path) -> tuple[dict[str, Any], PairTokenizer, dict[str, Any]]:
    """(config, tokenizer, metrics)."""
    config, values, metrics = (
        json_object(read(folder / name), name, str(folder)) for name in (CONFIG, TOKENIZER, METRICS)
    )
    try:
        return config, PairTokenizer.from_dict(values), metrics
    except (GlassformerError, TypeError) as error:
        raise CheckpointError(f"{folder}: {error}") from error


def _check_sizes(folder: Path | str, tokenizer: PairTokenizer, *configs: ModelConfig) -> None:
    for config in configs:
        if config.vocab_size != tokenizer.vocab_size:
            raise CheckpointError(
                f"{folder}: the config has vocab_size {config.vocab_size}, but the tokenizer knows"
                f" {tokenizer.vocab_size} tokens"
            )
        if config.n_layers > MAX_LAYERS:
            raise CheckpointError(
                f"{folder}: n_layers = {config.n_layers:,}; at most {MAX_LAYERS:,} are read"
            )


def _with_weights(model: M, folder: Path) -> M:
    try:
        tensors = load_tensors(read(folder / WEIGHTS))
    except (SafetensorError, ValueError, KeyError) as error:
        raise CheckpointError(f"{folder}: {WEIGHTS} is damaged or cut short ({error})") from error
    filled(model, tensors, str(folder))
    return model.eval().requires_grad_(False)
