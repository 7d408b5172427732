"""Attention by hand, and wrong shapes: the controls, the matrices, the words."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from engine.errors import ShapeError
from engine.measure import byhand
from engine.measure.byhand import Attempt, HandExample, MaskExample
from pages.inside.shapes.figures import weight_bars
from pages.inside.shapes.walk import choose
from ui import explain
from ui.players.plot import plot
from ui.text.markdown import safe

MOST = 8  # numbers in a row
ROWS = {"q": "1, 2, 3, 4", "k1": "5, 6, 7, 8", "k2": "9, 0, 1, 2", "v1": "1, 0, 0, 1", "v2": "0, 1, 1, 0"}
SCORES = "1.0, 2.5, 0.5, 3.0"


def numbers(text: str) -> list[float]:
    """Numbers between commas or blanks. Raises ShapeError with a sentence for anything else, and for more
    than 8.

    >>> numbers("1, 2.5 -3")
    [1.0, 2.5, -3.0]
    """
    found = []
    for word in text.replace(",", " ").replace(";", " ").replace("−", "-").split():
        try:
            value = float(word)
        except ValueError:
            raise ShapeError(f"“{word[:20]}” is not a number") from None
        if not math.isfinite(value) or abs(value) > 1000:
            raise ShapeError(f"{word[:20]} is out of range: keep every number between −1000 and 1000")
        found.append(value)
    if not 1 <= len(found) <= MOST:
        raise ShapeError(f"give 1 to {MOST} numbers in a row, not {len(found)}")
    return found


# Two heads --------------------------------------------------------------------------------------


def heads_example() -> None:
    st.markdown(
        "One query **q** looks at two keys **k1**, **k2** and takes from their values **v1**, **v2**. Change"
        " any number."
    )
    rows: dict[str, list[float]] = {}
    for column, (name, first) in zip(st.columns(5, gap="small"), ROWS.items(), strict=True):
        with column:
            text = st.text_input(
                name, first, key=f"shapes_{name}", bind="query-params", persist_state="session", max_chars=60
            )
            try:
                rows[name] = numbers(text or "")
            except ShapeError as error:
                st.error(safe(f"{name}: {error}"))
    if len(rows) < len(ROWS):
        return
    if len({len(row) for row in rows.values()}) > 1:
        st.error(
            "All five rows must have the same number of numbers: "
            + ", ".join(f"{name} has {len(row)}" for name, row in rows.items())
            + "."
        )
        return
    width = len(rows["q"])
    left, right = st.columns([1, 1])
    with left:
        heads = _choice(
            "Heads",
            "shapes_heads",
            [n for n in range(1, width + 1) if width % n == 0],
            2 if width % 2 == 0 else 1,
        )
    with right:
        hidden = st.segmented_control(
            "Hide a key",
            ["none", "k1", "k2"],
            default="none",
            required=True,
            key="shapes_hide",
            bind="query-params",
            persist_state="session",
        )
    masks = {"k1": (0,), "k2": (1,)}.get(str(hidden), ())
    example = byhand.multi_head([rows["q"]], [rows["k1"], rows["k2"]], [rows["v1"], rows["v2"]], heads, masks)
    _stages(example)
    _cell(example)
    st.latex(
        rf"\text{{output}} = [{', '.join(f'z^{{({h + 1})}}' for h in range(heads))}] ="
        rf" {matrix(example.out, 3)}"
    )
    top = float(example.pattern.max(axis=-1).min())
    explain.takeaway(
        f"Each head sees its own {example.d_head} of the {width} numbers, so each looks where it likes."
        f" Dividing by $\\sqrt{{d_{{head}}}} = \\sqrt{{{example.d_head}}}$ keeps wide heads from answering"
        " with a plain yes or no."
        + (
            f" Here the scores are so far apart that every head still gives {top:.1%} or more to one key."
            if top > 0.95
            else ""
        )
    )


def _choice(label: str, key: str, options: Sequence[int], first: int) -> int:
    """One of the options, whatever the URL or the session says."""
    if st.session_state.get(key, first) not in options:
        st.session_state[key] = first
    chosen = st.segmented_control(
        label,
        list(options),
        default=first,
        required=True,
        key=key,
        bind="query-params",
        persist_state="session",
    )
    return chosen if chosen in options else first


def _stages(example: HandExample) -> None:
    """Every stage of every head, as matrices."""
    count = len(example.q)
    per_row = min(count, 2)
    for start in range(0, count, per_row):
        for column, h in zip(
            st.columns(per_row, border=True), range(start, min(start + per_row, count)), strict=False
        ):
            with column:
                first, last = h * example.d_head + 1, (h + 1) * example.d_head
                st.markdown(
                    f"**Head {h + 1}** · "
                    + (f"numbers {first} to {last}" if last > first else f"number {first}")
                    + " of each row"
                )
                root = rf"\sqrt{{{example.d_head}}}"
                lines = [
                    ("q", matrix(example.q[h])),
                    ("k", matrix(example.k[h])),
                    ("v", matrix(example.v[h])),
                    (r"q\,k^\top", matrix(example.raw[h])),
                    (rf"q\,k^\top / {root}", matrix(example.scaled[h])),
                    (r"+\ \text{mask}", matrix(example.masked[h])),
                    (r"\text{softmax}", matrix(example.pattern[h], 3)),
                    (r"z = \text{softmax} \cdot v", matrix(example.z[h], 3)),
                ]
                body = r" \\[8pt] ".join(rf"{name} &= {value}" for name, value in lines)
                st.latex(rf"\begin{{aligned}} {body} \end{{aligned}}")


def _cell(example: HandExample) -> None:
    st.markdown("**One number, written out**")
    left, right = st.columns(2)
    with left:
        head = _choice("of head", "shapes_cell_head", list(range(1, len(example.q) + 1)), 1) - 1
    with right:
        key = _choice("for key", "shapes_cell_key", [1, 2], 1) - 1
    q, k = example.q[head, 0], example.k[head, key]
    raw, scaled, weight = (float(x[head, 0, key]) for x in (example.raw, example.scaled, example.pattern))
    products = " + ".join(rf"{_signed(a)} \cdot {_signed(b)}" for a, b in zip(q, k, strict=True))
    st.latex(
        rf"q \cdot k_{key + 1} = {products} = {number(raw)} \qquad"
        rf" \frac{{{number(raw)}}}{{\sqrt{{{example.d_head}}}}} = {number(scaled)}"
    )
    if not np.isfinite(example.masked[head, 0, key]):
        st.latex(r"\text{masked: } e^{-\infty} = 0, \text{ so its weight is } 0")
        return
    terms = " + ".join(rf"e^{{{number(float(x))}}}" for x in example.masked[head, 0] if np.isfinite(x))
    st.latex(rf"\frac{{e^{{{number(scaled)}}}}}{{{terms}}} = {number(weight, 4)}")


# Masking ----------------------------------------------------------------------------------------


def mask_example() -> None:
    left, right = st.columns(2)
    with left:
        text = st.text_input(
            "Scores of one query",
            SCORES,
            key="shapes_scores",
            bind="query-params",
            persist_state="session",
            max_chars=80,
        )
    try:
        scores = numbers(text or "")
    except ShapeError as error:
        st.error(safe(str(error)))
        return
    keys = [f"key {i + 1}" for i in range(len(scores))]
    held = st.session_state.get("shapes_hidden")
    if held and any(name not in keys for name in held):
        st.session_state["shapes_hidden"] = [name for name in held if name in keys]
    with right:
        chosen = st.pills(
            "Hidden",
            keys,
            default=keys[-1:],
            selection_mode="multi",
            key="shapes_hidden",
            bind="query-params",
            persist_state="session",
        )
    hidden = [keys.index(name) for name in chosen or [] if name in keys]
    try:
        example = byhand.masking(scores, hidden)
    except ShapeError as error:
        st.error(safe(str(error)))
        return
    _mask_table(example, keys)
    shown = [i for i in range(len(scores)) if i not in hidden]
    less, total = example.shift, float(example.exponentials.sum())
    terms = " + ".join(rf"e^{{{number(scores[i] - less)}}}" for i in shown)
    first = shown[0]
    weight = number(float(example.weights[first]), 2)
    share = (
        rf"\frac{{e^{{{number(scores[first] - less)}}}}}{{{terms}}} ="
        rf" \frac{{{number(math.exp(scores[first] - less), 3)}}}{{{number(total, 3)}}}"
    )
    if less:
        st.caption(
            f"The largest visible score, {number(less)}, is taken off all of them first: that changes no"
            " weight, and no power overflows."
        )
    st.latex(rf"w_{{{first + 1}}} = {share} = {weight}")
    alt = (
        f"Weights of {len(keys)} keys with the mask before the softmax, summing to 1, and after it, summing"
        f" to {example.late.sum():.2f}."
    )
    table = pd.DataFrame(
        {"key": keys, "mask before softmax": example.weights, "mask after softmax": example.late}
    )
    plot(
        weight_bars(keys, example.weights, example.late),
        key="shapes_mask",
        alt=alt,
        height=280,
        data=table,
        name="masking",
    )
    lost = 1 - float(example.late.sum())
    explain.takeaway(
        "The mask must come **before** the softmax. Set the weights to zero after it, and the row sums to"
        f" **{example.late.sum():.2f}**: the hidden keys have already taken their share of {lost:.2f}, so"
        " what they hold leaks into how loud the others are, and the output shrinks."
        if hidden
        else "Nothing is hidden, so both ways agree. Hide a key to see them differ."
    )


def _mask_table(example: MaskExample, keys: list[str]) -> None:
    stages = {
        "scores": example.scores,
        "scores + mask": example.masked,
        "e^(…)": example.exponentials,
        "weights: mask, then softmax": example.weights,
        "softmax of all": example.unmasked,
        "wrong: softmax, then mask": example.late,
    }
    sums = {
        name: "" if name in ("scores", "scores + mask") else f"{values.sum():.2f}"
        for name, values in stages.items()
    }
    body = {key: [plain(float(values[i])) for values in stages.values()] for i, key in enumerate(keys)}
    st.table(pd.DataFrame(body | {"sum": list(sums.values())}, index=list(stages)))


def plain(x: float) -> str:
    return "−∞" if x == -math.inf else f"{x:.2f}".replace("-", "−")


def matrix(x: np.ndarray, digits: int = 2) -> str:
    return (
        r"\begin{bmatrix} "
        + r" \\ ".join(" & ".join(number(float(value), digits) for value in row) for row in x)
        + r" \end{bmatrix}"
    )


def number(x: float, digits: int = 2) -> str:
    """
    >>> number(3.0), number(12.0208), number(float("-inf"))
    ('3', '12.02', '-\\\\infty')
    """
    if math.isinf(x):
        return r"-\infty"
    text = f"{x:.{digits}f}"
    if x and not float(text):
        mantissa, power = f"{x:.1e}".split("e")
        return rf"{mantissa} \cdot 10^{{{int(power)}}}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _signed(x: float) -> str:
    return number(x) if x >= 0 else f"({number(x)})"


# Wrong shapes -----------------------------------------------------------------------------------

MISTAKES = {
    "heads": "Heads that do not divide",
    "unembedding": "A transposed unembedding",
    "mask": "A mask of the wrong size",
}


def mistakes() -> None:
    st.markdown(
        "Choose a mistake. It is run for real, and what comes back is the engine's and PyTorch's own words."
    )
    kind = choose("Mistake", MISTAKES, "shapes_mistake")
    {"heads": _heads_mistake, "unembedding": _unembedding_mistake, "mask": _mask_mistake}[kind]()


def _number(label: str, key: str, first: int, low: int, high: int) -> int:
    value = st.number_input(label, low, high, first, key=key, bind="query-params", persist_state="session")
    return min(max(int(value), low), high)


def _heads_mistake() -> None:
    left, right = st.columns(2)
    with left:
        d_model = _number("d_model", "shapes_d_model", 128, 1, 1024)
    with right:
        n_heads = _number("n_heads", "shapes_n_heads", 3, 1, 64)
    st.code(
        f"x.unflatten(-1, (n_heads, d_model // n_heads))  # (1, 6, {d_model}) -> (1, 6, {n_heads},"
        f" {d_model // n_heads})",
        language="python",
    )
    attempt = byhand.split_heads(d_model, n_heads)
    each, rest = divmod(d_model, n_heads)
    divisors = [n for n in range(1, d_model + 1) if d_model % n == 0 and n <= 64]
    near = sorted(divisors, key=lambda n: abs(n - n_heads))[:3]
    _told(
        attempt,
        expected=f"{n_heads} heads of the same width, {n_heads} × d_head = {d_model}.",
        came=(
            f"{d_model} = {n_heads} × {each} + {rest}: {rest} number{'s are' if rest != 1 else ' is'} left"
            " over, and no head may have them."
            if each
            else f"{n_heads} heads for {d_model} numbers: some heads would get none."
        ),
        fix=(
            f"Take a number of heads that divides {d_model}, such as"
            f" {', '.join(str(n) for n in sorted(near))}, or set d_head yourself: then W_Q, W_K and W_V make"
            " n_heads × d_head numbers, and W_O brings them back to d_model."
        ),
        fine=f"{d_model} = {n_heads} × {each}: every head gets {each} numbers.",
    )


def _unembedding_mistake() -> None:
    left, right = st.columns(2)
    with left:
        d_model = _number("d_model", "shapes_d_model", 128, 1, 1024)
    with right:
        vocab = _number("vocab_size", "shapes_vocab", 65, 1, 2000)
    st.code(
        f"F.linear(x, embedding.T)  # embedding: ({vocab}, {d_model}); F.linear transposes again",
        language="python",
    )
    attempt = byhand.transposed_unembedding(d_model, vocab)
    _told(
        attempt,
        expected=(
            f"x (1, 6, {d_model}) times W_U ({d_model}, {vocab}). `F.linear(x, W)` computes x Wᵀ, so W must"
            f" be (vocab, d_model) = ({vocab}, {d_model})."
        ),
        came=(
            f"W of shape ({d_model}, {vocab}). PyTorch folds (1, 6) into 6 rows and transposes W: 6×{d_model}"
            f" times {vocab}×{d_model}. The inner sizes, {d_model} and {vocab}, are not the same."
        ),
        fix="Leave the transpose out: the tied matrix is the embedding itself, `F.linear(x, embedding)`.",
        fine=(
            f"**No error, and still wrong.** vocab_size = d_model = {d_model}, so the transposed matrix fits."
            f" The logits are off by up to {attempt.harm or 0:.2f}. Shapes alone cannot catch this; a"
            " reference with other sizes, or with known weights, can."
        ),
        good=d_model == vocab == 1,
    )


def _mask_mistake() -> None:
    left, right = st.columns(2)
    with left:
        length = _number("tokens in the text", "shapes_length", 6, 2, 64)
    with right:
        size = _number("size of the mask", "shapes_mask_size", 5, 1, 64)
    st.code(
        f"scores + causal_mask({size})  # scores (1, 4, {length}, {length}), mask ({size}, {size})",
        language="python",
    )
    attempt = byhand.wrong_mask(length, size)
    _told(
        attempt,
        expected=(
            f"A mask of (query, key) = ({length}, {length}): one row for each token that looks, one column"
            " for each that is looked at."
        ),
        came=(
            f"({size}, {size}). PyTorch compares sizes from the right: “dimension 3” is key, {length} against"
            f" {size}. Only a size of 1 stretches."
        ),
        fix=(
            "Make the mask for the length at hand, `causal_mask(length, scores)`, or cut a larger one:"
            " `mask[:length, :length]`."
        ),
        fine=(
            "The mask fits: a row for each query, a column for each key."
            if size == length
            else (
                "**No error, and still wrong.** A (1, 1) mask stretches over everything, and its one number"
                f" is 0: nothing is hidden. With equal scores, the first token puts {attempt.harm or 0:.0%}"
                " of its attention on the future. Training loss would look lovely, and the text would be"
                " poor."
            )
        ),
        good=size == length,
    )


def _told(attempt: Attempt, *, expected: str, came: str, fix: str, fine: str, good: bool = True) -> None:
    """What happened, in the machine's words and then in plain ones."""
    if not attempt.errors:
        (st.success if good else st.warning)(f"{fine} Output: {attempt.made}.")
        return
    for who, words in attempt.errors:
        early = who == "ConfigError"
        where = "of the engine, before anything is built" if early else "of PyTorch, in the middle of the run"
        st.error(f"**{who}** {where}")
        st.code(words, language="text", wrap_lines=True)
    for column, title, text in zip(
        st.columns(3), ("Expected", "What came", "How to fix it"), (expected, came, fix), strict=True
    ):
        with column:
            st.markdown(f"**{title}**")
            st.markdown(text)
