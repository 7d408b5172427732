"""A text's probability, loss and perplexity, against torch's own loss and against arithmetic by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from engine.errors import ShapeError
from engine.sample.scoring import score
from tests.engine.helpers import loud, some_tokens, tiny


def test_the_mean_is_torchs_loss() -> None:
    config = tiny()
    ids = some_tokens(config, batch=1, length=8)
    with torch.inference_mode():
        logits = loud(config)(ids)[0].double()
    found = score(logits.numpy(), ids[0].tolist())
    loss = float(F.cross_entropy(logits[:-1], ids[0, 1:]))
    assert found.likelihood.nats == pytest.approx(loss, abs=1e-9) and found.likelihood.tokens == 7
    assert found.likelihood.perplexity == pytest.approx(math.exp(loss))
    assert found.nats == pytest.approx(-np.log(found.p)) and found.guessing == pytest.approx(math.log(11))
    assert found.finite and found.nats[found.worst] == found.nats.max()


def test_the_product_of_a_long_text_has_a_power_that_no_float_holds() -> None:
    found = score(np.zeros((3001, 2)), [0] * 3001)
    mantissa, power = found.product
    exact = 10**1000 // 2**3000  # 8.1... · 10^96
    assert power == -904 and mantissa == pytest.approx(float(str(exact)[:8]) / 1e7, rel=1e-6)
    assert found.likelihood.perplexity == pytest.approx(2.0)
    with pytest.raises(ShapeError, match="one token"):
        score(np.zeros((1, 3)), [0])
    with pytest.raises(ShapeError, match="do not belong"):
        score(np.zeros((3, 3)), [0, 1])
    broken = score(np.full((2, 3), np.nan), [0, 1])
    assert not broken.finite
