"""The half of an encoder-decoder that reads, looked into by itself."""

from __future__ import annotations

import pytest
import torch

from engine.errors import TokenizerError
from engine.probe import Recorder
from engine.reader import reader_of
from engine.tokenizers.blanks import BlankTokenizer
from engine.tokenizers.bpe import train
from engine.tokenizers.char import CharTokenizer
from engine.tokenizers.paired import END, PairTokenizer
from engine.tokenizers.sources import SourceTokenizer
from tests.engine.cases import for_each
from tests.engine.seq2seq_toys import loud_pair

BPE = train("that hat hath heath " * 9, 270)
SHAPES = [
    {},
    {"wiring": "post", "position": "sinusoidal", "embedding_scale": True},
    {"position": "t5", "norm": "rmsnorm", "score_scale": False},
    {"position": "learned", "tie_embeddings": False},
    {"position": "rope", "ffn": "swiglu", "n_kv_heads": 1},
]


@for_each("fields", SHAPES, ids=lambda fields: fields.get("position", "plain"))
def test_its_vectors_are_the_memory(fields):
    model = loud_pair(**fields)
    read = reader_of(model)
    source = torch.tensor([[5, 3, 7, 4, 9, 2]])  # no padding
    assert not read.config.causal and not read.output.present
    assert torch.equal(read(source), model.encode(source).vectors)


def test_its_activations_are_those_of_the_encoder():
    model = loud_pair()
    source = torch.tensor([[5, 3, 7, 4, 2]])
    own, whole = Recorder(), Recorder()
    reader_of(model)(source, own)
    model.encode(source, whole)
    assert {f"encoder.{name}" for name in own.tensors} == set(whole.tensors)
    for name, tensor in own.tensors.items():
        assert torch.equal(tensor, whole[f"encoder.{name}"]), name


def test_it_has_the_same_weights_and_no_copies():
    model = loud_pair()
    read = reader_of(model)
    assert read.embedding is model.embedding
    assert read.blocks[0].mixer.w_qkv.weight is model.encoder.blocks[0].mixer.w_qkv.weight
    assert not read.training


@for_each("text", ["h_t", "_", "__", "_hat_", "hat", ""])
@for_each("inner", [CharTokenizer("aht"), BPE])
def test_gaps_are_one_token_each_and_come_back(inner, text):
    tokenizer = BlankTokenizer(inner)
    ids = tokenizer.encode(text)
    assert ids.count(tokenizer.mask) == text.count("_") and tokenizer.decode(ids) == text
    assert tokenizer.mask == inner.vocab_size == tokenizer.vocab_size - 1
    assert not tokenizer.unknown(text) and tokenizer.to_dict() == inner.to_dict()
    pieces = [inner.encode(piece) for piece in text.split("_")]
    assert [i for i in ids if i != tokenizer.mask] == [i for piece in pieces for i in piece]


def test_what_the_alphabet_lacks_is_still_said():
    tokenizer = BlankTokenizer(CharTokenizer("aht"))
    assert tokenizer.unknown("h_x y") == ["x", " ", "y"]
    with pytest.raises(TokenizerError, match="lacks 'x'"):
        tokenizer.encode("_x")


@for_each("by, text", [("letters", "abba"), ("words", "one two one")])
def test_a_whole_source_ends_with_its_sign(by, text):
    inner = PairTokenizer.train([text], by=by)
    tokenizer = SourceTokenizer(inner)
    ids = inner.encode(text)
    assert tokenizer.encode(text) == ids and tokenizer.whole(text) == [*ids, END]
    assert tokenizer.whole(text, 2) == [ids[0], END] and tokenizer.whole("") == [END]
    assert tokenizer.decode(tokenizer.whole(text)) == text
    assert tokenizer.decode_bytes(tokenizer.whole(text)).decode() == text
    assert tokenizer.vocab_size == len(tokenizer.tokens) == inner.vocab_size
    assert tokenizer.to_dict() == inner.to_dict()


def test_words_carry_their_blank_and_signs_are_nothing():
    words, letters = (SourceTokenizer(PairTokenizer.train(["b a"], by)) for by in ("words", "letters"))
    assert list(words.tokens) == [b"", b"", b"", b" a", b" b"]
    assert list(letters.tokens) == [b"", b"", b"", b" ", b"a", b"b"]


def test_what_is_unknown_is_left_out_as_it_was_cut():
    words, letters = (SourceTokenizer(PairTokenizer.train(["one two"], by)) for by in ("words", "letters"))
    assert words.unknown("two or one") == ["or"] and words.without("two or one", ["or"]) == "two one"
    assert letters.unknown("or") == ["r"] and letters.without("for two", ["f", "r"]) == "o two"
