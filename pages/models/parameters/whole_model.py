"""The part "The whole model": its parameters, tensor by tensor; what tying and grouping save."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from engine.config import GROUPED_MIXERS
from pages.models.parameters.change import SLIDERS
from pages.models.parameters.choice import Choice
from pages.models.parameters.components import (
    NAMES,
    SHADES,
    colour_on,
    draw_letters,
    shares_in_words,
    signed,
)
from studies.costs.hand_count import counted, terms
from studies.costs.ledger import PER_BLOCK, Ledger, Row, parameter_rows
from studies.costs.shares import Where, change, largest, thin, where
from studies.exercises.worked.parameters import count_of
from studies.guesses import sizes
from ui import content, explain, fill_in, guess
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.guess import Guess
from ui.page_frame import View
from ui.players.plot import plot
from ui.text.numbers import percent, short

TEXT = content.beside(__file__)
ROOMY = 0.08  # from that share of the model on, an area has room for its share beside its count


def draw(choice: Choice) -> None:
    """Draws every tensor as an area, and where most of them are; folded, what tying and grouping save, and
    the count by hand.
    """
    ledger = choice.ledger
    explain.answer(_answer(choice))
    plot(
        treemap(ledger, choice.title),
        key="parameters_treemap",
        alt=TEXT("alt", model=choice.title, parts=shares_in_words(ledger)),
        height=350,
        data=rows_table(ledger),
        name="parameters",
    )
    strips = ", ".join(
        TEXT("share", part=NAMES[name], share=count / ledger.total) for name, count in thin(ledger).items()
    )
    st.caption(TEXT("areas and strips", strips=content.Filled(strips)) if strips else TEXT["areas"])
    guess.ask("wider", wider, choice)
    explain.measure_it(_measured, choice)
    explain.by_hand(fill_in.draw, "parameters", partial(count_of, choice.ledger), partial(_by_hand, choice))


def _answer(choice: Choice) -> str:
    parts, elsewhere = largest(choice.ledger)
    total = choice.ledger.total
    counts = parts | ({"elsewhere": elsewhere} if elsewhere else {})
    shares = ", ".join(TEXT(f"held {part}", share=count / max(total, 1)) for part, count in counts.items())
    answer = TEXT("answer", model=choice.title, total=total, shares=content.Filled(shares))
    untied = choice.variant(tie_embeddings=False) if choice.config.tie_embeddings else None
    return f"{answer} {TEXT('untied', total=untied.total)}" if untied else answer


def wider(choice: Choice) -> Guess | None:
    """Makes a guess about a model twice as wide."""
    fields = sizes.twice_as_wide(choice.config)
    other = choice.variant(**fields)
    if other is None or fields["d_model"] > SLIDERS["d_model"][1]:
        return None
    truth = sizes.wider(choice.ledger, other)
    return Guess.of(
        TEXT,
        truth,
        TEXT("guess", wide=fields["d_model"], now=choice.config.d_model),
        TEXT("outcome", **truth.numbers),
        {f"parameters_{field}": value for field, value in fields.items()},
    )


def _measured(choice: Choice) -> None:
    """The model's parts as bars, and what other choices would save or cost."""
    ledger, shares = choice.ledger, where(choice.ledger)
    read, layers = ledger.encoder, ledger.config.n_layers
    stacks = "one stack" if read is None else "stacks alike" if read.n_layers == layers else "both stacks"
    st.markdown(
        TEXT(
            f"blocks of {stacks}",
            total=shares.total,
            inside=shares.in_blocks,
            layers=layers,
            encoder=0 if read is None else read.n_layers,
            share=shares.in_blocks / max(shares.total, 1),
            outside=shares.outside,
        )
    )
    counts = ledger.components
    plot(
        component_bars(counts),
        key="parameters_bars",
        alt=TEXT("alt bars", model=choice.title, parts=shares_in_words(ledger)),
        height=360,
        data=pd.DataFrame({"component": [NAMES[n] for n in counts], "parameters": list(counts.values())}),
        name="components",
    )
    explain.takeaway(in_the_blocks(choice, shares))
    _savings(choice)


def in_the_blocks(choice: Choice, where: Where) -> str:
    """Says how much of the blocks is in the feed-forward networks, and whether that is the usual share."""
    if not where.network:
        return TEXT["no networks"]
    if not where.attention:
        return TEXT["no attention"]
    said = [
        TEXT(
            "usual shape" if where.usual else "another shape",
            share=where.network_share,
            d_ff=where.d_ff,
            queries=where.queries,
            keys=where.keys,
        )
    ]
    if choice.ledger.encoder is not None:
        said.append(TEXT["cross-attention"])
    said.append(TEXT("around the blocks", share=where.outside / max(where.total, 1)))
    return " ".join(said)


def _savings(choice: Choice) -> None:
    """Draws what one matrix for embedding and output saves, what a longer context costs, and what sharing
    keys and values saves.
    """
    cards = [_tying(choice), _longer(choice), _grouped(choice, "own", choice.config.n_heads)]
    cards.append(_grouped(choice, "one", 1))
    there = [card for card in cards if card is not None]
    for column, card in zip([*st.columns(2), *st.columns(2)], there, strict=False):
        with column:
            explain.worked(*card)


Card = tuple[str, str, str]  # label, number, arithmetic


def _tying(choice: Choice) -> Card | None:
    """One matrix for embedding and output."""
    c = choice.config
    other = choice.variant(tie_embeddings=not c.tie_embeddings)
    if other is None:
        return None
    parameters, _ = change(choice.ledger, other)
    share = parameters.apart / max(parameters.larger, 1)
    why = TEXT("tied matrix", vocab=c.vocab_size, d=c.d_model, share=share)
    return TEXT["tying saves" if c.tie_embeddings else "tying would save"], f"{parameters.apart:,}", why


def _longer(choice: Choice) -> Card | None:
    """A context twice as long."""
    c = choice.config
    other = choice.variant(context=2 * c.context)
    if other is None:
        return None
    parameters, _ = change(choice.ledger, other)
    case = "longer table" if c.position == "learned" else "longer text"
    return TEXT["twice"], signed(parameters.difference), TEXT(case, long=2 * c.context, context=c.context)


def _grouped(choice: Choice, name: str, heads: int) -> Card | None:
    """Another number of key heads; None where the model cannot have it."""
    c, label = choice.config, TEXT[f"keys {name}"]
    if c.mixer not in GROUPED_MIXERS:
        return label, "–", TEXT["no keys"]
    other = choice.variant(n_kv_heads=heads)
    if other is None:
        return None
    parameters, cached = change(choice.ledger, other)
    case = "heads already" if heads == c.n_kv_heads else "heads instead"
    instead = TEXT(case, heads=heads, now=c.n_kv_heads, layers=c.n_layers)
    now, then = cached.first, cached.second
    kept = "cached nothing" if not now else "cached as now" if now == then else "cached instead"
    return label, signed(parameters.difference), f"{instead} {TEXT(kept, then=then, now=now)}"


def _by_hand(choice: Choice) -> None:
    """The products that make up the count, and every tensor."""
    products, total = terms(choice.ledger), choice.ledger.total
    main = counted(products)
    st.markdown(
        TEXT(
            "one term" if len(products) == 1 else "several terms",
            terms=len(products),
            main=main,
            total=total,
            model=choice.title,
            share=main / max(total, 1),
        )
    )
    rows = [
        {
            "part": " ".join((*([term.stack] if term.stack else []), NAMES[term.component])),
            "in symbols": term.formula,
            "in numbers": term.numbers,
            "parameters": f"{term.parameters:,}",
        }
        for term in products
    ]
    st.table(pd.DataFrame(rows).set_index("part"), border="horizontal")
    draw_letters()
    table = rows_table(choice.ledger)
    st.dataframe(
        table,
        hide_index=True,
        height=min(35 * len(table) + 38, 460),
        column_config={
            "each": st.column_config.NumberColumn(format="localized"),
            "parameters": st.column_config.NumberColumn(format="localized"),
            "share": st.column_config.NumberColumn(format="percent"),
        },
    )


def rows_table(ledger: Ledger) -> pd.DataFrame:
    """Returns the itemised table: a row for each tensor."""
    return pd.DataFrame(
        [
            {
                **({"stack": row.stack} if ledger.encoder else {}),
                "component": NAMES[row.component],
                "tensor": row.name,
                "formula": row.formula,
                "in numbers": row.numbers,
                "each": row.each,
                "times": row.copies,
                "parameters": row.parameters,
                "share": row.parameters / max(ledger.total, 1),
            }
            for row in ledger.rows
        ]
    )


def treemap(ledger: Ledger, title: str) -> go.Figure:
    """Areas are parameters: the model, its stacks and blocks, their components, the tensors. Tensors that
    count 0 are left out, and what is too thin for its name has none: it is told when it is pointed at.
    """
    unnamed = thin(ledger)
    nodes: dict[str, dict[str, Any]] = {
        "model": {"label": title, "parent": "", "value": 0, "part": "residual", "note": ""}
    }

    def grow(name: str, parent: str, label: str, part: str, note: str, count: int) -> str:
        node = nodes.setdefault(
            name, {"label": label, "parent": parent, "value": 0, "part": part, "note": note}
        )
        node["value"] += count
        return name

    for row in ledger.rows:
        if not row.parameters:
            continue
        above, part = "model", SHADES[row.component]
        nodes["model"]["value"] += row.parameters
        if row.stack:
            above = grow(row.stack, above, row.stack, "residual", "", row.parameters)
        if row.component in PER_BLOCK:
            label = TEXT("area blocks", blocks=row.copies)
            above = grow(f"{row.stack} blocks", above, label, "residual", "", row.parameters)
        above = grow(f"{row.stack} {row.component}", above, NAMES[row.component], part, "", row.parameters)
        nodes[above]["unnamed"] = row.component in unnamed
        tensor = grow(
            f"{above} {row.name}",
            above,
            row.name,
            part,
            f"{_times(row)}{row.formula} = {_times(row, number=True)}{row.numbers}<br>",
            row.parameters,
        )
        nodes[tensor]["unnamed"] = row.component in unnamed
    values, top = list(nodes.values()), max(nodes["model"]["value"], 1)
    trace: dict[str, Any] = {
        "type": "treemap",
        "ids": list(nodes),
        "labels": [_label(name, v, top, nodes) for name, v in nodes.items()],
        "parents": [v["parent"] for v in values],
        "values": np.array([v["value"] for v in values], dtype=np.float64),
        "branchvalues": "total",
        "sort": True,
        "text": [
            ""
            if v.get("unnamed")
            else short(v["value"]) + (f" · {v['value'] / top:.1%}" if v["value"] >= ROOMY * top else "")
            for v in values
        ],
        "hovertext": [v["note"] for v in values],
        "marker": {
            "colors": [
                colour(v["part"]) if v["parent"] else colour("quiet", 25) for v in values
            ],  # the root's text has the page's own colour
            # Tensors of a part have its colour: a line that is light on any of them holds them apart.
            "line": {"width": 1, "color": "rgba(255,255,255,0.6)"},
            "pad": {"t": 22, "l": 3, "r": 3, "b": 3},
        },
        "texttemplate": "%{label}<br>%{text}",
        "customdata": [v["label"] for v in values],
        "hovertemplate": TEXT["hover"],
        "pathbar": {"visible": False},
        "tiling": {"pad": 2},
        # The page's own colour is the one that can be read on every part, light or dark, but for orange on a
        # light page.
        "textfont": {
            "size": 15,
            "color": [colour_on(v["part"]) if v["parent"] else "var(--gf-seq6)" for v in values],
        },
    }
    return go.figure([trace], margin={"l": 0, "r": 0, "t": 0, "b": 0}, showlegend=False)


def _label(name: str, node: Mapping[str, Any], top: float, nodes: Mapping[str, Any]) -> str:
    """Returns the text of an area. One that holds others shows its first line only: its share
    stands there.
    """
    if node.get("unnamed"):
        return ""
    if any(other["parent"] == name for other in nodes.values()):
        return f"{node['label']} · {short(node['value'])} · {node['value'] / top:.1%}"
    return str(node["label"])


def _times(row: Row, *, number: bool = False) -> str:
    return "" if row.copies == 1 else f"{row.copies:,}·" if number else "L·"


def component_bars(counts: Mapping[str, int]) -> go.Figure:
    """Draws parameters by component, in the order in which data meets them."""
    names = [name for name in counts if counts[name]]
    total = max(sum(counts.values()), 1)
    bars = {
        "type": "bar",
        "orientation": "h",
        "y": [NAMES[n] for n in names],
        "x": np.array([counts[n] for n in names], dtype=np.float64),
        "marker": {"color": [colour(SHADES[n]) for n in names]},
        "text": [percent(counts[n], total) for n in names],
        "textposition": "outside",
        "cliponaxis": False,
        "hovertemplate": "%{y}: %{x:,.0f}<extra></extra>",
    }
    return go.figure(
        [bars],
        margin={"l": 110, "r": 56, "t": 8, "b": 44},
        showlegend=False,
        bargap=0.3,
        xaxis={"title": {"text": "parameters"}, "exponentformat": "B", "nticks": 5},
        yaxis={"autorange": "reversed", "showgrid": False},
    )


PART = View(
    "whole",
    TEXT,
    draw,
    code=(parameter_rows, terms),
    question=lambda choice: TEXT("question", model=choice.title),
)
