"""Vocabularies that are not byte-level: BERT's WordPiece, T5's Unigram, the BPE of LLaMA 2 and Gemma with its
bytes. Small ones are learned here, handed to transformers' own tokenizers, saved, and read back.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.errors import PretrainedError
from engine.pretrained import folder, vocabulary
from engine.pretrained.vocabulary import PretrainedTokenizer

tokenizers = pytest.importorskip("tokenizers")
transformers = pytest.importorskip(
    "transformers", reason="transformers is not installed (requirements-dev.txt has it)"
)
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
    "<s> </s> <unk> <pad> <bos> <0x0A> [CLS] [MASK] <extra_id_0>",
    "▁the ## ##ing _",
    "a" * 300,
    "zero\u200dwidth\u200bjoin\ufeffers\u00ad\u2028line",
    "ﬁne ½ ＡＢＣ ①",  # noqa: RUF001
    "half \ud83d a character",
]


def wordpiece() -> Any:
    inner = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    inner.normalizer = tokenizers.normalizers.BertNormalizer()
    inner.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = tokenizers.trainers.WordPieceTrainer(vocab_size=300, special_tokens=names, show_progress=False)
    inner.train_from_iterator(READ, trainer)
    return transformers.BertTokenizer(vocab=inner.get_vocab())


def unigram() -> Any:
    inner = tokenizers.Tokenizer(tokenizers.models.Unigram())
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    names = ["<pad>", "</s>", "<unk>"]
    trainer = tokenizers.trainers.UnigramTrainer(
        vocab_size=200, special_tokens=names, unk_token="<unk>", show_progress=False
    )
    inner.train_from_iterator(READ, trainer)
    scores = [tuple(pair) for pair in json.loads(inner.to_str())["model"]["vocab"]]
    scores += [(f"<extra_id_{i}>", 0.0) for i in range(99, -1, -1)]
    return transformers.T5Tokenizer(vocab=scores)


def spelled(names: list[str]) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Vocabulary and merges of a BPE over `▁` for blanks, with a token for every byte."""
    inner = tokenizers.Tokenizer(tokenizers.models.BPE())
    inner.normalizer = tokenizers.normalizers.Replace(" ", "▁")
    every = [*names, *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=500, special_tokens=every, show_progress=False)
    inner.train_from_iterator(READ, trainer)
    return inner.get_vocab(), [tuple(pair) for pair in json.loads(inner.to_str())["model"]["merges"]]


def llama() -> Any:
    vocab, merges = spelled(["<unk>", "<s>", "</s>"])
    return transformers.LlamaTokenizer(vocab=vocab, merges=merges)


def old_llama() -> Any:
    """As the files of LLaMA 2 hold it: blanks are replaced by the normaliser."""
    vocab, merges = spelled(["<unk>", "<s>", "</s>"])
    inner = tokenizers.Tokenizer(
        tokenizers.models.BPE(
            vocab=vocab, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True
        )
    )
    inner.normalizer = tokenizers.normalizers.Sequence(
        [tokenizers.normalizers.Prepend("▁"), tokenizers.normalizers.Replace(" ", "▁")]
    )
    steps = tokenizers.decoders
    inner.decoder = steps.Sequence(
        [steps.Replace("▁", " "), steps.ByteFallback(), steps.Fuse(), steps.Strip(" ", 1, 0)]
    )
    inner.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", vocab["<s>"])]
    )
    names = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=inner, **names)


def gemma() -> Any:
    vocab, merges = spelled(["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"])
    return transformers.GemmaTokenizer(vocab=vocab, merges=merges)


KINDS = {"bert": wordpiece, "t5": unigram, "llama": llama, "llama 2": old_llama, "gemma": gemma}
SPELLED = ("llama", "llama 2", "gemma")


@pytest.fixture(params=KINDS)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Any, PretrainedTokenizer]:
    """A kind, transformers' tokenizer, and ours of the files that it saves."""
    theirs = KINDS[request.param]()
    theirs.chat_template = (
        "{{ bos_token }}{% for m in messages %}{{ m['content'] }}{% endfor %}{{ eos_token }}"
    )
    theirs.save_pretrained(tmp_path)
    return request.param, theirs, folder.vocabulary_of(folder.Folder(tmp_path, {}, {}, {}))


def clean(text: str) -> str:
    return text.replace("\ud83d", "\ufffd")


def test_the_ids_are_those_of_transformers(pair: tuple[str, Any, PretrainedTokenizer]) -> None:
    _, theirs, ours = pair
    for text in TEXTS:
        expected = theirs(clean(text), split_special_tokens=True, add_special_tokens=False)["input_ids"]
        assert ours.encode(text) == expected, text
        framed = theirs(clean(text), split_special_tokens=True)["input_ids"]
        assert ours.framed(text) == framed, text
        assert ours.decode(expected) == theirs.decode(expected, clean_up_tokenization_spaces=False), text
    assert ours.vocab_size == len(theirs) == len(ours.tokens)
    assert set(ours.special) == set(theirs.all_special_tokens)


def test_what_is_typed_is_never_a_special_token(pair: tuple[str, Any, PretrainedTokenizer]) -> None:
    kind, theirs, ours = pair
    if kind == "t5":
        return  # its pieces hold the names of its special tokens, at transformers as here
    typed = set(ours.encode("".join(ours.special)))
    lost = theirs.unk_token_id
    assert not typed & (set(ours.special.values()) - {lost}), kind


def test_tokens_stand_for_bytes(pair: tuple[str, Any, PretrainedTokenizer]) -> None:
    """Side by side they are the text, but for what the vocabulary itself drops or adds."""
    kind, theirs, ours = pair
    text = "the cat played on the mat"
    assert ours.decode_bytes(ours.encode(text)) == (text if kind == "gemma" else f" {text}").encode()
    assert ours.tokens[theirs.unk_token_id] == theirs.unk_token.encode()
    if kind in SPELLED:
        odd = "語\n🙂 \u0301\u200d"
        assert ours.decode_bytes(ours.encode(odd)).removeprefix(b" ") == odd.encode()
        assert ours.unknown(odd + "".join(TEXTS)) == []
    else:
        assert ours.unknown("the 語 cat 🙂🙂") == ["語", "🙂"]
        assert ours.decode_bytes(ours.encode("語")).strip() == theirs.unk_token.encode()


def test_ends_of_a_conversation(pair: tuple[str, Any, PretrainedTokenizer]) -> None:
    """Its special tokens stand where the template wants them; typed ones are text."""
    kind, theirs, ours = pair
    ids = ours.chat([{"role": "user", "content": "the cat"}])
    named = [theirs.bos_token_id] if theirs.bos_token else []
    last = [theirs.eos_token_id] if theirs.eos_token else []
    assert ids == [*named, *ours.encode("the cat"), *last], kind


def test_what_is_not_read() -> None:
    glued = tokenizers.Tokenizer(
        tokenizers.models.BPE(vocab={"a</w>": 0}, merges=[], end_of_word_suffix="</w>")
    )
    for inner in (tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0}, unk_token="a")), glued):
        with pytest.raises(PretrainedError, match="in a way that is not read"):
            vocabulary.from_json(inner.to_str())


def test_files_of_settings(tmp_path: Path) -> None:
    """Old files keep a token in an object; damaged ones say which file it is."""
    theirs = llama()
    theirs.save_pretrained(tmp_path)
    settings = tmp_path / "tokenizer_config.json"
    said = json.loads(settings.read_text()) | {"bos_token": {"content": "<s>"}, "eos_token": 7}
    settings.write_text(json.dumps(said | {"chat_template": "{{ bos_token }}|{{ eos_token }}"}))
    here = folder.Folder(tmp_path, {}, {}, {})
    ours = folder.vocabulary_of(here)
    assert ours.chat([]) == [theirs.bos_token_id, *ours.encode("|")]
    (tmp_path / "chat_template.jinja").write_bytes(b"\xff\xfe")
    with pytest.raises(PretrainedError, match=r"chat_template\.jinja cannot be read"):
        folder.vocabulary_of(here)
    (tmp_path / "chat_template.jinja").unlink()
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(PretrainedError, match=r"tokenizer\.json cannot be read"):
        folder.vocabulary_of(here)
