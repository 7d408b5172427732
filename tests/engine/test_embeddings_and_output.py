"""What stands before the first block and after the last one: scaled and normed embeddings, types of tokens, and
heads; and the gains of queries and keys. Against arithmetic written out here.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.config import ModelConfig, TrainConfig
from engine.errors import ConfigError, HeadError, ShapeError
from engine.model import count_parameters
from engine.recording import record
from engine.sample import Decoder
from engine.training.train import train
from studies.circuits.prompt_pairs import Prompts, both_runs
from studies.costs.ledger import ledger
from studies.embeddings.table import lookup
from studies.feedforward.neurons import token_scores
from studies.residual.lens import logit_lens
from studies.residual.stream import shares, states, writes
from studies.shapes.operations import trace
from tests.engine.cases import for_each
from tests.engine.helpers import loud, tiny, verse

IDS = (3, 1, 4, 1, 5)


def normed(x: np.ndarray, gain: np.ndarray, bias: np.ndarray, eps: float) -> np.ndarray:
    spread = np.sqrt(x.var(-1, keepdims=True) + eps)
    return gain * (x - x.mean(-1, keepdims=True)) / spread + bias


def numbers(parameter: torch.Tensor) -> np.ndarray:
    return parameter.detach().double().numpy()


def test_what_the_first_block_reads() -> None:
    """LayerNorm(sqrt(16) E[t] + P + S[0]), each step of it in the recording."""
    model = loud(tiny(embedding_scale=True, embedding_norm=True, token_types=2, norm_bias=True))
    recording = record(model, IDS)
    scaled = 4 * numbers(model.embedding)[list(IDS)]
    total = scaled + numbers(model.positions.weight)[:5] + numbers(model.token_types)[0]
    gain, bias = numbers(model.norm_embed.gain), numbers(model.norm_embed.bias)
    expected = normed(total, gain, bias, 1e-5)
    np.testing.assert_allclose(recording["embed"], scaled, atol=1e-5)
    np.testing.assert_allclose(recording["blocks.0.resid_pre"], expected, atol=1e-5)
    order = ["tokens", "embed", "pos_embed", "type_embed", "norm_embed", "blocks.0.resid_pre"]
    assert recording.names()[:6] == order
    assert [state.label for state in states(recording)][:2] == ["embed", "+ position, + type, normed"]


def test_types_of_tokens_need_a_table() -> None:
    model = loud(tiny(token_types=2))
    tokens = torch.tensor([IDS])
    first, second = (model(tokens, types=torch.full_like(tokens, kind)) for kind in (0, 1))
    assert torch.equal(first, model(tokens)) and not torch.allclose(first, second, atol=1e-3)
    with pytest.raises(ShapeError, match="no table"):
        loud(tiny())(tokens, types=tokens)


@for_each("fields, first", [
    ({"embedding_scale": True}, ["embed", "pos_embed"]), ({"embedding_norm": True}, ["norm_embed", "blocks.0.attn_out"]),
    ({"token_types": 2, "embedding_scale": True}, ["embed", "pos_embed", "type_embed"]),
])  # fmt: skip
def test_the_lookup_is_a_product_and_writes_are_the_whole_stream(
    fields: dict[str, object], first: list[str]
) -> None:
    model = loud(tiny(**fields))
    recording = record(model, IDS)
    found = lookup(model, recording)
    assert found.onehot_difference < 1e-5 and found.sum_difference < 1e-5
    np.testing.assert_allclose(shares(recording).sum(0), 1, atol=1e-5)
    assert [write.name for write in writes(recording)][: len(first)] == first


def test_gains_of_queries_and_keys() -> None:
    """q / rms(q) times the query's gain, k / rms(k) times the key's: the scores of a head by hand."""
    model = loud(tiny(qk_norm=True, qk_gain=True, position="none", n_kv_heads=2))
    recording, mixer = record(model, IDS), model.blocks[0].mixer
    q, k = (recording[f"blocks.0.{name}"].astype(np.float64) for name in "qk")
    q, k = (x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) for x in (q, k))
    scores = np.einsum("hqd,hkd->hqk", q * numbers(mixer.q_gain), np.repeat(k * numbers(mixer.k_gain), 2, 0))
    np.testing.assert_allclose(recording["blocks.0.scores"], scores / 2, atol=1e-4)  # d_head is 4
    assert not torch.equal(mixer.q_gain, mixer.k_gain)
    for fields in ({"qk_norm": False}, {"qk_norm": True, "mixer": "similarity"}):
        with pytest.raises(ConfigError, match="qk_gain"):
            tiny(qk_gain=True, **fields).validate()


def test_the_head_that_guesses_hidden_tokens() -> None:
    """LayerNorm(GELU(x W + b)) E^T + b, as BERT's code has it."""
    model = loud(tiny(output_head="masked", norm_bias=True, causal=False))
    recording, head = record(model, IDS), model.output
    u = recording["norm_final"] @ numbers(head.w_in.weight).T + numbers(head.w_in.bias)
    bent = u * 0.5 * (1 + torch.erf(torch.from_numpy(u / 2**0.5)).numpy())
    read = normed(bent, numbers(head.norm.gain), numbers(head.norm.bias), 1e-5)
    expected = read @ numbers(model.embedding).T + numbers(head.bias)
    np.testing.assert_allclose(recording.logits, expected, atol=1e-4)
    lens = logit_lens(model, recording)
    np.testing.assert_allclose(lens.probability[-1], np.exp(recording.log_probabilities.max(-1)), atol=1e-4)
    assert lens.guess[-1].tolist() == expected.argmax(-1).tolist()
    with pytest.raises(HeadError, match="is not a product"):
        token_scores(model, 0, 0)
    with pytest.raises(HeadError, match="is not a product"):
        both_runs(loud(tiny(output_head="masked")), Prompts((1, 2), (1, 3), (4, 5)), "resid_pre")


def test_without_a_head_there_is_nothing_to_say_and_nothing_to_train() -> None:
    config = tiny(output_head="none", tie_embeddings=False, causal=False)
    model = loud(config)
    recording = record(model, IDS)
    assert model.unembedding is None and model(torch.tensor([IDS])).shape == (1, 5, 16)
    steps = trace(config, 5)
    assert [step.name for step in steps][-1] == "norm_final"
    assert sum(step.parameters for step in steps) == count_parameters(config) == ledger(config).total
    assert not any(row.component == "unembedding" for row in ledger(config).flops().rows)
    for call in (lambda: logit_lens(model, recording), lambda: Decoder(loud(tiny(output_head="none")))):
        with pytest.raises(HeadError, match="no output head"):
            call()
    corpus = verse()
    with pytest.raises(ConfigError, match="output_head"):
        train(ModelConfig(corpus.vocab_size, output_head="none"), TrainConfig(), corpus)
