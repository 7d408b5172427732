"""The loss of a model whose matrices were rounded, held against a copy that was changed by hand."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from engine.config import ModelConfig
from engine.errors import ConfigError, ShapeError
from engine.measure.quantising import Losses, chosen, losses, matrices, twin
from engine.measure.rounding import BITS, Rounding, rounded
from engine.model import Transformer
from engine.progress import Progress, finish
from tests.engine.cases import for_each
from tests.engine.helpers import loud, tiny

IDS = (1, 2, 3, 4, 5, 6, 7)
VARIANTS = (
    tiny(),
    tiny(position="rope", norm="rmsnorm", ffn="swiglu", tie_embeddings=False),
    tiny(wiring="parallel", position="t5", mixer="shared_qk", ffn_bias=True),
)


def by_hand(model: Transformer, names: tuple[str, ...], way: Rounding) -> float:
    """A whole copy, its matrices overwritten."""
    other = copy.deepcopy(model)
    with torch.no_grad():
        for name, parameter in other.named_parameters():
            if name in names:
                parameter.copy_(rounded(parameter, way).values)
        logits = other(torch.tensor([IDS]))[0]
    return float(F.cross_entropy(logits[:-1], torch.tensor(IDS[1:])))


@for_each("config", VARIANTS)
@for_each("scope", ["matrix", "kind", "all"])
def test_the_loss_is_that_of_a_changed_copy(config: ModelConfig, scope: str) -> None:
    model = loud(config)
    before = {name: x.clone() for name, x in model.state_dict().items()}
    names = chosen(model, "blocks.1.ffn.w_in.weight", scope)  # type: ignore[arg-type]
    found = finish(losses(model, IDS, names, offset=True))
    for i, bits in enumerate(BITS):
        assert found.by_block[i] == pytest.approx(by_hand(model, names, Rounding(bits, 32, True)), abs=1e-5)
        assert found.whole[i] == pytest.approx(by_hand(model, names, Rounding(bits, 0, True)), abs=1e-5)
    assert abs(found.by_block[-1] - found.full) > 1e-4
    assert found.at(32, whole=True) == found.full and found.at(2, whole=False) == found.by_block[-1]
    assert found.perplexity(32, False) == pytest.approx(np.exp(found.full))
    assert all(torch.equal(before[name], x) for name, x in model.state_dict().items())


def test_a_shared_model_is_never_touched() -> None:
    """Even while the twin computes, nobody else sees a rounded matrix: not by value, not by identity."""
    model = loud(tiny())
    before = dict(model.named_parameters())
    held = {name: (x, x.clone(), x.data_ptr()) for name, x in before.items()}
    names = chosen(model, "embedding", "all")
    made = twin(model, names, Rounding(2))

    def looked(name: str, x: torch.Tensor) -> torch.Tensor:
        for at, parameter in model.named_parameters():
            same, value, place = held[at]
            assert parameter is same and parameter.data_ptr() == place and torch.equal(parameter, value)
        return x

    first = made(torch.tensor([IDS]), looked)
    assert torch.equal(first, made(torch.tensor([IDS])))
    inside = dict(made.named_parameters())
    shared = [name for name in before if inside[name].data_ptr() == before[name].data_ptr()]
    assert sorted(before.keys() - set(shared)) == ["embedding"]  # blocks give theirs up behind them


def test_the_matrices_of_a_model() -> None:
    model = loud(tiny(ffn_bias=True, attention_bias=True))
    found = matrices(model)
    assert found["ffn.w_in.weight"] == ("blocks.0.ffn.w_in.weight", "blocks.1.ffn.w_in.weight")
    assert found["embedding"] == ("embedding",)
    named = {name for names in found.values() for name in names}
    assert "positions.weight" in dict(model.named_parameters()) and "positions.weight" not in named
    assert not any(name.endswith(("bias", "gain")) for name in named)
    assert set(chosen(model, "embedding", "all")) == named
    assert chosen(model, "embedding", "kind") == ("embedding",)
    model = loud(tiny())
    names = chosen(model, "blocks.0.mixer.w_o.weight", "kind")
    steps, seen = losses(model, IDS, names), []
    try:
        while True:
            seen.append(next(steps))
    except StopIteration as end:
        found = end.value
    assert seen == [Progress(i, 9) for i in range(1, 10)]
    assert (found.matrices, found.numbers, found.tokens) == (2, 2 * 16 * 16, 6)
    by_block = np.array([{4: 1.5}.get(bits, 1.01) for bits in BITS])
    found = Losses(1.0, by_block, np.full(len(BITS), 3.0), 1, 1, 1)
    assert found.enough(whole=False, more=0.02) == 8  # 3 would do, 4 would not
    assert found.enough(whole=False, more=0.5) == min(BITS)
    assert found.enough(whole=True, more=0.02) == 32


def test_what_cannot_be_measured() -> None:
    model = loud(tiny())
    names = chosen(model, "embedding", "matrix")
    with pytest.raises(ShapeError, match="one token"):
        finish(losses(model, (1,), names))
    with pytest.raises(ShapeError, match="encoder"):
        finish(losses(loud(tiny(causal=False)), IDS, names))
    with pytest.raises(ConfigError, match="no matrix"):
        chosen(model, "positions.weight", "kind")
    with pytest.raises(ConfigError, match="no matrix"):
        twin(model, ("nothing",), Rounding(4))
