"""Backpropagation through one prediction, against PyTorch's autograd and finite differences in float64; one
optimiser's step, against the engine's optimisers on the whole model.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from engine.config import TrainConfig
from engine.data.progress import finish
from engine.errors import ConfigError, ShapeError
from engine.model import Transformer
from engine.probe import Patcher, Probe, identity
from engine.recording import record
from engine.training.numerics import choose
from engine.training.optim import Optimiser, layout, orthogonalise
from studies.guesses import backward as guesses
from studies.residual.stream import states
from studies.shapes.backward import SHOWN, backward, finite_difference, matrices, nudges, trainable_twin
from studies.shapes.optimiser_step import (
    MAX_PARAMETERS,
    RULES,
    SGD_RATE,
    Rule,
    SingleStep,
    gradients,
    single_step,
    spectra,
    update_of,
)
from tests.engine.cases import for_each
from tests.engine.helpers import ARCHITECTURES, loud, tiny

IDS = (3, 1, 4, 1, 5, 9, 2, 6)
POSITION = 4


def doubled(name: str = "learned") -> Transformer:
    return loud(tiny(**ARCHITECTURES[name]), factor=4.0).double()


def loss_of(model: Transformer, position: int = POSITION, probe: Probe = identity) -> torch.Tensor:
    logits = model(torch.tensor([IDS]), probe)
    return F.cross_entropy(logits[0, position][None], torch.tensor([IDS[position + 1]]))


def autograd(model: Transformer, position: int = POSITION) -> dict[str, torch.Tensor]:
    """The gradient of every parameter by loss.backward(), on a copy."""
    twin = copy.deepcopy(model).requires_grad_(True)
    loss_of(twin, position).backward()
    return {n: torch.zeros_like(p) if p.grad is None else p.grad for n, p in twin.named_parameters()}


@for_each("name", ARCHITECTURES, fast=5)
def test_every_matrix_has_the_gradient_that_autograd_gives(name: str) -> None:
    model = doubled(name)
    found, true = backward(model, IDS, POSITION), autograd(model)
    assert found.loss == pytest.approx(float(loss_of(model).detach()), rel=1e-12)
    known, numbers = matrices(model), 0
    assert set(found.gradients) == set(known)
    for key, matrix in known.items():
        whole = true[matrix.name][matrix.start : matrix.stop].numpy()
        each = found.gradients[key]
        numbers += whole.size
        sizes = np.linalg.norm(whole), np.abs(whole).max()
        assert each.shape == whole.shape and each.has(each.entry)
        assert (each.norm, each.largest) == pytest.approx(sizes, rel=1e-9, abs=1e-15)
        assert each.values.shape == tuple(min(SHOWN, n) for n in whole.shape)
        np.testing.assert_allclose(each.values, whole[np.ix_(each.rows, each.columns)], rtol=1e-9, atol=1e-14)
    tables = ("embedding", "unembedding")
    inside = [p for n, p in model.named_parameters() if p.dim() == 2 and (n in tables or "blocks." in n)]
    assert numbers == sum(p.numel() for p in inside), "every number of every matrix belongs to one of them"


def test_stacked_matrices_are_told_apart() -> None:
    known = matrices(doubled("gated, qk-norm"))
    assert [key for key in known if key.startswith("1.")] == [
        f"1.W_{name}" for name in ("Q", "K", "V", "O", "gate", "in", "out")
    ]
    assert (known["1.W_K"].start, known["1.W_K"].stop, known["1.W_K"].block) == (16, 32, 1)


def test_the_error_at_the_logits_is_p_minus_y() -> None:
    model = doubled()
    found = backward(model, IDS, POSITION)
    p = model(torch.tensor([IDS]))[0, POSITION].softmax(-1).detach().numpy()
    y = np.eye(len(p))[IDS[POSITION + 1]]
    np.testing.assert_allclose(found.error, p - y, atol=1e-14)
    assert abs(found.error.sum()) < 1e-14 and found.loss == pytest.approx(-np.log(p[found.target]))
    assert found.error_norm == pytest.approx(np.sqrt(((p - y) ** 2).sum()))
    assert found.largest_errors(3)[0] == found.target
    rest = [i for i in np.argsort(-p) if i != found.target]
    assert found.largest_errors(3)[1:] == rest[:2]


@for_each("name", ["learned", "post", "parallel", "no residual", "gated, qk-norm"], fast=2)
def test_the_streams_gradient_is_what_the_loss_does_when_the_stream_is_moved(name: str) -> None:
    """Each number of each state moved by itself, in float64."""
    model, epsilon = doubled(name), 1e-5
    found = backward(model, IDS, POSITION)
    known = states(record(model, IDS))
    assert [each.label for each in known] == list(found.states) and len(found.parts) == len(found.states)
    for row, state in enumerate(known):
        slopes = np.zeros(state.array.shape)
        for token in range(POSITION + 1):
            for i in range(state.array.shape[1]):
                there = torch.zeros(1, len(IDS), state.array.shape[1], dtype=torch.float64)
                there[0, token, i] = epsilon
                with torch.no_grad():
                    up = float(loss_of(model, probe=Patcher({state.name: there.add})))
                    down = float(loss_of(model, probe=Patcher({state.name: there.neg().add})))
                slopes[token, i] = (up - down) / (2 * epsilon)
        np.testing.assert_allclose(found.norms[row], np.linalg.norm(slopes, axis=1), rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(found.totals, np.linalg.norm(found.norms, axis=1))


def test_no_gradient_reaches_a_later_token() -> None:
    found = backward(doubled(), IDS, POSITION)
    assert not found.norms[:, POSITION + 1 :].any() and found.norms[0, : POSITION + 1].all()
    assert found.reached == POSITION + 1 and not found.norms[-1, :POSITION].any()


@for_each("name", ["learned", "gated, qk-norm", "shared qk"])
def test_a_finite_difference_is_the_gradient(name: str) -> None:
    model = doubled(name)
    found = backward(model, IDS, POSITION)
    for key, each in found.gradients.items():
        slope = finite_difference(model, found, key, each.entry, 1e-5)
        assert slope == pytest.approx(each.at(each.entry), rel=1e-5, abs=1e-9), key


def test_a_nudge_is_measured_on_a_model_with_that_weight_changed_and_leaves_the_model_alone() -> None:
    model = loud(tiny(), factor=4.0).requires_grad_(False)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    found = backward(model, IDS, POSITION)
    key = found.steepest()
    inside = [each for each in found.gradients.values() if each.matrix.block is not None]
    assert found.gradients[key].largest == max(each.largest for each in inside)
    matrix, entry = found.gradients[key].matrix, found.gradients[key].entry
    result = finish(nudges(model, found, key, entry, (-0.2, 0.0, 0.1)))
    for amount, loss in zip(result.amounts, result.losses, strict=True):
        changed = copy.deepcopy(model)
        with torch.no_grad():
            changed.get_parameter(matrix.name)[matrix.start + entry[0], entry[1]] += amount
        assert loss == pytest.approx(float(loss_of(changed)), abs=1e-6)
    assert result.measured[1] == pytest.approx(0, abs=1e-9) and result.index(0.09) == 2
    np.testing.assert_allclose(result.predicted, result.gradient * np.array([-0.2, 0.0, 0.1]))
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    assert not any(parameter.requires_grad for parameter in model.parameters())


def test_a_twin_shares_the_weights() -> None:
    model = loud(tiny()).requires_grad_(False)
    twin = dict(trainable_twin(model).named_parameters())
    for name, parameter in model.named_parameters():
        assert twin[name].data_ptr() == parameter.data_ptr() and twin[name].requires_grad


def test_a_small_nudge_is_predicted_and_the_guess_says_by_how_much() -> None:
    model = doubled()
    found = backward(model, IDS, POSITION)
    key = found.steepest()
    result = finish(nudges(model, found, key, found.gradients[key].entry, (1e-4,)))
    assert result.measured[0] == pytest.approx(result.predicted[0], rel=1e-2)
    truth = guesses.nudge(result, 0)
    assert truth is not None and truth.right == "same"
    for factor, right in ((2.0, "more"), (0.5, "less"), (-1.0, "less")):
        moved = replace(result, losses=result.loss + factor * result.predicted)
        other = guesses.nudge(moved, 0)
        assert other is not None and other.right == right
    assert guesses.nudge(replace(result, gradient=0.0), 0) is None


def test_what_predicts_no_next_token_is_refused() -> None:
    model = loud(tiny())
    for position in (-1, len(IDS) - 1):
        with pytest.raises(ShapeError, match="position must be"):
            backward(model, IDS, position)
    with pytest.raises(ConfigError, match="causal"):
        backward(loud(tiny(causal=False)), IDS, 0)
    found = backward(loud(tiny(d_ff=64)), IDS, POSITION)
    gradient = found.gradients["0.W_in"]
    hidden = next(row for row in range(64) if row not in gradient.rows)
    with pytest.raises(ShapeError, match="was not kept"):
        finish(nudges(model, found, "0.W_in", (hidden, 0)))


# One step ---------------------------------------------------------------------------------------


def text_loss(model: Transformer) -> torch.Tensor:
    return F.cross_entropy(model(torch.tensor([IDS]))[0, :-1], torch.tensor(IDS[1:]))


@for_each("rule", ["adamw", "muon"])
@for_each("name", ["learned", "gated, qk-norm", "biases"])
def test_a_step_is_the_one_that_the_engines_optimiser_takes_on_the_whole_model(
    rule: Literal["adamw", "muon"], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # bfloat16's rounding is coarse
    monkeypatch.setattr("engine.training.optim.gains_by_bfloat16", lambda device: False)
    model = loud(tiny(**ARCHITECTURES[name]), factor=4.0)
    trained = copy.deepcopy(model).requires_grad_(True)
    config = TrainConfig(optimizer=rule, weight_decay=0.0, grad_clip=0.0)
    before = float(text_loss(trained).detach())
    Optimiser(trained, config, choose("float32", "cpu")).update(text_loss(trained), 1.0)
    loss, found = gradients(model, IDS)
    assert loss == pytest.approx(before, rel=1e-5)
    after = dict(trained.named_parameters())
    own = dict(model.named_parameters())
    for slot in layout(model):
        update = update_of(slot, found[slot.name], rule)
        torch.testing.assert_close(own[slot.name] + update, after[slot.name], rtol=0, atol=3e-5)
        assert update.abs().max() > 0
    taken = finish(single_step(model, IDS, (0.5, 1.0)))
    assert taken.before == pytest.approx(before, rel=1e-5)
    assert taken.at(rule, 1.0) == pytest.approx(float(text_loss(trained).detach()), rel=1e-3)
    assert taken.lowest(1.0) == min(RULES, key=lambda each: taken.after[each][1])


def test_sgd_moves_against_the_gradient() -> None:
    model = loud(tiny(), factor=4.0)
    _, found = gradients(model, IDS)
    changed = copy.deepcopy(model)
    with torch.no_grad():
        for name, parameter in changed.named_parameters():
            parameter.sub_(0.5 * SGD_RATE * found[name])
    taken = finish(single_step(model, IDS, (0.5,)))
    assert taken.at("sgd", 0.5) == pytest.approx(float(text_loss(changed).detach()), rel=1e-5)
    assert taken.at("sgd", 0.5) < taken.before


@for_each("sgd, adamw, muon, right, scale", [
    ((1.9, 1.8, 1.7), (1.9, 2.5, 9.0), (1.5, 1.6, 3.0), "adamw", 1.0),
    ((1.9, 3.0, 9.0), (1.0, 9.0, 9.0), (1.5, 2.1, 3.0), "sgd", 1.0),
    ((2.5, 2.6, 2.7), (1.9, 9.0, 9.0), (1.5, 1.6, 3.0), "sgd", 0.5),
    ((1.9, 1.8, 1.7), (1.9, 1.9, 1.9), (1.5, np.nan, 3.0), "muon", 1.0),
    ((1.9, 1.8, 1.7), (1.9, 1.9, 1.9), (1.5, 1.6, 2.0), None, None),
])  # fmt: skip
def test_the_first_to_overshoot_is_the_curve_that_first_crosses_the_loss_before(
    sgd: Any, adamw: Any, muon: Any, right: str | None, scale: float | None
) -> None:
    after: dict[Rule, np.ndarray] = {"sgd": np.array(sgd), "adamw": np.array(adamw), "muon": np.array(muon)}
    truth = guesses.overshoots(SingleStep(2.0, np.array((0.5, 1.0, 2.0)), after))
    assert (truth and truth.right) == right
    if truth:
        assert truth.numbers["scale"] == scale and truth.offered == RULES


def test_singular_values_are_those_of_the_gradient_its_sign_and_its_orthogonal_factor() -> None:
    model = loud(tiny(), factor=4.0)
    _, found = gradients(model, IDS)
    known = matrices(model)["1.W_V"]
    gradient = known.of(found[known.name])
    result = finish(spectra(model, IDS, "1.W_V"))
    assert result.rank == len(IDS) - 1 and result.shape == (16, 16)
    true: dict[Rule, torch.Tensor] = {
        "sgd": torch.linalg.svdvals(SGD_RATE * gradient.double()),
        "adamw": torch.linalg.svdvals(1e-3 * (gradient / (gradient.abs() + 1e-8)).double()),
    }
    for rule, values in true.items():
        np.testing.assert_allclose(result.values[rule], values, rtol=1e-3, atol=1e-6)
    exact = torch.linalg.svdvals(orthogonalise(gradient[None].float())[0].double())
    np.testing.assert_allclose(result.relative("muon")[:3], (exact / exact[0])[:3], atol=0.05)
    assert result.middle("muon") > result.middle("adamw") > result.middle("sgd")
    assert result.relative("sgd")[0] == 1


def test_muons_singular_values_are_close_together_where_the_gradient_has_full_rank() -> None:
    model = loud(tiny(context=64, vocab_size=40), factor=4.0)
    ids = torch.randint(40, (64,), generator=torch.Generator().manual_seed(0)).tolist()
    result = finish(spectra(model, ids, "0.W_O"))
    assert result.rank == 16 and result.middle("muon") > 0.6 and result.evened


def test_a_model_without_a_gradient_has_no_steps_to_tell_apart() -> None:
    """A first token attends to itself alone, so no query and no key has a gradient."""
    found = backward(doubled(), IDS, 0)
    gradient = found.gradients["0.W_Q"]
    assert gradient.largest == 0 and gradient.has(gradient.entry)
    result = finish(spectra(loud(tiny()), IDS[:2], "0.W_K"))
    assert result.middle("sgd") == 0 and not result.evened


def test_a_step_is_refused_where_it_cannot_be_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    model = loud(tiny())
    with pytest.raises(ConfigError, match="is not a matrix"):
        finish(spectra(model, IDS, "9.W_Q"))
    assert MAX_PARAMETERS > 134_515_008, "SmolLM2-135M is taken"
    monkeypatch.setattr("studies.shapes.optimiser_step.MAX_PARAMETERS", 100)
    with pytest.raises(ConfigError, match="three copies"):
        finish(single_step(model, IDS))
