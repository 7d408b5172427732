"""The views of the page on the residual stream: the lens, who pushed the logit, norms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from engine.config import ModelConfig
from engine.measure.attribution import Attribution, Versus, attribute
from engine.measure.lens import Lens, logit_lens
from engine.measure.residual import is_sum
from ui import explain
from ui.figures import residual as figures
from ui.figures.curves import plain
from ui.plot import plot
from ui.subject import Subject
from ui.tokens import token_strip
from ui.words import safe

POSITION, CELL = "residual_position", "residual_cell"
SHADES = ("Probability of the guess", "KL to the output")
TOP, ITSELF, MEAN = "top guess", "nothing", "mean of all"


def depth_names(config: ModelConfig) -> list[str]:
    """What the stream is called before the first block and after each; the last is the output."""
    names = ["embed", *(f"block {i}" for i in range(config.n_layers))]
    return [*names[:-1], f"{names[-1]} = output"]


# Logit lens --------------------------------------------------------------------------------------------------------------


@st.cache_resource(max_entries=32, show_spinner=False)
def _lens(key: tuple[str, int], ids: tuple[int, ...], _subject: Subject) -> Lens:
    return logit_lens(_subject.model, _subject.recording())


def draw_lens(subject: Subject) -> None:
    """A table of guesses by depth and token; a click on a cell opens it."""
    if subject.config.wiring == "none":
        st.info(
            "This model has no residual stream: each sublayer *replaces* what it reads, so what stands between two blocks was never meant for the "
            "unembedding. The lens can still be held there, but expect it to make little sense before the last block."
        )
    lens, vocabulary, names = _lens(subject.key, subject.ids, subject), subject.vocabulary, depth_names(subject.config)
    shade = st.segmented_control("Colour", SHADES, default=SHADES[0], required=True, key="residual_shade", bind="query-params")
    sure = shade != SHADES[1]
    table = st.container(key="residual_table")
    chosen = _cell(lens.guess.shape)
    values = lens.probability if sure else lens.kl
    words = [[vocabulary[i] for i in row] for row in lens.guess]
    figure = figures.lens_table(
        words, values, subject.labels, names, settled=lens.settled, chosen=chosen, hover=_hints(lens, subject.labels, names, words),
        title="probability" if sure else "KL (nats)", top=1.0 if sure else float(lens.kl[1:].max()),
    )
    with table:
        scrolled("residual_table", 10 * len(subject.labels) + 180)
        clicked = plot(
            figure, key="residual_lens", height=max(230, 26 * len(names) + 120), name="logit-lens", data=_lens_rows(subject, lens, names),
            alt=f"Logit lens: the likeliest next token at each of {len(names)} depths for each of {len(subject.labels)} tokens, by {SHADES[not sure]}.",
        )
    if clicked is not None and (cell := _place(clicked, lens.guess.shape)) != chosen and cell is not None:
        st.query_params[CELL] = f"{cell[0]}-{cell[1]}"
        st.rerun()
    beyond = " The scale ends at the largest KL above that row." if not sure and lens.kl[0].max() > lens.kl[1:].max() else ""
    st.caption(f"Bottom row: the embedding alone.{beyond} Top row: the model's output. Above the red line the guess is already the final one. Click a cell.")
    _draw_cell(subject, lens, names, *chosen)
    explain.takeaway(_settling(lens, names))


def _hints(lens: Lens, labels: Sequence[str], names: Sequence[str], words: Sequence[Sequence[str]]) -> list[list[str]]:
    """What the box over a cell says: (depth, query)."""
    tokens = [plain(label) for label in labels]
    return [
        [
            f"{name}, after “{token}”<br>guess “{plain(word)}”, probability {p:.3f}<br>KL to the output {kl:.3f} nats"
            for token, word, p, kl in zip(tokens, row, probabilities, kls, strict=True)
        ]
        for name, row, probabilities, kls in zip(names, words, lens.probability, lens.kl, strict=True)
    ]


def scrolled(key: str, width: int) -> None:
    """Figures in the container `key` are at least `width` pixels wide; where the page is narrower they scroll sideways."""
    st.html(f"<style>.st-key-{key} {{ overflow-x: auto; }} .st-key-{key} .gf-plot {{ min-width: {int(width)}px; }}</style>")


def _place(text: str, shape: tuple[int, ...]) -> tuple[int, int] | None:
    """The cell that a click names."""
    index = int(text) if text.isdecimal() and len(text) < 9 else -1
    return divmod(index, shape[1]) if 0 <= index < shape[0] * shape[1] else None


def _cell(shape: tuple[int, ...]) -> tuple[int, int]:
    """(depth, position) from the URL, kept inside the table; at first the middle depth of the last token."""
    depth, _, position = st.query_params.get(CELL, "").partition("-")
    if depth.isdecimal() and position.isdecimal() and max(len(depth), len(position)) < 5:
        return min(int(depth), shape[0] - 1), min(int(position), shape[1] - 1)
    return shape[0] // 2, shape[1] - 1


def _lens_rows(subject: Subject, lens: Lens, names: Sequence[str]) -> pd.DataFrame:
    depth, position = (grid.ravel() for grid in np.indices(lens.guess.shape))
    return pd.DataFrame({
        "depth": np.asarray(names)[depth], "position": position, "token": np.asarray(subject.labels)[position],
        "guess": np.asarray(subject.vocabulary)[lens.guess.ravel()], "probability": lens.probability.ravel(), "kl_nats": lens.kl.ravel(),
        "settled": depth >= lens.settled[position],
    })


def _draw_cell(subject: Subject, lens: Lens, names: Sequence[str], depth: int, position: int) -> None:
    ids = lens.top(depth, position)
    here, final = np.exp(lens.log_probabilities[depth, position, ids]), np.exp(lens.log_probabilities[-1, position, ids])
    words = [subject.vocabulary[i] for i in ids]
    chart, text = st.columns([3, 2], gap="medium", vertical_alignment="center")
    with chart:
        plot(
            figures.top_tokens(words, here, final), key="residual_top", height=300, name="lens-top-10",
            data=pd.DataFrame({"token": words, "here": here, "at_the_output": final}),
            alt=f"The ten likeliest next tokens at {names[depth]}, position {position}.",
        )
    with text:
        st.markdown(f"**{safe(names[depth])}**, after token {position}, “{safe(subject.labels[position])}”")
        settled, final_guess = int(lens.settled[position]), subject.vocabulary[lens.guess[-1, position]]
        following = f" In the text “{safe(subject.labels[position + 1])}” follows." if position + 1 < len(subject.ids) and subject.config.causal else ""
        st.markdown(
            f"Stopping here, the model would guess “{safe(words[0])}” with probability {here[0]:.3f}; this is **{lens.kl[depth, position]:.3f} nats** "
            f"from its final distribution. The final guess, “{safe(final_guess)}”, is on top from **{safe(names[settled])}** on.{following}"
        )


def _settling(lens: Lens, names: Sequence[str]) -> str:
    """Which layer settles the tokens, counted."""
    counts = np.bincount(lens.settled, minlength=len(names))
    by = np.cumsum(counts)
    half = int(np.argmax(2 * by >= len(lens.settled)))
    told = ", ".join(f"{names[d]}: {n}" for d, n in enumerate(counts) if n)
    kl = lens.kl.mean(1)
    drop = int(np.argmax(kl[:-1] - kl[1:])) + 1
    step = f"The largest step towards the output is {names[drop]}'s: mean KL {kl[drop - 1]:.2f} → {kl[drop]:.2f} nats." if kl[drop - 1] > kl[drop] else ""
    return (
        f"**Half of the tokens are settled by {names[half]}** ({by[half]} of {len(lens.settled)}). First depth from which on the top guess stays: {told}. "
        f"At the embedding the guesses are {kl[0]:.2f} nats from the output on average. {step}"
    )


# Who pushed the logit ----------------------------------------------------------------------------------------------------


@st.cache_resource(max_entries=128, show_spinner=False)
def _attribution(key: tuple[str, int], ids: tuple[int, ...], position: int, target: int, versus: Versus, _subject: Subject) -> Attribution:
    return attribute(_subject.model, _subject.recording(), position, target, versus)


def not_a_sum(config: ModelConfig) -> str:
    """Why the final stream cannot be taken apart into writes."""
    if config.wiring == "none":
        return "This model has no residual stream: each sublayer replaces what it read, so nothing is a sum that could be taken apart."
    return (
        "This model is post-norm: after every sum the norm rescales the whole stream, so the final stream is not a sum of writes. "
        "Taking it apart would need a scale frozen at each of its norms, and the parts would depend on the order. Choose a pre-norm model."
    )


def draw_attribution(subject: Subject) -> None:
    """The parts of one logit: bars by layer, and heads against layers."""
    if not is_sum(subject.config):
        st.info(not_a_sum(subject.config))
        return
    position = token_strip(subject.labels, key=POSITION, chosen=len(subject.ids) - 1, label="Position whose next token is predicted")
    target, versus = _choose_tokens(subject, position)
    found = _attribution(subject.key, subject.ids, position, target, versus, subject)
    name = subject.vocabulary[target]
    against = "" if versus is None else " − mean" if versus == "mean" else f" − “{subject.vocabulary[versus]}”"
    facts = {"Sum of the parts": f"{found.total:+.4f}", f"Logit of “{name}”{against}": f"{found.logit:+.4f}", "Difference": f"{found.total - found.logit:+.1e}"}
    for column, (label, value) in zip(st.columns(3), facts.items(), strict=True):
        column.metric(safe(label), value)
    labels, parts, values = _bars(subject.config, found)
    wide, narrow = st.columns([3, 2], gap="medium") if subject.config.mixer != "none" else (st.container(), None)
    with wide:
        plot(
            figures.part_bars(labels, parts, values, title="pushes the logit (nats)"), key="residual_parts", height=390, name="logit-attribution",
            data=pd.DataFrame({"writer": labels, "part": parts, "contribution": values}),
            alt=f"Bars: what each writer to the residual stream adds to the logit of {name} at position {position}, bottom of the model first.",
        )
    if narrow is not None:
        layers, heads = ([str(i) for i in range(n)] for n in found.heads.shape)
        with narrow:
            plot(
                figures.signed_map(found.heads, heads, layers, x="head", y="layer", unit="nats"), key="residual_heads", height=390, name="head-attribution",
                data=pd.DataFrame(found.heads, columns=[f"head_{h}" for h in heads]).rename_axis("layer").reset_index(),
                alt="Heatmap of the contribution of each head (columns) in each layer (rows) to the logit; blue pushes down, orange up.",
            )
    best, worst = int(values.argmax()), int(values.argmin())
    explain.takeaway(
        f"For “{safe(name)}” after “{safe(subject.labels[position])}”, **{safe(labels[best])}** pushes most, {values[best]:+.2f} nats; "
        f"**{safe(labels[worst])}** pushes {'down' if values[worst] < 0 else 'least'}, {values[worst]:+.2f}. {_frozen(subject.config, found.scale)}"
    )


def _frozen(config: ModelConfig, scale: float) -> str:
    if config.norm == "none":
        return "There is no final norm, so nothing had to be frozen."
    what = {"layernorm": "LayerNorm's subtraction of the mean is linear and stays in", "rmsnorm": "RMSNorm subtracts nothing"}[config.norm]
    return f"The final norm's divisor is frozen at {scale:.3f}, its value on this text; {what}."


def _choose_tokens(subject: Subject, position: int) -> tuple[int, Versus]:
    """(target id, what it is compared with) from two boxes of shown tokens; what another alphabet left behind falls back."""
    ids = {word: i for i, word in reversed(list(enumerate(subject.vocabulary)))}
    boxes = (("residual_target", [TOP, *ids]), ("residual_versus", [ITSELF, MEAN, *ids]))
    for key, options in boxes:
        if key in st.session_state and st.session_state[key] not in options:
            del st.session_state[key]
    left, right, _ = st.columns([2, 2, 3])
    top = int(subject.recording().logits[position].argmax())
    hint = f"The token whose logit is taken apart; “{TOP}” is the likeliest one at this position."
    chosen = left.selectbox("Target token", boxes[0][1], key=boxes[0][0], bind="query-params", help=hint)
    other = right.selectbox(
        "Compared with", boxes[1][1], key=boxes[1][0], bind="query-params",
        help="A constant added to all logits changes nothing, so the difference to another token says more than a logit by itself.",
    )
    versus: Versus = "mean" if other == MEAN else ids.get(other or ITSELF)
    return ids.get(chosen or TOP, top), versus


def _bars(config: ModelConfig, found: Attribution) -> tuple[list[str], list[str], np.ndarray]:
    """(labels, parts, values) bottom first. With many heads, one bar for all heads of a layer: the heatmap has the heads."""
    single = found.heads.size <= 40
    rows: list[tuple[str, str, float]] = [("embed", "embedding", found.embedding)]
    if config.position in ("learned", "sinusoidal"):
        rows.append(("position", "position", found.position))
    for i in range(config.n_layers):
        if config.mixer != "none":
            heads = [(f"head {i}.{h}", "attention", float(v)) for h, v in enumerate(found.heads[i])]
            rows += heads if single else [(f"heads {i}", "attention", float(found.heads[i].sum()))]
        if found.attention_bias[i]:
            rows.append((f"attn bias {i}", "attention", float(found.attention_bias[i])))
        if config.ffn != "none":
            rows.append((f"ffn {i}", "feedforward", float(found.feedforward[i])))
    if config.norm_bias:
        rows.append(("norm bias", "norm", found.norm_bias))
    labels, parts, values = zip(*rows, strict=True)
    return list(labels), list(parts), np.asarray(values)
