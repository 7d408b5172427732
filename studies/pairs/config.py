"""Configuration of an encoder-decoder: two Transformers' and three tokens. No torch here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from engine.config import ModelConfig, ResolvedConfig
from engine.errors import ConfigError
from engine.presets import Preset

CROSS_WIRINGS = ("pre", "post")  # those that have a place for cross-attention


@dataclass(frozen=True)
class Seq2SeqConfig:
    """An encoder that reads a source, and a decoder that writes a target (Vaswani et al. 2017).

    They share one embedding; every other field is set for each. `encoder.context` is the longest source,
    `decoder.context` the longest target, in tokens. `pad` fills up the shorter sources of a batch, `begin` is
    the decoder's first input, `end` its last output.

    >>> config = Seq2SeqConfig.of(ModelConfig(vocab_size=20, n_layers=2))
    >>> config.encoder.causal, config.decoder.causal, config.encoder.output_head
    (False, True, 'none')
    """

    encoder: ModelConfig
    decoder: ModelConfig
    pad: int = 0
    begin: int = 1
    end: int = 2

    @classmethod
    def of(cls, both: ModelConfig, pad: int = 0, begin: int = 1, end: int = 2) -> Self:
        """Returns an encoder and a decoder of the same sizes."""
        encoder = replace(both, causal=False, output_head="none")
        return cls(encoder, replace(both, causal=True), pad, begin, end)

    def resolved(self) -> ResolvedSeq2Seq:
        """Returns the same with every derived field filled in."""
        return ResolvedSeq2Seq(
            self.encoder.resolved(), self.decoder.resolved(), self.pad, self.begin, self.end
        )

    def validate(self) -> Self:
        """Returns itself if it can be built; raises ConfigError naming the first field that is wrong."""
        for each in (self.encoder, self.decoder):
            each.validate()
        _check_pair(self.encoder, self.decoder)
        for name in ("pad", "begin", "end"):
            value = getattr(self, name)
            if not 0 <= value < self.decoder.vocab_size:
                raise ConfigError(
                    name, value, f"must be a token of the vocabulary, 0 to {self.decoder.vocab_size - 1}"
                )
        if self.end in (self.pad, self.begin):
            raise ConfigError("end", self.end, "must be a separate token: it marks the end of a target")
        return self

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values, ready for JSON; `from_dict` is its inverse."""
        ids = {name: getattr(self, name) for name in ("pad", "begin", "end")}
        return {"encoder": self.encoder.to_dict(), "decoder": self.decoder.to_dict()} | ids

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Reads plain values. Raises ConfigError for a name that is no field, and for a missing one."""
        wanted = ("encoder", "decoder", "pad", "begin", "end")
        if set(values) != set(wanted):
            raise ConfigError("Seq2SeqConfig", sorted(values), f"must have the fields {', '.join(wanted)}")
        encoder, decoder = (ModelConfig.from_dict(values[name]) for name in ("encoder", "decoder"))
        return cls(encoder, decoder, *(values[name] for name in ("pad", "begin", "end")))


@dataclass(frozen=True)
class ResolvedSeq2Seq(Seq2SeqConfig):
    """A Seq2SeqConfig without derived fields: a model is built from it, and carries it."""

    encoder: ResolvedConfig
    decoder: ResolvedConfig


def _check_pair(encoder: ModelConfig, decoder: ModelConfig) -> None:
    for wrong, name, value, allowed in (
        (encoder.causal, "causal", True, "must be False for the encoder: it reads in both directions"),
        (not decoder.causal, "causal", False, "must be True for the decoder: it writes from left to right"),
        (
            encoder.output_head != "none",
            "output_head",
            encoder.output_head,
            "must be 'none' for the encoder: the decoder reads its vectors",
        ),
        (decoder.output_head == "none", "output_head", "none", "leaves the decoder nothing to write with"),
        (
            decoder.wiring not in CROSS_WIRINGS,
            "wiring",
            decoder.wiring,
            f"does not support cross-attention; {' and '.join(CROSS_WIRINGS)} do",
        ),
    ):
        if wrong:
            raise ConfigError(name, value, allowed)
    for name in ("vocab_size", "d_model"):
        ours, other = getattr(encoder, name), getattr(decoder, name)
        if ours != other:
            raise ConfigError(
                name, ours, f"must equal the decoder's, {other}: encoder and decoder share one embedding"
            )
    for each in (encoder, decoder):
        for name in ("token_types", "window", "pooler"):
            if getattr(each, name):
                raise ConfigError(name, getattr(each, name), "is not supported in an encoder-decoder")


def seq2seq_config(preset: Preset) -> Seq2SeqConfig | None:
    """Returns a preset's encoder and decoder together; None where it has no encoder."""
    return None if preset.encoder is None else Seq2SeqConfig(preset.encoder, preset.model)
