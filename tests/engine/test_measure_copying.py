"""What heads do with a repetition, and which of them copy, against sorting done here."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.measure import copying, repeating
from engine.measure.induction import drawn, read_twice
from engine.measure.recording import record
from engine.model import Transformer, build
from engine.progress import finish
from tests.engine.helpers import loud, tiny
from tests.engine.test_measure_attention import induction_model

IDS = (3, 1, 4, 1, 5, 9, 2)


def duplicate_model() -> Transformer:
    """The hand-built model of induction, whose second layer looks for its own token instead."""
    model = induction_model()
    second, width = model.blocks[1].mixer, model.config.d_head
    with torch.no_grad():
        second.w_qkv.weight[4 * width : 5 * width] = 0
        second.w_qkv.weight[4 * width : 5 * width, :width] = torch.eye(width)  # keys: the token itself
    return model


def test_both_scores_come_from_one_reading():
    found = finish(repeating.repeated(duplicate_model()))
    assert found is not None
    # Each token of the second half finds two alike: the one before, and itself.
    assert found.duplicate[1, 0] == pytest.approx(0.5, abs=1e-3)
    assert found.induction[1, 0] < 1e-3 and found.duplicate[0].max() < 0.1
    steps = list(repeating.repeated(build(tiny()), sequences=3))
    assert [(s.done, s.total) for s in steps] == [(1, 3), (2, 3), (3, 3)]


def test_a_pool_is_read_as_it_is_drawn_for_circuits():
    model, pool = duplicate_model(), np.arange(1, 11)
    found = finish(repeating.repeated(model, sequences=1, pool=pool, count=6))
    assert found is not None
    np.testing.assert_allclose(found.induction, read_twice(model, drawn(pool, 6, 0)).scores, atol=1e-6)


def test_nothing_is_repeated_where_that_cannot_be():
    for config in (tiny(mixer="none"), tiny(context=3)):
        assert repeating.repeatable(build(config)) == 0
        assert finish(repeating.repeated(build(config))) is None
    assert repeating.repeatable(build(tiny()), vocab=1) == 0 and repeating.repeatable(build(tiny())) == 4


VARIANTS = [
    {}, {"n_kv_heads": 2, "position": "rope", "qk_norm": True}, {"wiring": "post"},
    {"norm": "none", "output_projection": False}, {"tie_embeddings": False, "attention_bias": True},
    {"mixer": "mean"},
]  # fmt: skip


def slowly(model: Transformer, ids: tuple[int, ...], top: int, least: float) -> np.ndarray:
    """One head, one key, one sorted list of logits at a time."""
    recording, config = record(model, ids), model.config
    found = np.zeros((config.n_layers, config.n_heads))
    for layer, head in np.ndindex(found.shape):
        block = f"blocks.{layer}."
        v = recording[block + "v"][head * config.n_kv_heads // config.n_heads]
        w_o, width = model.blocks[layer].mixer.w_o, config.d_head
        for key in range(len(ids) - 1):
            weight = float(recording[block + "pattern"][head, -1, key])
            z = np.zeros(config.n_heads * width, np.float32)
            z[head * width : (head + 1) * width] = v[key]
            wrote = z if w_o is None else w_o.weight.numpy() @ z
            x = model.norm_final(torch.from_numpy(wrote)[None, None])[0, 0].numpy()
            best = np.argsort(-(model.output_matrix.numpy() @ x))[:top]
            if weight >= least and ids[key] in best:
                found[layer, head] += weight
    return found


@pytest.mark.parametrize("fields", VARIANTS, ids=str)
@pytest.mark.parametrize("chunk", [3, 1024])
@torch.inference_mode()
def test_name_movers_are_those_of_a_slow_loop(fields, chunk, monkeypatch):
    monkeypatch.setattr(copying, "FIRST_CHUNK", chunk)
    monkeypatch.setattr(copying, "among", lambda vocab: 4)
    model = loud(tiny(**fields), factor=3.0)
    found = copying.name_mover_scores(model, record(model, IDS))
    wanted = slowly(model, IDS, 4, copying.LEAST)
    np.testing.assert_allclose(found, wanted, atol=1e-6)
    assert wanted.max() > 0 and wanted.min() < 0.9


def test_a_token_is_in_the_top_as_sorting_says():
    torch.manual_seed(0)
    x, matrix = torch.randn(40, 8), torch.randn(3000, 8)
    tokens = torch.randint(0, 3000, (40,))
    tokens[:20] = (x @ matrix.T).argsort(-1, descending=True)[torch.arange(20), torch.arange(20) % 8]
    wanted = ((x @ matrix.T).topk(5).indices == tokens[:, None]).any(-1)
    assert torch.equal(copying.in_top(x, matrix, tokens, 5), wanted) and 0 < wanted.sum() < 40


def test_where_no_name_can_be_moved():
    alone, encoder, without = build(tiny()), build(tiny(causal=False)), build(tiny(mixer="none"))
    assert np.isnan(copying.name_mover_scores(alone, record(alone, (3,)))).all()
    assert copying.name_mover_scores(encoder, record(encoder, IDS)) is None
    assert copying.name_mover_scores(without, record(without, IDS)) is None
