"""What the map of an encoder-decoder shows while it writes, against the model asked step by step."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.measure.crossing import crossing
from engine.measure.pair_living import writing
from engine.probe import Recorder
from engine.tokenizers.paired import BEGIN, END, PairTokenizer
from tests.engine.seq2seq_toys import loud_pair

TOKENIZER = PairTokenizer(tuple("abcdefghij"))


@pytest.fixture(scope="module", params=["rope", "t5", "sinusoidal"])
def model(request):
    return loud_pair(position=request.param, factor=3.0)


def test_each_step_says_what_the_model_says_after_what_was_written(model):
    found = writing(model, TOKENIZER, "badge")
    ids = [*TOKENIZER.encode("badge"), END]
    seen = [BEGIN]
    for step, symbol in enumerate(found.written):
        chances = model(torch.tensor([ids]), torch.tensor([seen]))[0, -1].softmax(-1)
        best, token = chances.max(-1)
        assert TOKENIZER.shown([int(token)]) == (symbol,)
        assert found.guesses[step, 0] == token
        assert found.chances[step, 0] == pytest.approx(float(best), abs=1e-5)
        assert found.chances[step].tolist() == pytest.approx(chances.topk(3).values.tolist(), abs=1e-5)
        seen.append(int(token))
    assert seen[-1] == END or len(seen) - 1 == model.config.decoder.context
    assert found.read == TOKENIZER.shown(seen[:-1]) and found.text == TOKENIZER.decode(seen[1:])
    assert found.source == (*"badge", "<end>") and found.memory == (6, model.config.encoder.d_model)


def test_where_it_looks_is_what_cross_attention_shows(model):
    found, other = writing(model, TOKENIZER, "badge"), crossing(model, TOKENIZER, "badge")
    assert found.written == other.written and np.allclose(found.cross, other.patterns, atol=1e-5)
    for step in range(len(found.written)):
        mean = other.pattern(None)[step]
        place, weight = found.looked(step)
        assert place == mean.argmax() and weight == pytest.approx(mean.max(), abs=1e-5)


def test_sizes_are_root_mean_squares_of_the_streams(model):
    found = writing(model, TOKENIZER, "ab")
    recorder = Recorder()
    ids = torch.tensor([[*TOKENIZER.encode("ab"), END]])
    begun = torch.tensor([[BEGIN, *(TOKENIZER.shown(range(13)).index(s) for s in found.written[:-1])]])
    model(ids, begun, recorder)
    own = recorder["encoder.blocks.0.resid_pre"][0]
    assert found.source_sizes[0] == pytest.approx(float((own**2).mean(-1).sqrt().mean()), rel=1e-4)
    last = model.config.decoder.n_layers
    assert found.sizes.shape == (last + 1, len(found.written))
    end = recorder[f"decoder.blocks.{last - 1}.resid_post"][0]
    assert found.sizes[last].tolist() == pytest.approx((end**2).mean(-1).sqrt().tolist(), rel=1e-4)
