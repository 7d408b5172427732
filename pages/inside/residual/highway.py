"""The gradient highway: fresh models of every depth and wiring, measured live."""

from __future__ import annotations

import math
from typing import Any, get_args

import numpy as np
import pandas as pd
import streamlit as st

from engine import corpora
from engine.config import ModelConfig
from engine.errors import CorpusError
from engine.measure.highway import Plan, Profile, Quantity, averaged, measure, ratio, slice_of
from pages.inside.residual import figures
from ui import explain, state
from ui.players.plot import plot
from ui.subject import Subject
from ui.text.markdown import safe

DEPTHS = {"24": (2, 4, 8, 16, 24), "48": (2, 4, 8, 16, 24, 32, 48), "96": (2, 4, 8, 16, 24, 32, 48, 64, 96)}
NORMS = {"LayerNorm": "layernorm", "RMSNorm": "rmsnorm", "none": "none"}
INITS = {"as in GPT-2": "scaled", "writes not scaled": "unscaled", "1/√inputs": "fan_in"}
QUANTITIES: dict[str, Quantity] = {"the stream": "gradients", "each block's weights": "weights"}
SEEDS = ("1", "3", "5")
DEEPEST = "deepest"
FIRST_SECONDS = 0.05  # of work before anything is drawn
SLICE_SECONDS = 0.25  # of work between two drawings: a control waits that long at most
EPS = ModelConfig.norm_eps  # of the measured models
FLAT = 3.0  # a ratio within this factor of 1 is called flat
_WORK = "residual_road_work"


@st.cache_resource(max_entries=32, show_spinner=False)
def _kept(plan: Plan, corpus: str) -> dict[str, tuple[Profile, ...]]:
    """Where the finished result of a plan is put."""
    return {}


def draw_highway(subject: Subject) -> None:
    """The controls, and a fragment that measures a slice, draws, and comes back until all is measured."""
    plan, quantity = _choose()
    corpus = (
        subject.corpus if subject.corpus != "shakespeare" or corpora.shakespeare_path() is not None else None
    )
    corpus = corpus or corpora.default_name()
    finished = _kept(plan, corpus).get("profiles")
    st.fragment(_measure_and_draw, run_every=None if finished else 0.1)(plan, corpus, quantity)


def _choose() -> tuple[Plan, Quantity]:
    """The plan from the widgets, whatever the URL says."""
    row = st.container(horizontal=True, gap="medium")
    deepest = _pick(
        row,
        "Deepest model (blocks)",
        list(DEPTHS),
        "48",
        "residual_deepest",
        "More blocks take longer: about a second per 300 blocks.",
    )
    seeds = _pick(
        row,
        "Seeds",
        list(SEEDS),
        "3",
        "residual_seeds",
        "Models of each kind; the geometric mean over them is drawn.",
    )
    norm = _pick(
        row,
        "Norm",
        list(NORMS),
        "LayerNorm",
        "residual_norm",
        "Without a norm, pre-norm and post-norm are the same model.",
    )
    hint = (
        "GPT-2: all matrices std 0.02, those that write to the stream also divided by √(2L). 1/√inputs keeps"
        " the size of what passes through a matrix."
    )
    init = _pick(row, "Initial weights", list(INITS), "as in GPT-2", "residual_init", hint)
    what = _pick(
        row,
        "Gradient by",
        list(QUANTITIES),
        "the stream",
        "residual_gradient",
        "Weights: all parameters of a block together.",
    )
    return (
        Plan(depths=DEPTHS[deepest], norm=NORMS[norm], init=INITS[init], seeds=int(seeds)),  # type: ignore[arg-type]
        QUANTITIES[what],
    )


def _pick(place: Any, label: str, options: list[str], first: str, key: str, hint: str) -> str:
    chosen = place.segmented_control(
        label, options, default=first, required=True, key=key, bind="query-params", help=hint
    )
    return chosen if chosen in options else first


def _measure_and_draw(plan: Plan, corpus: str, quantity: Quantity) -> None:
    """Draws what is there, and then measures on: what stands on the page while the work goes on is fresh, and
    Streamlit does not dim it.
    """
    kept = _kept(plan, corpus)
    if "profiles" in kept:
        profiles = kept["profiles"]
        st.container(
            height=62, border=False
        ).caption(  # as high as the progress bar was, so that nothing jumps
            f"{len(profiles)} fresh models, none of them trained and none of them the one chosen above: width"
            f" {plan.d_model}, {plan.n_heads} heads, a batch of {plan.batch} windows of {plan.context}"
            f" characters from the corpus *{safe(corpus)}*."
        )
        _draw(plan, profiles, quantity)
        return
    begun = _begun(plan, corpus)
    try:
        profiles, ended = _advance(plan, corpus, 0.0 if begun else FIRST_SECONDS)
    except CorpusError as error:
        st.error(safe(str(error)))
        return
    last = profiles[-1]
    text = f"{figures.WIRING_WORDS[last.wiring]}, {last.depth} blocks, seed {last.seed + 1} of {plan.seeds}"
    st.container(height=62, border=False).progress(min(last.done / plan.work, 1.0), text=text)
    _draw(plan, profiles, quantity)
    if begun and not ended:
        profiles, ended = _advance(plan, corpus, SLICE_SECONDS)
    if ended:
        kept["profiles"] = profiles
        st.session_state.pop(_WORK, None)
        st.rerun()


def _begun(plan: Plan, corpus: str) -> bool:
    work = st.session_state.get(_WORK)
    return bool(work and work["of"] == (plan, corpus) and work["profiles"])


def _advance(plan: Plan, corpus: str, seconds: float) -> tuple[tuple[Profile, ...], bool]:
    """A slice of the work: (all profiles so far, whether that is all). The work of another plan is dropped;
    no seconds, no work.
    """
    work = st.session_state.get(_WORK)
    if work is None or work["of"] != (plan, corpus):
        found = state.corpus(corpus)
        work = st.session_state[_WORK] = {
            "of": (plan, corpus),
            "iterator": measure(plan, found.train, found.vocab_size),
            "profiles": (),
            "ended": False,
        }
    if seconds > 0 and not work["ended"]:
        new, work["ended"] = slice_of(work["iterator"], seconds)
        work["profiles"] = (*work["profiles"], *new)
    return work["profiles"], work["ended"]


def _draw(plan: Plan, profiles: tuple[Profile, ...], quantity: Quantity) -> None:
    means: dict[Quantity, Any] = {name: averaged(list(profiles), name) for name in get_args(Quantity)}
    reached = sorted({depth for _, depth in means["gradients"]})
    options = [*(str(depth) for depth in plan.depths[:-1]), DEEPEST]
    hint = "Which of the measured depths is drawn layer by layer."
    chosen = _pick(st, "Blocks, in the two figures by layer", options, DEEPEST, "residual_blocks", hint)
    depth = int(chosen) if chosen != DEEPEST and int(chosen) in reached else reached[-1]
    what = "gradient norm" if quantity == "gradients" else "gradient norm of the weights"
    left, right = st.columns(2, gap="medium")
    for place, name, title, side in (
        (left, quantity, what, "left"),
        (right, "activations", "norm of the stream", "right"),
    ):
        curves = {w: _curve(values, d) for (w, d), values in means[name].items() if d == depth}
        with place:
            plot(
                figures.roads(curves, x=f"block, of {depth}; 0 is next to the input", y=title),
                key=f"residual_road_{side}",
                height=340,
                name=title.replace(" ", "-"),
                data=_by_layer(means[name]),
                alt=f"{title} at each of {depth} blocks on a logarithmic axis, one line for each wiring.",
            )
    st.caption(
        f"The same for every depth: {what} at the first block, divided by that at the last. 1 is a flat road."
    )
    ends = {
        w: np.array([ratio(_blocks(means[quantity][w, d], d)) for d in reached if (w, d) in means[quantity]])
        for w in plan.wirings
    }
    curves = {w: (np.array(reached[: len(v)]), v) for w, v in ends.items()}
    plot(
        figures.roads(
            curves, x="blocks in the model", y="first ÷ last block", flat=True, end=max(plan.depths)
        ),
        key="residual_road_ratio",
        height=330,
        name="gradient-ratio",
        data=pd.DataFrame({"blocks": reached}).assign(
            **{
                w: np.pad(v.astype(float), (0, len(reached) - len(v)), constant_values=math.nan)
                for w, v in ends.items()
            }
        ),
        alt=(
            f"{what}: first block divided by last, against the number of blocks in the model; 1 is a flat"
            " road."
        ),
    )
    _say(plan, profiles, means, quantity, max(reached))


def _curve(values: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(depth), _blocks(values, depth)


def _blocks(values: np.ndarray, depth: int) -> np.ndarray:
    """One number for each block (depth,): what stands before the first block, where it was measured too, is
    left out.
    """
    return values[-depth:]


def _by_layer(means: dict[tuple[str, int], np.ndarray]) -> pd.DataFrame:
    rows = [
        (w, d, block, float(v))
        for (w, d), values in means.items()
        for block, v in enumerate(_blocks(values, d))
    ]
    return pd.DataFrame(rows, columns=["wiring", "blocks", "block", "value"])


THEORY = {
    "pre": "the identity path carries the gradient to every block: flat",
    "post": "a norm after every sum damps the path, so gradients are larger near the output",
    "none": "a product of Jacobians: vanishes or explodes with depth",
}


def _say(
    plan: Plan, profiles: tuple[Profile, ...], means: dict[Quantity, Any], quantity: Quantity, depth: int
) -> None:
    """Theory and measurement side by side, for the deepest models so far."""
    lines = []
    for wiring in plan.wirings:
        values = means[quantity].get((wiring, depth))
        if values is not None:
            blocks = _blocks(values, depth)
            remark = _instead(plan, wiring, blocks, _blocks(means["activations"][wiring, depth], depth))
            lines.append(
                f"| **{figures.WIRING_WORDS[wiring]}** | {THEORY[wiring]} | {seen(blocks)}{remark} |"
            )
    st.markdown(
        f"| wiring | theory, at initialisation | seen here, {depth} blocks |\n|---|---|---|\n"
        + "\n".join(lines)
    )
    broken = sum(not profile.finite for profile in profiles)
    if broken:
        st.warning(
            f"{broken} of {len(profiles)} models gave numbers that are not finite (infinity, or not a"
            " number): too large for float32. Not drawn."
        )
    words = _last_block(means["weights"], depth, plan.init)
    if words and plan.norm != "none":
        explain.takeaway(words)


def seen(blocks: np.ndarray) -> str:
    """What gradients (block,) do on their way from the last block to the first, in words.

    >>> seen(np.array([1e-6, 1.0]))
    'vanishes: the first block gets 1e-06 of the last one’s'
    """
    if not np.isfinite(blocks).all():
        return "not finite: it explodes beyond what float32 can hold"
    if blocks[-1] == 0:
        return (
            "0 everywhere: smaller than the smallest float32" if not blocks.any() else "0 at the last block"
        )
    found = ratio(blocks)
    if found == 0:
        return (
            f"vanishes: exactly 0 at the first block, below the smallest float32; {int((blocks > 0).sum())}"
            f" of {len(blocks)} blocks get any"
        )
    if 1 / FLAT <= found <= FLAT:
        return f"flat: first ÷ last = {found:.2f}"
    if found < 1:
        return (
            f"vanishes: the first block gets {found:.2g} of the last one’s"
            if found < 0.01
            else f"fades: first ÷ last = {found:.2g}"
        )
    return (
        f"explodes: the first block gets {found:.2g} times the last one’s"
        if found > 100
        else f"grows towards the input: first ÷ last = {found:.2g}"
    )


def _instead(plan: Plan, wiring: str, blocks: np.ndarray, lengths: np.ndarray) -> str:
    """A sentence where what was seen is not what theory says, or has a reason that can be seen. `lengths`:
    norm of the stream (block,).
    """
    found = ratio(blocks) if np.isfinite(blocks).all() else math.inf
    flat = 1 / FLAT <= found <= FLAT
    if wiring == "pre" and not flat:
        if plan.norm == "none":
            return ". Not flat: with no norm in front, a write grows with the stream that it reads"
        return (
            f". Not flat: the stream grows, from {lengths[0]:.2g} to {lengths[-1]:.2g}, and a norm divides"
            " gradients by the length of what it reads"
        )
    if wiring == "post" and plan.norm == "none":
        return ". Without a norm this is the same model as pre-norm"
    if wiring == "post" and not found < 1 / FLAT:
        why = (
            "presumably the sublayers' own paths carry what the norms damp"
            if plan.init == "fan_in"
            else "each write is small beside the stream"
        )
        return f". Not what was expected: {why}"
    if wiring == "none" and plan.norm != "none":
        if flat:
            return ". Not what was expected: the norm before each sublayer restores the size that was lost"
        if (lengths**2 / plan.d_model < EPS).any():
            return (
                f". The norms cannot stop it: the stream became so short that $\\varepsilon$ = {EPS:g} in"
                " their divisor outweighs it"
            )
    return ""


def _last_block(weights: dict[tuple[str, int], np.ndarray], depth: int, init: str) -> str:
    """What Xiong et al. 2020 prove is about the last block: its gradient shrinks like 1/sqrt(L) in pre-norm,
    not in post-norm.
    """
    least = min((d for _, d in weights), default=0)
    pairs = {w: (weights.get((w, least)), weights.get((w, depth))) for w in ("pre", "post")}
    if depth <= least or any(
        v is None or not np.isfinite(v[-1]) or v[-1] <= 0 for pair in pairs.values() for v in pair
    ):
        return ""
    changes = {w: float(b[-1] / a[-1]) for w, (a, b) in pairs.items()}  # type: ignore[index]
    return (
        "Xiong et al. (2020) prove it for the *last* block: in pre-norm the gradient of its weights shrinks"
        f" like $1/\\sqrt{{L}}$ with the number of blocks, in post-norm it does not. From {least} to {depth}"
        f" blocks $1/\\sqrt{{L}}$ would be a factor {math.sqrt(least / depth):.2f}; measured: pre-norm ×"
        f" {changes['pre']:.2f}, post-norm × {changes['post']:.2f}. "
        + (
            "These weights are like theirs."
            if init == "fan_in"
            else "Their weights start with std about $1/\\sqrt{inputs}$: choose that above to see it."
        )
    )
