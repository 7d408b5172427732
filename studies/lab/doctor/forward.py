"""Checks that need nothing but the model: one or two forward passes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from engine.config import ResolvedConfig
from engine.errors import ConfigError, GlassformerError
from engine.model import Transformer, build
from engine.parts.attention import HeadMixer, Sinks
from engine.probe import Patcher, Recorder
from engine.recording import record
from engine.sample import Decoder
from studies.costs.cards.table import card_of
from studies.costs.meta_device import plain_sizes
from studies.lab.doctor.case import Case, NotApplicable, relative_difference
from studies.lab.doctor.check import Measurement
from studies.lab.reference.compare import held
from studies.lab.reference.second import forward

STRESS = (20.0, 100_000.0)  # largest scores that a softmax must survive
MASKED = "masked_scores"  # where minus infinity is meant
ROUNDED = 1e-4  # in single precision: what is less is rounding
ENTRIES = 64  # vectors of queries and of keys that are compared


def _mixes(case: Case) -> None:
    if not case.model.parts.mixer(case.wanted).present:
        raise NotApplicable("In this model tokens never exchange information.")


@torch.no_grad()
def sees_the_future(case: Case) -> Measurement:
    """Measures the largest change of a logit, as a share, when later tokens or other texts change."""
    if not case.predicts_next:
        raise NotApplicable("This model attends both ways by design: it fills in masked tokens.")
    model, ids = case.exact, case.ids
    before = model(ids)
    length, vocab = ids.shape[1], model.config.vocab_size
    worst, where = 0.0, 0
    texts = 1 if case.large else len(ids)  # a pass through a large model takes a while, and here are many
    for place in range(length - 1):
        changed = ids[:texts].clone()
        changed[:, place + 1 :] = (changed[:, place + 1 :] + 1 + place % (vocab - 1)) % vocab
        change = relative_difference(before[:texts, : place + 1], model(changed)[:, : place + 1])
        if change > worst:
            worst, where = change, place
    alone = relative_difference(before[:1], model(ids[:1]))  # other texts of a batch are none of its business
    return Measurement(max(worst, alone), {"place": where, "next": where + 1})


@torch.no_grad()
def rows_of_the_pattern(case: Case) -> Measurement:
    """Measures how far the sum of a query's weights is from 1, at most; what a learned sink takes counts."""
    _mixes(case)
    patterns = _kept(case, {"pattern"})
    if not patterns:
        raise NotApplicable("This model has no attention weights to check.")
    sinks = {
        f"blocks.{i}.pattern": block.mixer.sink.double()
        for i, block in enumerate(case.model.blocks)
        if isinstance(block.mixer, Sinks)
    }
    scores = _kept(case, {MASKED}) if sinks else {}
    rows = []
    for name, pattern in patterns.items():
        total = pattern.double().sum(-1)  # (batch, head, query)
        if name in sinks:
            sink = sinks[name][:, None]
            masked = scores[name.replace("pattern", MASKED)].double()
            total = total + (sink - torch.logaddexp(masked.logsumexp(-1), sink)).exp()
        rows.append(total.flatten())
    sums = torch.cat(rows)
    worst = float((sums - 1).abs().nan_to_num(torch.inf).max())
    return Measurement(worst, {"least": float(sums.min()), "most": float(sums.max()), "rows": sums.numel()})


@torch.no_grad()
def spread_of_scores(case: Case) -> Measurement:
    """Measures the standard deviation of the scores that the first mixer gives to queries and keys whose
    entries are N(0, 1): sqrt(d_head) without the division, 1 with it (Vaswani et al. 2017, 3.2.1).
    """
    _mixes(case)
    mixer, c = next(m for m in case.exact.modules() if _is_mixer(m, case)), case.wanted
    if not (isinstance(mixer, HeadMixer) and card_of(type(mixer)).scored):
        raise NotApplicable("This model does not compare queries with keys.")
    if not c.score_scale:
        raise NotApplicable("This model leaves its scores unscaled by design, as T5 does.")
    random = torch.Generator().manual_seed(0)
    like = next(case.exact.parameters())
    q, k = (
        torch.randn(1, n, ENTRIES, c.d_head, generator=random).to(like) for n in (c.n_heads, c.n_kv_heads)
    )
    return Measurement(float(mixer.scores(q, k).double().std()), {"d_head": c.d_head})


def _is_mixer(module: object, case: Case) -> bool:
    return isinstance(module, case.model.parts.mixer(case.wanted))


@torch.no_grad()
def bag_of_words(case: Case) -> Measurement:
    """Measures the largest change of a token's logits when all tokens are shuffled and the mask is off, as a
    share of the largest one. Without positions it is 0. (Reversing would not do: ALiBi knows distances only,
    which stay.)
    """
    _mixes(case)
    if case.wanted.position == "none":
        raise NotApplicable("This model has no positions by design.")
    if case.wanted.mixer == "mean" and case.wanted.position == "rope":
        raise NotApplicable("An average has no queries and keys for RoPE to rotate.")
    model, ids = case.exact, case.ids
    order = torch.randperm(ids.shape[1], generator=torch.Generator().manual_seed(0))
    mask = model.mask
    model.mask = lambda *about: None  # type: ignore[method-assign]
    try:
        change = relative_difference(model(ids[:, order]), model(ids)[:, order])
    finally:
        model.mask = mask  # type: ignore[method-assign]
    return Measurement(0.0 if case.large and change < ROUNDED else change)


def shapes_and_names(case: Case) -> Measurement:
    """Counts activations that are missing, added, passed otherwise or of another shape than was meant."""
    texts, tokens = 3, min(7, case.model.config.context)
    ids = torch.zeros(texts, tokens, dtype=torch.int64)
    theirs, ours = _Seen(), _Seen()
    meant = replace(case.wanted, vocab_size=case.model.config.vocab_size)
    model = build(meant, device="meta").train(False)
    with torch.no_grad():
        with plain_sizes():
            model(ids.to("meta"), theirs)
        case.exact(ids.to(next(case.exact.parameters()).device), ours)
    names = [*theirs.shapes, *(name for name in ours.shapes if name not in theirs.shapes)]
    wrong = [name for name in names if ours.shapes.get(name) != theirs.shapes.get(name)]
    first = wrong[0] if wrong else ""
    facts: dict[str, str | int] = {
        "wanted": _written(theirs.shapes.get(first)),
        "there": _written(ours.shapes.get(first)),
        "first": first,
        "checked": len(theirs.shapes),
    }
    return Measurement(float(len(wrong)), facts)


class _Seen:
    """A probe that writes down every shape that passes, by name."""

    def __init__(self) -> None:
        self.shapes: dict[str, list[tuple[int, ...]]] = {}

    def __call__(self, name: str, x: Tensor) -> Tensor:
        self.shapes.setdefault(name, []).append(tuple(x.shape))
        return x


def _written(shapes: list[tuple[int, ...]] | None) -> str:
    if not shapes:
        return "missing"
    return f"{shapes[0]}" if len(shapes) == 1 else f"present {len(shapes)} times"


def numbers_and_range(case: Case) -> Measurement:
    """Counts numbers that are not finite, forward, backward, and with scores as large as STRESS."""
    model, recorder = case.copied().train(False), Recorder()
    if case.large:
        with torch.no_grad():
            model(case.ids, recorder)
        gradients: tuple[Tensor, ...] = ()
    else:
        out = model.requires_grad_(True)(case.ids, recorder)
        gradients = torch.autograd.grad(
            out.logsumexp(-1).mean(), list(model.parameters()), materialize_grads=True
        )
    seen = [
        x.nan_to_num(torch.nan, 0.0, 0.0) if name.endswith(MASKED) else x
        for name, x in recorder.tensors.items()
    ]
    plain = sum(map(_bad, (*seen, *gradients)))
    stressed = [_stressed(model, case, recorder, largest) for largest in STRESS]
    facts: dict[str, str | int] = {"plain": f"{plain:,}", "most": f"{STRESS[-1]:,.0f}", "checked": len(seen)}
    return Measurement(float(plain + sum(stressed)), facts)


def _bad(x: Tensor) -> int:
    return int((~x.isfinite()).sum()) if x.is_floating_point() else 0


@torch.no_grad()
def _stressed(model: Transformer, case: Case, seen: Recorder, largest: float) -> int:
    """Numbers that are none in the patterns, when queries are so long that the largest score is `largest`."""
    edits = {}
    for name, scores in seen.tensors.items():
        if name.endswith(".scores"):
            size = float(scores.float().nan_to_num(0.0, 0.0, 0.0).abs().max())
            edits[f"{name.removesuffix('scores')}q_rot"] = partial(torch.mul, other=largest / max(size, 1e-6))
    again = Recorder({"pattern"})
    model(case.ids, Patcher(edits, again))
    return sum(map(_bad, again.tensors.values()))


@torch.no_grad()
def twice_the_same(case: Case) -> Measurement:
    """Measures the largest difference between two evaluations of a text, as a share of the largest logit."""
    model = case.copied()
    if not case.large:
        model.parts.mode(model, True)
        model.parts.mode(model, False)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Measurement(relative_difference(model(case.ids), model(case.ids)))


def like_the_reference(case: Case) -> Measurement:
    """Measures how far stream and logits are from the second implementation's, relatively."""
    ids = case.ids[0]
    weights = {name: p.detach().float().cpu() for name, p in case.model.named_parameters()}
    try:
        theirs = forward(_same_vocabulary(case), weights, ids.cpu())
    except ConfigError as error:
        raise NotApplicable(f"The second implementation does not cover this model: {error}.") from error
    except KeyError as missing:
        return Measurement(float("inf"), {"begins": f"the tensor {missing.args[0]}, which is missing"})
    except RuntimeError:
        return Measurement(float("inf"), {"begins": "the shape of a tensor"})
    try:
        comparison = held(record(case.evaluated, ids.tolist()), theirs)
    except GlassformerError as error:
        return Measurement(float("inf"), {"begins": str(error)})
    begins = comparison.begins
    return Measurement(
        max(comparison.worst.relative, comparison.last.relative),
        {"begins": f"`{begins.name}`" if begins else "nowhere"},
    )


def _same_vocabulary(case: Case) -> ResolvedConfig:
    return replace(case.wanted, vocab_size=case.model.config.vocab_size)


@torch.inference_mode()
def cached_alike(case: Case) -> Measurement:
    """Measures how far the last logits are apart when a text is read at once and with a KV cache."""
    if not case.model.output.present or not case.model.can_cache:
        raise NotApplicable(
            "This model cannot use a KV cache: later tokens change what earlier ones compute."
        )
    model, ids = case.evaluated, case.ids[0].tolist()
    whole = model(torch.tensor([ids], device=case.ids.device))[0]
    decoder = Decoder(model)
    rows = [decoder.read([i]) for i in ids]
    return Measurement(relative_difference(torch.stack(rows), whole), {"tokens": len(ids)})


def _kept(case: Case, names: set[str]) -> dict[str, Tensor]:
    recorder = Recorder(names)
    case.evaluated(case.ids, recorder)
    return recorder.tensors
