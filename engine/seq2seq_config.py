"""What an encoder-decoder is: two configurations and three tokens. No torch here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from engine.config import ModelConfig, ResolvedConfig
from engine.errors import ConfigError

WIRED = ("pre", "post")  # wirings that have a place for cross-attention


@dataclass(frozen=True)
class Seq2SeqConfig:
    """An encoder that reads a source, and a decoder that writes a target (Vaswani et al. 2017).

    Both have the one embedding; whatever else is theirs, each says for itself. `encoder.context` is the
    longest source, `decoder.context` the longest target, in tokens. `pad` fills up the shorter sources of a
    batch, `begin` is what the decoder reads first, `end` what it writes last.

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
        """An encoder and a decoder of the same sizes."""
        encoder = replace(both, causal=False, output_head="none")
        return cls(encoder, replace(both, causal=True), pad, begin, end)

    def resolved(self) -> ResolvedSeq2Seq:
        """The same with every derived field filled in."""
        return ResolvedSeq2Seq(
            self.encoder.resolved(), self.decoder.resolved(), self.pad, self.begin, self.end
        )

    def validate(self) -> Self:
        """Returns itself when it can be built; raises ConfigError naming the first field that is wrong."""
        for each in (self.encoder, self.decoder):
            each.validate()
        _check_together(self.encoder, self.decoder)
        for name in ("pad", "begin", "end"):
            value = getattr(self, name)
            if not 0 <= value < self.decoder.vocab_size:
                raise ConfigError(
                    name, value, f"must be a token of the vocabulary, 0 to {self.decoder.vocab_size - 1}"
                )
        if self.end in (self.pad, self.begin):
            raise ConfigError("end", self.end, "must be a token of its own: it says that a target is over")
        return self

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; `from_dict` is its inverse."""
        ids = {name: getattr(self, name) for name in ("pad", "begin", "end")}
        return {"encoder": self.encoder.to_dict(), "decoder": self.decoder.to_dict()} | ids

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Raises ConfigError for a name that is not a field, and for one that is missing."""
        wanted = ("encoder", "decoder", "pad", "begin", "end")
        if set(values) != set(wanted):
            raise ConfigError("Seq2SeqConfig", sorted(values), f"must have the fields {', '.join(wanted)}")
        encoder, decoder = (ModelConfig.from_dict(values[name]) for name in ("encoder", "decoder"))
        return cls(encoder, decoder, *(values[name] for name in ("pad", "begin", "end")))


@dataclass(frozen=True)
class ResolvedSeq2Seq(Seq2SeqConfig):
    """A Seq2SeqConfig in which nothing is left to be derived: what a model is built from, and carries."""

    encoder: ResolvedConfig
    decoder: ResolvedConfig


def _check_together(encoder: ModelConfig, decoder: ModelConfig) -> None:
    for wrong, field, value, allowed in (
        (encoder.causal, "causal", True, "must be False for the encoder: it reads its source both ways"),
        (not decoder.causal, "causal", False, "must be True for the decoder: it writes from left to right"),
        (
            encoder.output_head != "none",
            "output_head",
            encoder.output_head,
            "must be 'none' for the encoder: the decoder reads its vectors",
        ),
        (decoder.output_head == "none", "output_head", "none", "leaves the decoder nothing to write with"),
        (
            decoder.wiring not in WIRED,
            "wiring",
            decoder.wiring,
            f"has no place for cross-attention; {' and '.join(WIRED)} have one",
        ),
    ):
        if wrong:
            raise ConfigError(field, value, allowed)
    for name in ("vocab_size", "d_model"):
        own, other = getattr(encoder, name), getattr(decoder, name)
        if own != other:
            raise ConfigError(
                name, own, f"must be that of the decoder, {other}: encoder and decoder share one embedding"
            )
    for each in (encoder, decoder):
        for name in ("token_types", "window", "pooler"):
            if getattr(each, name):
                raise ConfigError(name, getattr(each, name), "has no place in an encoder-decoder")
