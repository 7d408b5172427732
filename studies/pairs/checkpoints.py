"""Trained encoder-decoders and classifiers on disk: the four files of `engine.checkpoints`.

The configuration says which kind of model it is: one with a `decoder` is an encoder-decoder, one with
`labels` a classifier, any other a Transformer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from torch import Tensor

from engine.checkpoints import (
    CONFIG,
    FILES,
    TOKENIZER,
    WEIGHTS,
    Checkpoint,
    check_sizes,
    filled,
    json_object,
    read,
)
from engine.config import ModelConfig
from engine.data.tokenizers.stored import tokenizer_from_dict
from engine.errors import CheckpointError, GlassformerError
from engine.model import Transformer, build
from engine.parts.registry import HEALTHY, parts_of
from studies.pairs.config import Seq2SeqConfig
from studies.pairs.seq2seq import Classifier, Seq2Seq, build_classifier, build_pair
from studies.pairs.tokenizer import PairTokenizer


@dataclass(frozen=True)
class PairCheckpoint:
    """A trained encoder-decoder. `metrics` says how it was trained and what it reached."""

    model: Seq2Seq
    tokenizer: PairTokenizer
    metrics: dict[str, Any]


@dataclass(frozen=True)
class LabelCheckpoint:
    """A trained classifier; `labels` by the index of their logit."""

    model: Classifier
    tokenizer: PairTokenizer
    labels: tuple[str, ...]
    metrics: dict[str, Any]

    @property
    def config(self) -> dict[str, Any]:
        """The contents of its config.json, but for its parts."""
        return labelled(self.model, self.labels)


AnyCheckpoint = Checkpoint | PairCheckpoint | LabelCheckpoint
K = TypeVar("K", PairCheckpoint, LabelCheckpoint)


def labelled(model: Classifier, labels: tuple[str, ...]) -> dict[str, Any]:
    """Returns what stands in the config.json of a classifier: its encoder, and the labels by index."""
    return {"encoder": model.config.to_dict(), "labels": list(labels)}


def load_pair(folder: Path | str) -> PairCheckpoint:
    """Reads an encoder-decoder, as `engine.checkpoints.load` reads a Transformer."""
    return _load_as(PairCheckpoint, "an encoder-decoder", folder)


def load_labels(folder: Path | str) -> LabelCheckpoint:
    """Reads a classifier, as `engine.checkpoints.load` reads a Transformer."""
    return _load_as(LabelCheckpoint, "a classifier", folder)


def _load_as(kind: type[K], called: str, folder: Path | str) -> K:
    where, files = Path(folder).name, {name: read(Path(folder) / name) for name in FILES}
    config, tokenizer, metrics = (json_object(files[name], name, where) for name in FILES[1:])
    try:
        tensors = load_tensors(files[WEIGHTS])
    except (SafetensorError, ValueError, KeyError) as error:
        raise CheckpointError(f"{where}: {WEIGHTS} is damaged or cut short ({error})") from error
    result = checkpoint_of(config, tokenizer, tensors, metrics, where)
    if not isinstance(result, kind):
        raise CheckpointError(f"{where}: {CONFIG} is not that of {called}")
    return result


def checkpoint_of(
    config: Mapping[str, Any],
    tokenizer: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    metrics: dict[str, Any],
    where: str,
) -> AnyCheckpoint:
    """Returns a trained model of any kind, built from the contents of its files or of a snapshot. Raises
    CheckpointError, beginning with `where`, for the first thing that does not fit.
    """
    values = dict(config)
    try:
        parts = parts_of(str(values.pop("parts", HEALTHY.name)))
        symbols = tokenizer_from_dict(tokenizer)
        spare = 0 if isinstance(symbols, PairTokenizer) else 1  # an encoder has one id more, its mask
        model: Transformer | Seq2Seq | Classifier
        if "decoder" in values:
            pair = Seq2SeqConfig.from_dict(values).validate()
            for each in (pair.encoder, pair.decoder):
                check_sizes(where, symbols, each, spare)
            model = build_pair(pair, device="meta", parts=parts)
        else:
            single = ModelConfig.from_dict(values["encoder"] if "labels" in values else values).validate()
            check_sizes(where, symbols, single, spare)
            if "labels" in values:
                labels = values["labels"]
                if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
                    raise CheckpointError(f"{CONFIG} must list the labels")
                model = build_classifier(single, len(labels), device="meta", parts=parts)
            else:
                model = build(single, device="meta", parts=parts)
    except (GlassformerError, TypeError, AttributeError, KeyError) as error:
        raise CheckpointError(f"{where}: {error}") from error
    filled(model, tensors, where)
    parts.mode(model, False)
    model.requires_grad_(False)
    if isinstance(model, Transformer):
        return Checkpoint(model, model.config, symbols, metrics)
    if not isinstance(symbols, PairTokenizer):
        raise CheckpointError(f"{where}: {TOKENIZER} has no symbols to begin and to end with")
    if isinstance(model, Seq2Seq):
        return PairCheckpoint(model, symbols, metrics)
    return LabelCheckpoint(model, symbols, tuple(labels), metrics)
