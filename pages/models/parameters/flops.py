"""The view "FLOPs": the compute of a token, and its growth with the text: attention's parameters do not
depend on T, its scores do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from engine.config import GROUPED_MIXERS
from pages.models.parameters import whole_text
from pages.models.parameters.choice import Choice
from pages.models.parameters.components import NAMES
from pages.models.parameters.length import LENGTHS, chosen_length, length_axis, length_slider
from studies.costs.budget import TOKENS, budget, grown
from studies.costs.flops import products
from studies.costs.growth import Headed, by_heads, by_part
from studies.costs.ledger import Flops, Ledger
from studies.costs.sizes import TILE, fitting, padding
from studies.guesses import sizes
from ui import content, explain, guess, widgets
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.guess import Guess
from ui.page_frame import View
from ui.players.plot import plot
from ui.text.numbers import flop, percent

TEXT = content.beside(__file__)
PART = "parameters_part"
LINES = (  # of everything else, of scores and sums, and of three parts of the first
    ("residual", 3, "solid"),
    ("attention", 3, "solid"),
    ("feedforward", 1.5, "dash"),
    ("attention", 1.5, "dash"),
    ("output", 1.5, "dash"),
)


def draw(choice: Choice) -> None:
    """Draws the costs of a token over the length of the text, or those of a whole text."""
    left, right = st.columns([4, 8], gap="medium", vertical_alignment="bottom")
    shown = {each: TEXT(f"of {each}") for each in ("token", "text")}
    part = widgets.select(TEXT["costs of"], shown, PART, container=left, hidden=True)
    with right:
        tokens = length_slider(choice.ledger.config.context)
    (_token if part == "token" else whole_text.draw)(choice, tokens)


def _token(choice: Choice, tokens: int) -> None:
    """Draws FLOPs of a token over the length of the text, and what they are at one length; the
    rest folded.
    """
    ledger = choice.ledger
    flops = ledger.flops(tokens)
    lengths = np.unique(np.append(np.geomspace(LENGTHS[0], LENGTHS[-1], 121).round(), LENGTHS)).astype(
        np.int64
    )
    parts = by_part(ledger, lengths)
    crossing = ledger.crossover()
    case = "crossing" if crossing else "window" if flops.scores else "no scores"
    share = flops.scores / max(flops.forward, 1)
    explain.answer(
        TEXT(
            "never half" if crossing is None else "beyond half",
            tokens=flops.tokens,
            forward=flops.forward,
            share=share,
            crossing=crossing,
        )
    )
    meeting = (crossing, ledger.flops(crossing).scores) if crossing else None
    plot(
        flops_by_length(lengths, parts, meeting, tokens),
        key="parameters_flops",
        alt=TEXT(f"alt {case}", model=choice.title, crossing=crossing),
        height=350,
        data=pd.DataFrame({"tokens": lengths, **parts}),
        name="flops",
    )
    guess.ask("longer", longer, choice, tokens)
    explain.measure_it(_measured, choice, flops, crossing)
    explain.by_hand(_products, flops)


def longer(choice: Choice, tokens: int) -> Guess | None:
    """Makes a guess about a text of twice the length."""
    double = next((length for length in LENGTHS if length == 2 * tokens), None)
    if double is None:
        return None
    truth = sizes.longer(choice.ledger, tokens)
    return Guess.of(
        TEXT,
        truth,
        TEXT("guess", tokens=tokens, double=double),
        TEXT("outcome", **truth.numbers),
        {"parameters_length": double},
    )


def _measured(choice: Choice, flops: Flops, crossing: int | None) -> None:
    """The numbers at one length, what heads cost, which sizes suit the hardware, and two laws of budgets."""
    _numbers(flops, choice.ledger)
    explain.takeaway(_attention_and_length(choice, flops, crossing))
    _heads(choice.ledger, flops.tokens)
    _sizes(choice.ledger)
    _budget(choice.ledger)


def _products(flops: Flops) -> None:
    st.dataframe(
        pd.DataFrame(
            [
                {
                    "component": NAMES[p.component],
                    "product": p.name,
                    "formula": p.formula,
                    "in numbers": p.numbers,
                    "times": p.copies,
                    TEXT["flops per token"]: p.flops,
                    "grows with T": p.grows,
                }
                for p in flops.rows
            ]
        ),
        hide_index=True,
        column_config={TEXT["flops per token"]: st.column_config.NumberColumn(format="localized")},
    )
    once = [TEXT("once", name=content.Filled(p.name), flops=p.flops) for p in flops.once]
    st.caption(" ".join([TEXT["what counts"], *once]))


def _numbers(flops: Flops, ledger: Ledger) -> None:
    grows = (
        f"{'mean' if ledger.config.mixer == 'mean' else 'attention'}{'' if ledger.encoder is None else 's'}"
    )
    share = percent(flops.scores, flops.forward)
    cards = {
        "forward": (flop(flops.forward), TEXT("all of it", flops=flops.forward, tokens=flops.tokens)),
        "share": (share, TEXT(f"growth of {grows}", scores=flops.scores)),
        "training": (flop(flops.training), TEXT["training"]),
        "rule": (
            flop(flops.six_n),
            TEXT(
                "six n",
                total=ledger.total,
                share=flops.of_training(ledger.total),
                multiplying=flops.multiplying,
                share_multiplying=flops.of_training(flops.multiplying),
            ),
        ),
    }
    for column, (name, card) in zip([*st.columns(2), *st.columns(2)], cards.items(), strict=True):
        with column:
            explain.worked(TEXT(f"card {name}"), *card)
    case = "whole text" if ledger.encoder is None else "whole texts"
    st.caption(TEXT(case, tokens=flops.tokens, forward=flops.text, training=flops.text_training))


def _attention_and_length(choice: Choice, flops: Flops, crossing: int | None) -> str:
    """Says which part of attention depends on the length of the text."""
    c, ledger = choice.config, choice.ledger
    share = flops.scores / max(flops.forward, 1)
    if crossing is None:
        return TEXT("windowed" if flops.scores else "no mixer", window=c.window, share=share)
    said = [TEXT("matrices" if ledger.in_attention else "no matrices", parameters=ledger.in_attention)]
    if c.position == "learned":
        said.append(TEXT("table limits", context=c.context))
    stacks = "each layer" if ledger.encoder is None else "each attention"
    said.append(TEXT[f"{'averaged' if c.mixer == 'mean' else 'compared'} in {stacks}"])
    said.append(TEXT("beyond" if crossing > c.context else "within", crossing=crossing, context=c.context))
    said.append(TEXT("rule misses", share=share))
    return " ".join(said)


def heads(rows: tuple[Headed, ...]) -> str:
    """Says what more heads cost."""
    first, last = rows[0], rows[-1]
    return TEXT("heads", heads=last.heads, flops=last.flops, few=first.heads, flops_few=first.flops)


def _heads(ledger: Ledger, tokens: int) -> None:
    """8 heads are not 8 times the work."""
    c = ledger.config
    shared = by_heads(c, tokens, ledger.parts, (1, 2, 4, 8, 16))
    rows = tuple(row for row in shared if row.d_head % 2 == 0)  # RoPE turns pairs
    if c.mixer not in GROUPED_MIXERS or not rows:
        return
    st.subheader(TEXT["heads title"], anchor=False)
    st.markdown(heads(rows))
    st.table(
        pd.DataFrame(
            {
                "heads": [f"{row.heads}" for row in rows],
                "head width": [f"{row.d_head:,}" for row in rows],
                TEXT["attention flops"]: [f"{row.flops:,}" for row in rows],
                TEXT["attention weights"]: [f"{row.weights:,}" for row in rows],
            }
        ).set_index("heads")
    )


def _sizes(ledger: Ledger) -> None:
    """Sizes that 64 divides, and why."""
    rows = fitting(ledger.config)
    vocab, more = rows[0], padding(ledger.config)
    st.subheader(TEXT["sizes title"], anchor=False)
    fits = TEXT("fits" if vocab.fits else "does not fit", vocab=vocab.size, padded=vocab.padded, more=more)
    st.markdown(f"{TEXT('sizes', tile=TILE)} {fits}")
    st.table(
        pd.DataFrame(
            {
                "size": [TEXT(f"size {row.field}") for row in rows],
                "numbers": [f"{row.size:,}" for row in rows],
                TEXT["factor"]: [f"{row.factor:,}" for row in rows],
                TEXT["multiple"]: [TEXT("yes" if row.fits else "no", padded=row.padded) for row in rows],
            }
        ).set_index("size")
    )


def _budget(ledger: Ledger) -> None:
    """Beyond 6 N: how large a model, and how much text, for the work there is."""
    spending = budget(ledger.total)
    st.subheader(TEXT["budget title"], anchor=False)
    st.markdown(
        TEXT(
            "budget",
            each=TOKENS,
            tokens=spending.tokens,
            flops=spending.flops,
            loss=spending.loss,
        )
    )
    st.table(
        pd.DataFrame(
            {
                "published law": list(grown(10)),
                TEXT["ten times"]: [f"× {n:.1f}" for n, _ in grown(10).values()],
                "and tokens": [f"× {d:.1f}" for _, d in grown(10).values()],
            }
        ).set_index("published law")
    )
    st.caption(TEXT("laws", size=spending.parameters))


def flops_by_length(
    lengths: np.ndarray, parts: Mapping[str, np.ndarray], crossover: tuple[int, int] | None, at: int
) -> go.Figure:
    """Draws forward FLOPs for one token over the length of the text: parts (part -> (lengths,)), in the order
    of LINES. `crossover` is where the first two meet, (length, FLOPs); `at` is the chosen length.
    """
    lines: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines",
            "x": lengths,
            "y": flops,
            "name": name,
            "line": {"width": width, "color": colour(shade), "dash": dash},
            "text": [flop(v) for v in flops],
            "hovertemplate": TEXT("hover line", part=name),
        }
        for (name, flops), (shade, width, dash) in zip(parts.items(), LINES, strict=True)
        if flops.any()
    ]
    notes = []
    if crossover is not None and lengths[0] <= crossover[0] <= lengths[-1]:
        x, y = crossover
        lines.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": [x],
                "y": [y],
                "marker": {"size": 11, "color": colour("output")},
                "showlegend": False,
                "hovertemplate": TEXT("hover crossover", tokens=x, flops=y),
            }
        )
        left = x > 512  # above the rising line, or below it where there is no room
        notes.append(
            go.note(
                f"T = {x:,}",
                float(np.log10(x)),
                float(np.log10(y)),
                xanchor="right" if left else "left",
                yanchor="bottom" if left else "top",
                xshift=-4 if left else 8,
                yshift=8 if left else -4,
            )
        )
    return go.figure(
        lines,
        margin={"l": 72, "r": 16, "t": 62, "b": 48},
        shapes=[chosen_length(at)],
        annotations=notes,
        xaxis=length_axis(lengths),
        yaxis={
            "type": "log",
            "title": {"text": TEXT["axis flops"]},
            "tickformat": "~s",
            "dtick": 1,
        },
    )


def _question(choice: Choice) -> str:
    whole = st.session_state.get(PART, widgets.read_url(PART)) == "text"
    return TEXT("question of a text" if whole else "question", model=choice.title)


VIEW = View(
    "flops",
    TEXT,
    draw,
    code=(products,),
    needs_model=False,
    question=_question,
    shows=("quadratic attention", "attention cost"),
)
