"""What large models asked for: texts that are read on, tokens that end a text, writers and tokens out of all
proportion, and measurements that say how far they are.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from engine.config import SampleConfig
from engine.data.progress import Progress, finish
from engine.data.tokenizers import ends
from engine.data.tokenizers.char import CharTokenizer
from engine.recording import record
from engine.sample import generate, steps
from engine.sample.decoder import Held
from studies.feedforward import neurons
from studies.feedforward.neurons import most_active, strongest
from studies.generation.beam import beam_search
from studies.generation.branches import Tree, grow
from studies.generation.decoding_comparison import write_each
from studies.generation.outcome import Tally
from studies.residual.attribution import Attribution, pushes
from studies.residual.stream import massive, stream, times_longer, without, writer_of
from tests.engine.helpers import loud, stepped, tiny

IDS = [1, 5, 3, 2, 7, 5]


@pytest.fixture(scope="module")
def model():
    return loud(tiny()).eval().requires_grad_(False)


def test_a_text_is_read_on_where_another_left_it(model):
    """What both begin with is not computed again, and the ids are those of a text read from its beginning."""
    held, greedy = Held(model), SampleConfig(temperature=0.0)
    prompt = IDS[:3]  # the context holds eight
    first = list(steps(model, prompt, 3, greedy, held=held))
    assert first[0].computed == len(prompt)
    written = [record.token for record in first]
    again = list(steps(model, [*prompt, *written], 2, greedy, held=held))
    assert again[0].computed == 1  # the last token, which nobody had read
    assert [r.token for r in again] == list(generate(model, [*prompt, *written], 2, greedy))
    other = list(steps(model, [*IDS[:2], 9, 9], 2, greedy, held=held))
    assert other[0].computed == 2  # from the first token that differs
    torch.testing.assert_close(other[0].logits, next(steps(model, [*IDS[:2], 9, 9], 1, greedy)).logits)


def test_a_stop_token_is_the_last(model):
    make, prompt = SampleConfig(seed=3), Tree(tuple(IDS))
    free = [r.token for r in steps(model, IDS, 8, make)]
    stop = free[3]
    whole = free[: free.index(stop) + 1]
    assert [r.token for r in steps(model, IDS, 8, make, stop={stop})] == whole
    tree, leaf = grow(prompt, model, make, None, 8, stop={stop})
    assert leaf is not None and tree.nodes[leaf].token == stop and len(tree) == len(whole)
    tree, _ = grow(prompt, model, make, None, 8, seconds=0.0)
    assert len(tree) == 1  # its time is over after the first token


def test_texts_with_several_settings(model):
    tokenizer = CharTokenizer("".join(map(chr, range(97, 97 + model.config.vocab_size))))
    makes = [SampleConfig(temperature=t, seed=1) for t in (0.0, 1.0)]
    told, found = stepped(write_each(model, tokenizer, IDS, 5, makes))
    assert told == [Progress(i, 10) for i in range(1, 11)]
    wanted = tuple(tokenizer.decode(list(generate(model, IDS, 5, make))) for make in makes)
    assert found == wanted
    stop = tokenizer.encode(wanted[1])[2]
    cut = wanted[1][: wanted[1].index(tokenizer.decode([stop]))]
    assert finish(write_each(model, tokenizer, IDS, 5, makes[1:], {stop})) == (cut,)
    assert ends(tokenizer) == frozenset()


def test_a_search_tells_of_each_token(model):
    assert [p.done for p in beam_search(model, IDS, 3, 2)] == [1, 2]


def test_the_hardest_pushes_and_the_rest():
    heads = np.zeros((10, 5))
    heads[3, 2], heads[7, 1] = 4.0, -6.0
    found = Attribution(0.0, 0.5, 0.0, heads, np.zeros(10), np.full(10, 0.25), 0.0, 1.0)
    told = pushes(tiny(n_layers=10, n_heads=5, d_model=20).resolved(), found)
    first = told.leading(3)
    assert [(p.label, p.value) for p in first[:3]] == [("head 3.2", 4.0), ("embed", 0.5), ("head 7.1", -6.0)]
    assert first[3].part == "others" and first[3].value == pytest.approx(2.5)
    assert (told.most.label, told.least.label) == ("head 3.2", "head 7.1")
    assert "heads 3" in [p.label for p in told.writers] and len(told.single) == 62
    assert first[3].label == "59 others" and len(told.leading(99)) == 62


def test_a_token_out_of_all_proportion(model):
    found = stream(record(model, IDS))
    assert massive(found) == ()
    lengths, written = found.lengths.copy(), found.written.copy()
    lengths[-1, 0] = 20 * np.median(lengths.max(0))
    written[2, 0] = 1e6
    odd = replace(found, lengths=lengths, written=written)
    assert massive(odd) == (0,) and writer_of(odd, 0) == found.writes[2].label
    assert times_longer(odd, 0) == pytest.approx(lengths[-1, 0] / np.median(lengths.max(0)))
    rest = without(odd, [0])
    assert np.array_equal(rest.lengths, lengths[:, 1:]) and rest.cosines.shape[1] == len(IDS) - 1
    assert rest.shares is not None and np.array_equal(rest.shares, found.shares[:, 1:])


def test_neurons_behind_a_massive_first_token():
    post = np.zeros((2, 4, 3))
    post[0, 0, 1], post[1, 2, 2], post[1, 3, 0] = 50.0, -2.0, 1.0
    assert neurons.first_is_massive(post) and not neurons.first_is_massive(post[:, 1:])
    values, at = strongest(post, 1)
    assert values[1, 2] == -2.0 and at[1, 2] == 2 and values[0, 1] == 0.0
    peak = most_active(post, 1, 1)[0]
    assert (peak.layer, peak.neuron, peak.position) == (1, 2, 2)
    many = np.append(np.linspace(0, 1, 5000), 900.0)
    assert neurons.scale_end(many) == (pytest.approx(np.quantile(many, 0.999)), True)
    assert neurons.scale_end(np.array([1.0, -3.0])) == (3.0, False)
    assert Tally(np.ones(4) / 4, np.array([3, 0, 1, 0])).ids == [0, 2]
    ordered = neurons.promoted(np.arange(10.0))
    assert ordered.ends(2).tolist() == [9, 8, 1, 0] and len(ordered.ends(5)) == 10
