"""A tokenizer as the `tokenizers` library writes it (tokenizer.json): `AutoTokenizer` then gives our ids."""

from __future__ import annotations

import json
from typing import Any

from engine.data.tokenizers import Tokenizer
from engine.data.tokenizers.bpe import WORDS, BpeTokenizer
from engine.data.tokenizers.char import CharTokenizer
from engine.errors import TokenizerError
from studies.weights.pretrained.pieces import letters
from studies.weights.pretrained.vocabulary import PretrainedTokenizer

MASK = "[MASK]"
Json = dict[str, Any]


def tokenizer_json(tokenizer: Tokenizer, vocab_size: int) -> str:
    """Returns the file's text, with a mask last where the model has one row more. Raises TokenizerError for a
    tokenizer that the format cannot say exactly.
    """
    if isinstance(tokenizer, PretrainedTokenizer):  # a row that it lacks is no mask: its table was filled up
        return tokenizer.inner.to_str(pretty=True)
    mask = [_special(MASK, tokenizer.vocab_size)] if vocab_size == tokenizer.vocab_size + 1 else []
    if isinstance(tokenizer, CharTokenizer):
        values: Json = _characters(tokenizer)
    elif isinstance(tokenizer, BpeTokenizer):
        values = _bpe(tokenizer)
    else:
        raise TokenizerError("this kind of tokenizer cannot be written as tokenizer.json")
    return json.dumps(values | ({"added_tokens": mask} if mask else {}), ensure_ascii=False, indent=1)


def settings_json(tokenizer: Tokenizer) -> str:
    """Returns tokenizer_config.json, which says how tokenizer.json is opened."""
    values: Json = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
    if isinstance(tokenizer, PretrainedTokenizer):
        values |= tokenizer.names
        values |= {"chat_template": tokenizer.template} if tokenizer.template else {}
    return json.dumps(values, indent=1)


def _characters(tokenizer: CharTokenizer) -> Json:
    """Every character is a word of its own."""
    _whole(tokenizer.alphabet)
    cut = {"type": "Split", "pattern": {"Regex": r"[\s\S]"}, "behavior": "Isolated", "invert": False}
    known = {character: i for i, character in enumerate(tokenizer.alphabet)}
    # No character has that many letters: one that is unknown stays an error, as it is here.
    return _frame({"type": "WordLevel", "vocab": known, "unk_token": "<unknown>"}, cut, {"type": "Fuse"})


def _bpe(tokenizer: BpeTokenizer) -> Json:
    """Lists every pair that makes a token, in the order of tokens: there only listed pairs merge."""
    words = tokenizer.split == "words"
    if tokenizer.level == "byte":
        spelled = [letters(token) for token in tokenizer.tokens]
        before: Json | None = _level(words)
        after: Json = _level(words)
    else:
        spelled = [token.decode("utf-8", "surrogatepass") for token in tokenizer.tokens]
        _whole("".join(spelled))
        cut = {"type": "Split", "pattern": {"Regex": WORDS}, "behavior": "Isolated", "invert": False}
        before, after = cut if words else None, {"type": "Fuse"}
    known = {token: i for i, token in enumerate(spelled)}
    pairs = [
        [token[:i], token[i:]]
        for token in spelled
        for i in range(1, len(token))
        if token[:i] in known and token[i:] in known
    ]
    return _frame({"type": "BPE", "vocab": known, "merges": pairs}, before, after)


def _level(words: bool) -> Json:
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": words}


def _frame(model: Json, before: Json | None, after: Json) -> Json:
    empty = ("truncation", "padding", "normalizer", "post_processor")
    return {
        "version": "1.0",
        **dict.fromkeys(empty),
        "added_tokens": [],
        "pre_tokenizer": before,
        "decoder": after,
        "model": model,
    }


def _special(name: str, i: int) -> Json:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": i, "content": name, **flags, "special": True}


def _whole(text: str) -> None:
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise TokenizerError("its alphabet holds half characters, which tokenizer.json cannot")
