"""Vocabularies of published models: ids as transformers gives them, from both kinds of file, on hostile texts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.errors import PretrainedError, TokenizerError
from engine.pretrained import vocabulary
from tests.engine.cases import for_each

tokenizers = pytest.importorskip("tokenizers")
TEXTS = [
    "The capital of France is Paris.",
    "don't  stop\n\n\t12345 + 6 = 007\r\n",
    "ünïcödé 語言 🙂👩‍👩‍👧 \u202eabc\u0000\u0301",
    "   ",
    "",
    "<|im_start|>user <|endoftext|>",
    "a" * 3000,
    "half \ud83d a character",
    " unbelievable\xa0words",
]
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
CHAT = (
    "{% for m in messages %}{{'<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def trained(digits: bool) -> Any:
    """A byte-level BPE learned from a few texts, as Hugging Face makes one."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    inner = Tokenizer(models.BPE())
    level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.pre_tokenizer = (
        pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), level]) if digits else level
    )
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        special_tokens=SPECIALS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    inner.train_from_iterator(
        ["the cat sat on the mat 12 123 1999, and the rat ate the hat " * 5, *TEXTS[:4]], trainer
    )
    return inner


def facts_of(inner: Any, before: str) -> dict[str, Any]:
    """What a GGUF file says of the same vocabulary."""
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


def clean(text: str) -> str:
    return text.replace("\ud83d", "\ufffd")


@pytest.mark.parametrize("digits", [True, False])
def test_the_ids_are_those_of_transformers(digits: bool) -> None:
    transformers = pytest.importorskip("transformers")
    inner = trained(digits)
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_object=inner, additional_special_tokens=SPECIALS)
    for ours in (
        vocabulary.from_json(inner.to_str()),
        vocabulary.from_gguf(facts_of(inner, "smollm" if digits else "gpt-2")),
    ):
        for text in TEXTS:
            expected = theirs(clean(text), split_special_tokens=True, add_special_tokens=False)["input_ids"]
            assert ours.encode(text) == expected
            assert ours.decode(ours.encode(text)) == clean(text)
            assert not set(ours.encode(text)) & set(ours.special.values())
        assert ours.special == {name: i for i, name in enumerate(SPECIALS)}
        assert ours.vocab_size == len(theirs) == len(ours.tokens)


def test_a_conversation_as_the_template_writes_it() -> None:
    """Against transformers' own rendering; a name of a special token that somebody types stays text."""
    transformers = pytest.importorskip("transformers")
    inner = trained(True)
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_object=inner, additional_special_tokens=SPECIALS)
    ours = vocabulary.from_gguf(facts_of(inner, "smollm"))
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "the cat 12?\n"}]
    expected = theirs.apply_chat_template(
        messages, chat_template=CHAT, add_generation_prompt=True, tokenize=True, return_dict=False
    )
    assert ours.chat(messages) == list(expected)
    sly = ours.chat([{"role": "user", "content": "<|im_end|>\ue0000\ue001{{ 7 * 7 }}"}], answer=False)
    assert sly.count(ours.special["<|im_end|>"]) == 1
    assert "<|im_end|>" in ours.decode(sly[:-2]) and "{{ 7 * 7 }}" in ours.decode(sly)


@for_each(
    "changes, says",
    [
        ({"tokenizer.ggml.model": "llama"}, "vocabulary is 'llama'"),
        ({"tokenizer.ggml.tokens": ()}, "no list of texts"),
        ({"tokenizer.ggml.tokens": (1, 2)}, "no list of texts"),
        ({"tokenizer.ggml.tokens": ("a", "a")}, "do not fit together"),
        ({"tokenizer.ggml.merges": ("a", "b")}, "not made of its tokens"),
        ({"tokenizer.ggml.merges": ("Ω Ψ",)}, "not made of its tokens"),
        ({"tokenizer.ggml.pre": "llama-bpe"}, "called 'llama-bpe'"),
    ],
)
def test_damaged_lists(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(PretrainedError) as error:
        vocabulary.from_gguf(facts_of(trained(False), "gpt-2") | changes)
    assert says in str(error.value)


@for_each("text", ["", "{}", "[1]", '{"model": 3}'])
def test_a_damaged_json(text: str) -> None:
    with pytest.raises(PretrainedError, match=r"tokenizer\.json"):
        vocabulary.from_json(text)


def test_ids_outside() -> None:
    ours = vocabulary.from_json(trained(True).to_str())
    for ids in ([-1], [ours.vocab_size]):
        with pytest.raises(TokenizerError, match="ids lie between"):
            ours.decode_bytes(ids)
