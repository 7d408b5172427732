"""Vocabularies of published models (byte-level BPE from both kinds of file; BERT's WordPiece, T5's Unigram, the BPE
of LLaMA 2 and Gemma with its bytes): ids as transformers gives them, on hostile texts.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.data.tokenizers import ends
from engine.errors import PretrainedError, TokenizerError
from studies.weights.pretrained import folder, vocabulary
from tests.engine.cases import for_each
from tests.studies.pretrained.vocabularies import (
    HAS_TRANSFORMERS,
    READ,
    SPECIALS,
    TEXTS,
    clean,
    trained,
    unigram,
    wordpiece,
)

tokenizers = pytest.importorskip("tokenizers")
transformers = pytest.importorskip("transformers", reason=HAS_TRANSFORMERS)
CHAT = (
    "{% for m in messages %}{{'<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def facts_of(inner: Any, before: str) -> dict[str, Any]:
    """What a GGUF file says of a byte-level vocabulary."""
    model = json.loads(inner.to_str())["model"]
    by_id = sorted(model["vocab"], key=model["vocab"].get)
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": before,
        "tokenizer.ggml.tokens": tuple(by_id),
        "tokenizer.ggml.token_type": tuple(3 if token in SPECIALS else 1 for token in by_id),
        "tokenizer.ggml.merges": tuple(" ".join(pair) for pair in model["merges"]),
        "tokenizer.chat_template": CHAT,
    }


def level(digits: bool) -> Any:
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=trained(digits), additional_special_tokens=SPECIALS
    )


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
    model = tokenizers.models.BPE(
        vocab=vocab, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True
    )
    inner, before, after = tokenizers.Tokenizer(model), tokenizers.normalizers, tokenizers.decoders
    inner.normalizer = before.Sequence([before.Prepend("▁"), before.Replace(" ", "▁")])
    inner.decoder = after.Sequence(
        [after.Replace("▁", " "), after.ByteFallback(), after.Fuse(), after.Strip(" ", 1, 0)]
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


@for_each("digits", [True, False])
def test_a_byte_level_vocabulary_gives_the_ids_of_transformers_from_both_kinds_of_file(digits: bool) -> None:
    inner, theirs = trained(digits), level(digits)
    for ours in (
        vocabulary.from_json(inner.to_str()),
        vocabulary.from_gguf(facts_of(inner, "smollm" if digits else "gpt-2")),
    ):
        for text in [*TEXTS, "a" * 3000]:
            expected = theirs(clean(text), split_special_tokens=True, add_special_tokens=False)["input_ids"]
            assert ours.encode(text) == expected
            assert ours.decode(ours.encode(text)) == clean(text)
            assert not set(ours.encode(text)) & set(ours.special.values())
        assert ours.special == {name: i for i, name in enumerate(SPECIALS)}
        assert ours.vocab_size == len(theirs) == len(ours.tokens)
        for ids in ([-1], [ours.vocab_size]):
            with pytest.raises(TokenizerError, match="ids lie between"):
                ours.decode_bytes(ids)


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_vocabulary_gives_the_ids_of_transformers(kind: str, tmp_path: Path) -> None:
    theirs = KINDS[kind]()
    theirs.chat_template = (
        "{{ bos_token }}{% for m in messages %}{{ m['content'] }}{% endfor %}{{ eos_token }}"
    )
    theirs.save_pretrained(tmp_path)
    ours = folder.vocabulary_of(folder.Folder(tmp_path, {}, {}, {}))
    for text in TEXTS:
        expected = theirs(clean(text), split_special_tokens=True, add_special_tokens=False)["input_ids"]
        assert ours.encode(text) == expected, text
        assert ours.decode(expected) == theirs.decode(expected, clean_up_tokenization_spaces=False), text
    assert ours.vocab_size == len(theirs) == len(ours.tokens)
    assert set(ours.special) == set(theirs.all_special_tokens)
    if kind != "t5":  # its pieces hold the names of its special tokens, at transformers as here
        typed = set(ours.encode("".join(ours.special)))
        assert not typed & (set(ours.special.values()) - {theirs.unk_token_id}), "what is typed is text"
    turn = [{"role": "user", "content": "the cat"}]
    assert ours.chat(turn) == list(theirs.apply_chat_template(turn, tokenize=True, return_dict=False))
    # Tokens stand for bytes: side by side they are the text, but for what the vocabulary drops or adds
    text = "the cat played on the mat"
    assert ours.decode_bytes(ours.encode(text)) == (text if kind == "gemma" else f" {text}").encode()
    assert ours.tokens[theirs.unk_token_id] == theirs.unk_token.encode()
    if kind in ("bert", "t5"):
        assert ours.unknown("the 語 cat 🙂🙂") == ["語", "🙂"]
        assert ours.decode_bytes(ours.encode("語")).strip() == theirs.unk_token.encode()
    else:
        odd = "語\n🙂 \u0301\u200d"
        assert ours.decode_bytes(ours.encode(odd)).removeprefix(b" ") == odd.encode()
        assert ours.unknown(odd + "".join(TEXTS)) == []


def test_a_conversation_is_what_the_template_writes_and_typed_names_stay_text() -> None:
    ours = vocabulary.from_gguf(facts_of(trained(True), "smollm"))
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "the cat 12?\n"}]
    expected = level(True).apply_chat_template(
        messages, chat_template=CHAT, add_generation_prompt=True, tokenize=True, return_dict=False
    )
    assert ours.chat(messages) == list(expected)
    sly = ours.chat([{"role": "user", "content": "<|im_end|>\ue0000\ue001{{ 7 * 7 }}"}], answer=False)
    assert sly.count(ours.special["<|im_end|>"]) == 1
    assert "<|im_end|>" in ours.decode(sly[:-2]) and "{{ 7 * 7 }}" in ours.decode(sly)


def test_what_stands_around_a_text_is_counted_and_an_answer_ends_at_its_names() -> None:
    ours = vocabulary.from_gguf(facts_of(trained(False), "gpt-2"))
    found = ours.user_turn("Hi <|im_end|>")
    around = sum(len(ours.encode(text)) for text in ("user\n", "\n", "assistant\n"))
    assert (found.text_tokens, found.special, found.around) == (
        len(ours.encode("Hi <|im_end|>")),
        3,
        3 + around,
    )
    whole = "<|im_start|>user\nHi <|im_end|><|im_end|>\n<|im_start|>assistant\n"
    assert ours.decode(list(found.ids)) == whole
    assert ends(ours) == {0, 2}
    bare = facts_of(trained(False), "gpt-2")
    del bare["tokenizer.chat_template"]
    with pytest.raises(TokenizerError, match="no chat template"):
        vocabulary.from_gguf(bare).user_turn("Hi")


def test_what_a_gguf_file_says_users_defined_is_one_token_and_shows_as_itself() -> None:
    facts = facts_of(trained(False), "gpt-2")
    more = ("<think>", "</think>", "đem")
    facts["tokenizer.ggml.tokens"] += more
    facts["tokenizer.ggml.token_type"] += (4,) * len(more)
    ours = vocabulary.from_gguf(facts)
    ids = ours.encode("<think>the đem</think> cat")
    assert [i for i in ids if i >= ours.vocab_size - 4] == [
        ours.added[name] for name in ("<think>", "đem", "</think>")
    ]
    assert [ours.tokens[ours.added[name]] for name in more] == [name.encode() for name in more]
    assert ours.decode(ids) == "<think>the đem</think> cat" and ours.tokens[0] == b"<|endoftext|>"


@for_each("kind", ["bert", "t5"])
def test_what_becomes_the_unknown_token_is_told_by_its_pieces(kind: str, tmp_path: Path) -> None:
    theirs = KINDS[kind]()
    theirs.save_pretrained(tmp_path)
    ours = folder.vocabulary_of(folder.Folder(tmp_path, {}, {}, {}))
    assert ours.unread("the 🦜 cat 日本 🦜 played") == (
        ["🦜", "日", "本"] if kind == "bert" else ["🦜", "日本"]
    )
    assert ours.unread("the cat") == [] and ours.unknown_token == theirs.unk_token
    assert ours.encode("🦜").count(theirs.unk_token_id) == 1


@for_each("changes, says", [
    ({"tokenizer.ggml.model": "llama"}, "vocabulary is 'llama'"),
    ({"tokenizer.ggml.tokens": ()}, "not a list of texts"),
    ({"tokenizer.ggml.tokens": (1, 2)}, "not a list of texts"),
    ({"tokenizer.ggml.tokens": ("a", "a")}, "do not fit together"),
    ({"tokenizer.ggml.merges": ("a", "b")}, "not made of its tokens"),
    ({"tokenizer.ggml.merges": ("Ω Ψ",)}, "not made of its tokens"),
    ({"tokenizer.ggml.pre": "llama-bpe"}, "pre-tokenizer is 'llama-bpe'"),
])  # fmt: skip
def test_damaged_lists_are_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(PretrainedError) as error:
        vocabulary.from_gguf(facts_of(trained(False), "gpt-2") | changes)
    assert says in str(error.value)


def test_a_vocabulary_that_is_damaged_or_not_built_is_refused() -> None:
    models = tokenizers.models
    glued = models.BPE(vocab={"a</w>": 0}, merges=[], end_of_word_suffix="</w>")
    for model in (models.WordLevel({"a": 0}, unk_token="a"), glued):
        with pytest.raises(PretrainedError, match="layout that is not supported"):
            vocabulary.from_json(tokenizers.Tokenizer(model).to_str())
    for text in ("", "{}", "[1]", '{"model": 3}'):
        with pytest.raises(PretrainedError, match=r"tokenizer\.json"):
            vocabulary.from_json(text)


def test_a_text_that_a_vocabulary_cannot_cut_is_refused() -> None:
    inner = tokenizers.Tokenizer(tokenizers.models.Unigram([("▁", 0.0), ("a", -1.0)], None))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    ours = vocabulary.from_json(inner.to_str())
    assert ours.encode("a") == [0, 1] and ours.unread("a") == []
    with pytest.raises(TokenizerError, match="cannot cut this text"):
        ours.encode("é")


def test_files_of_settings(tmp_path: Path) -> None:
    theirs = llama()
    theirs.save_pretrained(tmp_path)
    settings = tmp_path / "tokenizer_config.json"
    said = json.loads(settings.read_text()) | {"bos_token": {"content": "<s>"}, "eos_token": 7}
    named = {"tools": "no", "default": "{{ bos_token }}|{{ eos_token }}"}
    said |= {"chat_template": [{"name": name, "template": template} for name, template in named.items()]}
    settings.write_text("\ufeff" + json.dumps(said), "utf-8")
    here = folder.Folder(tmp_path, {}, {}, {})
    ours = folder.vocabulary_of(here)
    assert ours.chat([]) == theirs("<s>|", add_special_tokens=False)["input_ids"]
    (tmp_path / "chat_template.jinja").write_bytes(b"\xff\xfe")
    with pytest.raises(PretrainedError, match=r"chat_template\.jinja cannot be read: .* UTF-16"):
        folder.vocabulary_of(here)
    (tmp_path / "chat_template.jinja").unlink()
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(PretrainedError, match=r"tokenizer\.json cannot be read"):
        folder.vocabulary_of(here)
