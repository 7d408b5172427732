"""The first token as a sink."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from engine.errors import ConfigError, ShapeError
from engine.measure.habits import Named
from engine.measure.sinks import FEWEST, Opened, Sinks, measure
from engine.model import Transformer
from engine.parts.cache import KVCache
from engine.probe import Recorder
from engine.progress import finish
from tests.engine.cases import for_each
from tests.engine.helpers import loud, tiny

IDS = (3, 9, 1, 6, 2, 7, 5, 4, 8)  # halves from position 4 on
OTHER = 10
VARIANTS: dict[str, dict[str, Any]] = {
    "learned": {"context": 12}, "rope": {"position": "rope", "norm": "rmsnorm"},
    "alibi": {"position": "alibi"}, "t5": {"position": "t5"}, "none": {"position": "none"},
    "post": {"position": "rope", "wiring": "post"}, "grouped": {"position": "rope", "n_kv_heads": 2},
    "mean": {"position": "none", "mixer": "mean"},
}  # fmt: skip


def plain(model: Transformer, ids: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """(loss of each token after the first, (layer, head) mean weight on position 0 of later queries)"""
    seen, tokens = Recorder({"pattern"}), torch.tensor([ids])
    with torch.no_grad():
        logits = model(tokens, seen)[0]
    losses = F.cross_entropy(logits[:-1], tokens[0, 1:], reduction="none").numpy()
    layers = range(model.config.n_layers)
    share = np.stack([seen[f"blocks.{i}.pattern"][0, :, 1:, 0].mean(-1).numpy() for i in layers])
    return losses, share


@for_each("fields", VARIANTS.values(), ids=VARIANTS)
def test_texts_that_begin_otherwise(fields: dict[str, Any]) -> None:
    model = loud(tiny(**fields))
    found = finish(measure(model, IDS, OTHER))
    assert (found.half, found.control, found.other) == (4, 2, OTHER)
    texts = {"kept": IDS, "other": (OTHER, *IDS), "dropped": IDS[1:]}
    for opening, text in texts.items():
        told = found.of(opening)  # type: ignore[arg-type]
        losses, share = plain(model, text)
        assert told.ids == text and told.seen == 0
        # the tokens after position 4 of the text: 2 is predicted by 6, and so on; the same four in each
        assert told.loss == pytest.approx(losses[-4:].mean(), abs=1e-5)
        np.testing.assert_allclose(told.share, share, atol=1e-6)
        even = np.mean([1 / (i + 1) for i in range(1, len(text))])
        assert told.even == pytest.approx(even)
    assert found.change("dropped") == pytest.approx(found.of("dropped").loss - found.of("kept").loss)


def test_a_cache_that_loses_its_first_or_another_token() -> None:
    model = loud(tiny(position="none", context=16))
    cache = KVCache(model.config, 16, model.embedding)
    with torch.no_grad():
        model(torch.tensor([IDS[:4]]), cache=cache)
        cache.held[..., :3, :] = cache.held[..., 1:4, :].clone()
        cache.length = 3
        seen = Recorder({"pattern"})
        logits = model(torch.tensor([IDS[4:]]), seen, cache)[0]
    losses = F.cross_entropy(logits[:-1], torch.tensor(IDS[5:]), reduction="none").numpy()
    found = finish(measure(model, IDS, OTHER))
    told = found.of("forgotten")
    assert told.loss == pytest.approx(losses.mean(), abs=1e-5)
    # what was the second token is the first in the cache
    share = np.stack([seen[f"blocks.{i}.pattern"][0, :, :, 0].mean(-1).numpy() for i in range(2)])
    np.testing.assert_allclose(told.share, share, atol=1e-6)
    assert told.seen == 1
    assert told.even == pytest.approx(np.mean([1 / n for n in (4, 5, 6, 7, 8)]))
    assert abs(found.change("forgotten")) > 0.01
    cache = KVCache(model.config, 16, model.embedding)
    with torch.no_grad():
        model(torch.tensor([IDS[:4]]), cache=cache)
        cache.held[..., 2:3, :] = cache.held[..., 3:4, :].clone()  # place 2 is gone
        cache.length = 3
        logits = model(torch.tensor([IDS[4:]]), cache=cache)[0]
    losses = F.cross_entropy(logits[:-1], torch.tensor(IDS[5:]), reduction="none").numpy()
    told = finish(measure(model, IDS, OTHER)).of("control")
    assert told.loss == pytest.approx(losses.mean(), abs=1e-5) and told.seen == 0


def test_what_is_read_off_the_shares() -> None:
    told = Opened("kept", IDS, 0, np.array([[0.2, 0.6], [0.4, 0.0]]), 0.1, 2.0)
    assert told.mean == pytest.approx(0.3) and told.by_layer.tolist() == pytest.approx([0.4, 0.2])
    assert told.most == Named(0, 1, 0.6) and told.resting == 2
    assert told.is_sink
    assert not Opened("kept", IDS, 0, told.share, 0.2, 2.0).is_sink, "1.5 times the even share"
    assert not Opened("kept", IDS, 0, np.array([[0.39, 0.39]]), 0.1, 2.0).is_sink, "no head rests there"
    both = Sinks(IDS, 4, OTHER, 2, (told, Opened("dropped", IDS, 0, told.share, 0.1, 2.5)))
    assert both.change("dropped") == 0.5 and both.change("kept") == 0.0


def test_what_cannot_be_measured() -> None:
    with pytest.raises(ShapeError, match=f"at least {FEWEST}"):
        finish(measure(loud(tiny()), IDS[: FEWEST - 1], OTHER))
    with pytest.raises(ConfigError, match="no next token"):
        finish(measure(loud(tiny(causal=False)), IDS[:8], OTHER))
