"""Small vocabularies of every kind, learned here, and texts that are hard to cut."""

from __future__ import annotations

import json
from typing import Any

import pytest

tokenizers = pytest.importorskip("tokenizers")
HAS_TRANSFORMERS = "transformers is not installed (requirements-dev.txt has it)"
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
READ = [
    "the cat sat on the mat, and the rat ate the hat; 12 123 1999 people play, played, playing. " * 5,
    "Où est le café ? Naïve façades. Über den Wolken. " * 5,
    "def f(x):\n    return x  # ▁ no\n" * 5,
]
TEXTS = [
    "The capital of France is Paris.",
    "the cat plays on the playing field",
    "don't  stop\n\n\t12345 + 6 = 007\r\n",
    "ünïcödé 語言 🙂👩‍👩‍👧 \u202eabc\u0000\u0301 e\u0301",
    "   ",
    " leading, and trailing   ",
    "\n\n\n   \t\t x",
    "",
    "<|im_start|>user <|endoftext|>",
    "<s> </s> <unk> <pad> <bos> <0x0A> [CLS] [MASK] <extra_id_0>",
    "▁the ## ##ing _",
    "a" * 300,
    "zero\u200dwidth\u200bjoin\ufeffers\u00ad\u2028line",
    "ﬁne ½ ＡＢＣ ①",  # noqa: RUF001
    "half \ud83d a character",
    " unbelievable\xa0words",
]


def clean(text: str) -> str:
    """Without halves of characters, as the vocabularies here read it."""
    return text.replace("\ud83d", "\ufffd")


def trained(digits: bool, specials: bool = True) -> Any:
    """Byte-level BPE."""
    before = tokenizers.pre_tokenizers
    inner = tokenizers.Tokenizer(tokenizers.models.BPE())
    level = before.ByteLevel(add_prefix_space=False)
    inner.pre_tokenizer = before.Sequence([before.Digits(individual_digits=True), level]) if digits else level
    inner.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=500,
        special_tokens=SPECIALS if specials else [],
        initial_alphabet=before.ByteLevel.alphabet(),
        show_progress=False,
    )
    inner.train_from_iterator(READ, trainer)
    return inner


def wordpiece() -> Any:
    transformers = pytest.importorskip("transformers", reason=HAS_TRANSFORMERS)
    inner = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    inner.normalizer = tokenizers.normalizers.BertNormalizer()
    inner.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = tokenizers.trainers.WordPieceTrainer(vocab_size=300, special_tokens=names, show_progress=False)
    inner.train_from_iterator(READ, trainer)
    return transformers.BertTokenizer(vocab=inner.get_vocab())


def unigram() -> Any:
    transformers = pytest.importorskip("transformers", reason=HAS_TRANSFORMERS)
    inner = tokenizers.Tokenizer(tokenizers.models.Unigram())
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    trainer = tokenizers.trainers.UnigramTrainer(
        vocab_size=200,
        special_tokens=["<pad>", "</s>", "<unk>"],
        unk_token="<unk>",
        show_progress=False,
    )
    inner.train_from_iterator(READ, trainer)
    scores = [tuple(pair) for pair in json.loads(inner.to_str())["model"]["vocab"]]
    return transformers.T5Tokenizer(vocab=scores + [(f"<extra_id_{i}>", 0.0) for i in range(99, -1, -1)])
