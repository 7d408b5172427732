"""T5 whole, both versions, beside transformers on random odd configurations: the same numbers, the same texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from engine.errors import PretrainedError
from studies.costs.ledger import ledger
from studies.pairs.generate import pair_steps
from studies.weights.pretrained import cache, pairs, sources
from studies.weights.pretrained.load import open_model
from studies.weights.pretrained.pairs import open_pair
from tests.engine.cases import for_each
from tests.studies.pretrained.odd import settings
from tests.studies.pretrained.vocabularies import READ, TEXTS, clean, unigram

transformers = pytest.importorskip(
    "transformers", reason="transformers is not installed (requirements-dev.txt has it)"
)
OLD = {"feed_forward_proj": "relu"}
NEW = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
# Odd on purpose: heads that do not fill the stream, towers of other depths, lengths past the last bucket.
SIZES: list[dict[str, Any]] = [
    {"d_model": 22, "d_kv": 6, "d_ff": 35, "num_layers": 2, "num_decoder_layers": 3, "num_heads": 3},
    {"d_model": 15, "d_kv": 5, "d_ff": 9, "num_layers": 1, "num_decoder_layers": 1, "num_heads": 1},
    {"d_model": 20, "d_kv": 4, "d_ff": 50, "num_layers": 3, "num_decoder_layers": 2, "num_heads": 5},
]
LENGTHS = [(7, 5), (41, 37), (150, 180)]
VERSIONS = {"1.0": OLD, "1.1": NEW}


def made(folder: Path, version: str = "1.0", place: int = 0, seed: int = 0, **rest: Any) -> Any:
    """A T5 with weights that all matter; of 1.1, with an output matrix of its own."""
    values = {"vocab_size": 37, "layer_norm_epsilon": [1e-6, 1e-2, 1e-6][place]} | SIZES[place]
    torch.manual_seed(seed)
    theirs = transformers.T5ForConditionalGeneration(
        transformers.T5Config(**(values | VERSIONS[version] | rest))
    ).eval()
    if version == "1.1":
        theirs.lm_head.weight = torch.nn.Parameter(torch.randn_like(theirs.lm_head.weight))
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    theirs.generation_config.decoder_start_token_id = 0
    theirs.save_pretrained(folder)
    return theirs


def asked(lengths: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Three sources, one of them padded, and what is to be said of them."""
    draws = torch.Generator().manual_seed(1)
    source, target = (torch.randint(2, 37, (3, length), generator=draws) for length in lengths)
    source[1, lengths[0] // 2 :] = 0
    target[:, 0] = 0
    return source, target


def said(theirs: Any, source: Tensor, target: Tensor) -> Tensor:
    mask = (source != 0).long()
    found: Tensor = theirs(input_ids=source, attention_mask=mask, decoder_input_ids=target).logits
    return found


@for_each("place", range(len(SIZES)))
@for_each("version", VERSIONS)
@torch.inference_mode()
def test_the_same_logits(version: str, place: int, tmp_path: Path) -> None:
    theirs = made(tmp_path, version, place).double()
    opened = open_pair(tmp_path)
    ours = opened.model().double()
    source, target = asked(LENGTHS[place])
    wanted = said(theirs, source, target)
    assert wanted.std() > 0.05
    assert (ours(source, target) - wanted).abs().max() < 2e-5 * float(wanted.abs().max())
    numbers = sum(p.numel() for p in theirs.parameters())
    assert ledger(opened.config.decoder, opened.config.encoder).total == numbers


@for_each("version", VERSIONS)
@torch.inference_mode()
def test_files_of_before_and_after_say_the_same(version: str, tmp_path: Path) -> None:
    theirs = made(tmp_path, version)
    source, target = asked(LENGTHS[0])
    wanted = said(theirs, source, target)
    file = tmp_path / "config.json"
    facts = json.loads(file.read_text())
    del facts["scale_decoder_outputs"], facts["tie_word_embeddings"]
    file.write_text(json.dumps(facts | {k: v for k, v in VERSIONS[version].items() if k[0] == "t"}))
    torch.testing.assert_close(open_pair(tmp_path).model()(source, target), wanted, rtol=1e-4, atol=1e-4)


@torch.inference_mode()
def test_1_1_without_a_matrix_in_the_file_has_the_embedding_unscaled(tmp_path: Path) -> None:
    torch.manual_seed(3)
    values = {"vocab_size": 37} | SIZES[0] | NEW
    theirs = transformers.T5ForConditionalGeneration(transformers.T5Config(**values)).eval()
    theirs.save_pretrained(tmp_path)
    assert "lm_head.weight" not in load_file(tmp_path / "model.safetensors")
    source, target = asked(LENGTHS[0])
    wanted = said(theirs, source, target)
    found = open_pair(tmp_path).model()(source, target)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4 * float(wanted.abs().max()))


@for_each("cached", [True, False])
@for_each("version", VERSIONS)
def test_it_writes_what_transformers_writes(version: str, cached: bool, tmp_path: Path) -> None:
    theirs = made(tmp_path, version, 2, num_decoder_layers=3)
    ours = open_pair(tmp_path).model()
    assert (ours.config.pad, ours.config.begin, ours.config.end) == (0, 0, 1)
    ended = []
    for first in range(2, 12):
        source = [first, 9, 30, 17, 11, 1]
        wanted = theirs.generate(torch.tensor([source]), max_new_tokens=12, do_sample=False, num_beams=1)
        found = [record.token for record in pair_steps(ours, source, 12, cached=cached)]
        assert found == wanted[0, 1:].tolist()
        ended.append(found[-1] == 1)
    assert len(ended) == 10


def test_copies_of_the_embedding_may_be_there_if_they_are_copies(tmp_path: Path) -> None:
    """And the table of distances between two texts, which the first files have and nothing reads."""
    made(tmp_path)
    file = tmp_path / "model.safetensors"
    whole = load_file(file)
    unread = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
    names = ("lm_head.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight")
    copies = {name: whole["shared.weight"].clone() for name in names}
    save_file(whole | copies | {unread: torch.zeros(32, 3)}, file)
    before = open_pair(tmp_path).weights()
    assert torch.equal(before["embedding"], whole["shared.weight"])
    for name in names:
        save_file(whole | copies | {name: copies[name] + 1}, file)
        with pytest.raises(PretrainedError, match=f"{name} should be the embedding once more"):
            open_pair(tmp_path).weights()


@for_each("facts, says", [
    ({"model_type": "bart"}, "family 'bart'; supported are t5"),
    ({"relative_attention_max_distance": 64}, "only 128 is supported"),
    ({"num_decoder_layers": 4}, "lacks the tensor decoder.block.3"),
    ({"num_decoder_layers": 2}, "no part takes: decoder.block.2"),
    ({"eos_token_id": 0}, "must be a separate token"),
    ({"eos_token_id": 37}, "must be a token of the vocabulary"),
    ({"pad_token_id": True}, "pad_token_id = True"),
    ({"tie_word_embeddings": "no", "scale_decoder_outputs": None}, "must be true or false"),
])  # fmt: skip
def test_what_is_not_built_is_said(facts: dict[str, Any], says: str, tmp_path: Path) -> None:
    made(tmp_path)
    settings(tmp_path, **facts)
    with pytest.raises(PretrainedError) as error:
        open_pair(tmp_path).weights()
    assert says in str(error.value)


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of models: a whole T5, its encoder alone, a decoder, and one without a readable description."""
    words, root = unigram(), tmp_path / "models"
    made(root / "mine", vocab_size=len(words) + 5)
    words.save_pretrained(root / "mine")
    sizes = {"vocab_size": 37} | SIZES[1]
    transformers.T5EncoderModel(transformers.T5Config(**sizes)).save_pretrained(root / "half")
    gpt2 = transformers.GPT2Config(vocab_size=37, n_embd=12, n_layer=1, n_head=2)
    transformers.GPT2LMHeadModel(gpt2).save_pretrained(root / "gpt")
    made(root / "torn", place=1)
    (root / "torn" / "config.json").write_text("{")
    monkeypatch.setenv(sources.MODELS, str(root))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return root


def test_those_with_two_halves_are_found_and_loaded_by_name(shelf: Path, tmp_path: Path) -> None:
    assert {"half", "gpt", "torn", "mine"} <= set(sources.available())
    assert [name for name in pairs.available() if (shelf / name).is_dir()] == ["mine"]
    assert not pairs.is_pair(None) and not pairs.is_pair(shelf / "mine" / "config.json")
    found = pairs.load_pair("mine", 10**9)
    assert len(list((tmp_path / "cache").rglob("*.safetensors"))) == 1
    again = pairs.load_pair("mine", 10**9)
    held = dict(again.model.named_parameters())
    assert all(torch.equal(p, held[name]) for name, p in found.model.named_parameters())
    assert found.facts is None and found.model.config.encoder.n_layers == 2
    count = sum(p.numel() for p in found.model.parameters())
    with pytest.raises(PretrainedError, match=f"mine has {count:,} parameters; this server loads"):
        pairs.load_pair("mine", count - 1)
    with pytest.raises(PretrainedError, match="no model 'nobody'"):
        pairs.load_pair("nobody", 10**9)


def test_kept_weights_are_of_this_configuration(shelf: Path) -> None:
    place = shelf / "mine"
    before = cache.stamp(open_pair(place), place)
    settings(place, layer_norm_epsilon=1e-3)
    assert cache.stamp(open_pair(place), place) != before
    assert cache.stamp(open_model(place), place) != cache.stamp(open_pair(place), place)


def test_a_vocabulary_that_is_too_large_is_refused(shelf: Path) -> None:
    facts = json.loads((shelf / "half" / "config.json").read_text())
    assert facts["vocab_size"] == 37
    made(shelf / "small", place=1)
    unigram().save_pretrained(shelf / "small")
    with pytest.raises(PretrainedError, match="but its embedding 37 rows"):
        pairs.load_pair("small", 10**9)
    (shelf / "small" / "tokenizer.json").unlink()
    with pytest.raises(PretrainedError, match=r"tokenizer\.json cannot be read"):
        pairs.load_pair("small", 10**9)


def test_texts_are_cut_as_transformers_cuts_them(shelf: Path) -> None:
    theirs = transformers.T5Tokenizer.from_pretrained(shelf / "mine")
    ours = open_pair(shelf / "mine").words()
    assert (ours.pad, ours.end) == (theirs.pad_token_id, theirs.eos_token_id) == (0, 1)
    for text in [*TEXTS, *READ]:
        wanted = theirs(clean(text), split_special_tokens=True)["input_ids"]
        assert [*ours.encode(text), ours.end] == wanted
        if "</s>" not in text:  # a typed end is an end here, as it is at transformers
            told = theirs.decode(wanted[:-1], clean_up_tokenization_spaces=False)
            assert ours.decode([*wanted, 5, 6]) == told
    ids = ours.encode("the cat")
    assert "".join(ours.shown(ids)) == " the cat"
    assert ours.shown([0, 1, ours.inner.vocab_size + 2]) == ("<pad>", "</s>", "[unused]")
    assert ours.decode([0, *ids, ours.inner.vocab_size + 2, 1, 7]) == "the cat"
