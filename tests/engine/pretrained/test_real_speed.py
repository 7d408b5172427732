"""On the real model: other arithmetics write nearly what the exact one writes, and the lens holds no more
than it shows.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.errors import ConfigError
from engine.measure.lens import logit_lens
from engine.measure.recording import record
from engine.model import Transformer
from engine.parts.row_products import Arithmetic
from engine.pretrained import cache, load, sources
from engine.progress import finish
from engine.sample.decoder import Decoder, ready
from engine.sample.rounding import rounding

TEXT = "The capital of France is Paris, and the capital of Italy is Rome."
PATH = sources.find("smollm2-135m")
pytestmark = pytest.mark.skipif(
    PATH is None, reason="SmolLM2's carrier (requirements-models.txt) is not installed"
)


@pytest.fixture(scope="module")
def real() -> tuple[Transformer, tuple[int, ...]]:
    assert PATH is not None
    opened = load.open_model(PATH)
    return opened.model(cache.weights(opened, PATH)), tuple(opened.vocabulary().encode(TEXT))


@pytest.mark.exhaustive
@pytest.mark.parametrize("arithmetic", ["bfloat16", "int8"])
def test_a_rounded_model_loses_little(
    real: tuple[Transformer, tuple[int, ...]], arithmetic: Arithmetic
) -> None:
    model, ids = real
    try:
        products = ready(model, arithmetic)
    except ConfigError as error:
        pytest.skip(str(error))
    found = finish(rounding(model, ids, products))
    assert abs(found.change) < 0.1 and found.alike > 0.8
    assert 0.01 < found.mean < found.largest < 1.2 * found.spread


@pytest.mark.exhaustive
@torch.inference_mode()
def test_reading_one_token_at_a_time_copies_no_large_matrix(
    real: tuple[Transformer, tuple[int, ...]],
) -> None:
    model, ids = real
    decoder, whole = Decoder(model), model(torch.tensor([ids]))[0]
    assert decoder._row is not None
    held = decoder._row.unembedding.multiply.weight  # type: ignore[attr-defined]
    assert held.data_ptr() == model.embedding.data_ptr()
    ours = torch.stack([decoder.read([token]) for token in ids])
    assert float((ours - whole).abs().max()) < 1e-3


@pytest.mark.exhaustive
def test_the_lens_holds_what_it_shows_and_finds_the_answer(real: tuple[Transformer, tuple[int, ...]]) -> None:
    model, ids = real
    recording = record(model, ids[:5])
    lens = logit_lens(model, recording)
    assert sum(one.nbytes for one in vars(lens).values()) < 100_000
    x = torch.tensor(recording["blocks.19.resid_post"][4]).double()
    normed = model.norm_final.gain.double() * x / (x.square().mean() + model.config.norm_eps).sqrt()
    log_p = (model.output_matrix.double() @ normed).log_softmax(0).detach()
    final = torch.tensor(recording.log_probabilities[4])
    assert lens.guess[20, 4] == int(log_p.argmax())
    np.testing.assert_allclose(lens.here[20, 4], log_p.exp()[lens.likeliest[20, 4]], atol=1e-5)
    assert lens.kl[20, 4] == pytest.approx(float((final.exp() * (final - log_p)).sum()), abs=1e-3)
    assert lens.guess[-1, 4] == ids[5]  # " Paris"
