"""Encoder-decoders that others trained: a folder read whole, with how it cuts texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.data.tokenizers import UNUSED
from engine.errors import PretrainedError
from studies.costs.ledger import ledger
from studies.pairs.config import Seq2SeqConfig
from studies.pairs.seq2seq import Seq2Seq, build_pair
from studies.weights.pretrained import cache, folder, library, sources
from studies.weights.pretrained.families import PAIRS
from studies.weights.pretrained.folder import Folder
from studies.weights.pretrained.load import OpenedFile, differing, known
from studies.weights.pretrained.sources import Facts
from studies.weights.pretrained.vocabulary import PretrainedTokenizer


class OpenedPair(OpenedFile[Seq2SeqConfig, Seq2Seq]):
    """An encoder-decoder."""

    empty = staticmethod(build_pair)

    @property
    def differs(self) -> dict[str, Any]:
        c = self.config
        halves = {"encoder": differing(c.encoder), "decoder": differing(c.decoder)}
        return halves | {"tokens": (c.pad, c.begin, c.end)}

    def words(self) -> PairWords:
        assert isinstance(self.source, Folder)
        return PairWords(folder.vocabulary_of(self.source), self.config.pad, self.config.end)


@dataclass(frozen=True, eq=False)
class PairWords:
    """A published vocabulary with the words of studies.pairs.tokenizer.PairTokenizer."""

    inner: PretrainedTokenizer = field(repr=False)
    pad: int
    end: int

    def encode(self, text: str) -> list[int]:
        return self.inner.encode(text)

    def shown(self, ids: Sequence[int]) -> tuple[str, ...]:
        """Returns each token as text, signs by their names. A blank before a word is its token's."""
        tokens = self.inner.tokens
        return tuple(tokens[i].decode("utf-8", "replace") if i < len(tokens) else UNUSED for i in ids)

    def decode(self, ids: Sequence[int]) -> str:
        """Returns the text of ids up to the first end, without padding and rows that no token has."""
        over = list(ids).index(self.end) if self.end in ids else len(ids)
        return self.inner.decode([i for i in ids[:over] if i != self.pad and i < self.inner.vocab_size])


@dataclass(frozen=True, eq=False)
class PretrainedPair:
    """An encoder-decoder that others trained. `facts` is None for one that is not known by name."""

    name: str
    model: Seq2Seq = field(repr=False)
    tokenizer: PairWords = field(repr=False)
    facts: Facts | None


def open_pair(path: Path | str) -> OpenedPair:
    """Opens a folder, nothing allocated. Raises PretrainedError for whatever its reader refuses."""
    source = folder.read(path)
    family, facts = known(source, PAIRS)
    return OpenedPair(source, family, family.config(facts), facts)


def available() -> list[str]:
    """Returns the names of those of `sources.available` that are encoder-decoders, by their config.json."""
    return [name for name in sources.available() if is_pair(sources.find(name))]


def is_pair(path: Path | None) -> bool:
    """True if a folder says that it holds an encoder and a decoder."""
    if path is None or not path.is_dir():
        return False
    try:
        facts = folder.read_json(path / folder.CONFIG)
    except PretrainedError:
        return False
    return facts.get("model_type") in PAIRS and facts.get("is_encoder_decoder") is not False


def load_pair(name: str, largest: int) -> PretrainedPair:
    """Loads an encoder-decoder, as `studies.weights.pretrained.library.load` loads a decoder."""
    path = library.located(name, None)
    opened = open_pair(path)
    c = opened.config
    library.check_size(name, ledger(c.decoder, c.encoder).total, largest)
    words = opened.words()
    library.check_rows(name, words.inner, c.decoder.vocab_size)
    model = opened.model(cache.weights(opened, path))
    return PretrainedPair(name, model, words, sources.KNOWN.get(name))
