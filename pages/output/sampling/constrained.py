"""The view "Constrained": texts under a grammar, the mass that it takes away at each step, and its cost."""

from __future__ import annotations

import math
from functools import partial

import pandas as pd
import streamlit as st

from studies.generation.constrained import FORMS, Drawn, Written, drawing, first_mass, taken, writable
from studies.generation.grammar import TokenGrammar, after
from studies.guesses import sampling as guesses
from ui import content, explain, memo, widgets
from ui.background_jobs import measured
from ui.figures import specs as go
from ui.figures.axes import token_axis
from ui.figures.theme import colour
from ui.guess import Guess, ask
from ui.model_bar import Subject
from ui.model_needs import KEEPS, SAYS
from ui.models import REAL_MODEL
from ui.page_frame import View
from ui.players.plot import plot

TEXT = content.beside(__file__)
COUNT, COUNT_LARGE = 64, 32  # texts under the grammar, and as many without
PROMPTS = ("question", "example")


def draw(subject: Subject) -> None:
    """Draws the mass that the grammar takes at each step of a text, and one step before and after it."""
    forms = _writable(subject.key[0], subject)
    if not forms:
        st.info(TEXT["none"])
        return
    a, b, c, d = st.columns([4, 4, 3, 3], gap="small", vertical_alignment="bottom")
    form = widgets.select(
        TEXT["form"], {name: TEXT(f"form {name}") for name in forms}, "grammar", container=a
    )
    prompts = {name: TEXT(f"prompt {name}") for name in PROMPTS}
    chosen = widgets.select(TEXT["prompt"], prompts, "grammar_prompt", container=b)
    caption, prompt = st.empty(), prompt_of(form, chosen)
    caption.caption(TEXT("reads" if len(forms) > 1 else "reads alone", prompt=prompt))
    place = st.container()
    drawn = _drawn(subject, form, chosen)
    if drawn is None:
        return
    number = widgets.slide(TEXT["text"], 1, len(drawn.bound), 1, "grammar_text", container=c) - 1
    shown = drawn.bound[number]
    if truth := FORMS[form].truth:
        case = "true" if shown.text == truth else "false"
        caption.caption(TEXT(f"writes {case}", prompt=prompt, text=shown.text, truth=truth))
    masses = [step.mass for step in shown.steps]
    first = masses.index(min(masses)) + 1
    step = widgets.slide(TEXT["step"], 1, len(masses), first, "grammar_step", container=d)
    with place:
        _draw(subject, shown, step - 1)
    explain.answer(answer(drawn))
    if chosen == PROMPTS[0]:
        ask("grammar", first_step, subject, form)
    explain.measure_it(_table, drawn)
    explain.by_hand(st.markdown, by_hand(subject, shown, step - 1, form))


def _drawn(subject: Subject, form: str, prompt: str) -> Drawn | None:
    """Returns the texts; of a large model one each way, until somebody wants more. None while it draws."""
    ids = tuple(subject.tokenizer.encode(prompt_of(form, prompt)))

    def texts(count: int, offer: str = "") -> Drawn | None:
        key = ("constrained", subject.key, form, ids, count)
        return measured(
            key,
            partial(drawing, subject.model, subject.tokenizer, ids, form, count),
            TEXT["drawing"],
            offer=offer,
        )

    if not subject.is_pretrained:
        return texts(COUNT)
    single = texts(1)
    return single and (texts(COUNT_LARGE, TEXT("draw", count=COUNT_LARGE)) or single)


@memo.measured()
def _writable(name: str, _subject: Subject) -> tuple[str, ...]:
    return writable(_subject.tokenizer)


def prompt_of(form: str, prompt: str) -> str:
    """Returns what the model reads before: the question alone, or an example and the question."""
    return (FORMS[form].example if prompt == "example" else "") + FORMS[form].question


def answer(drawn: Drawn) -> str:
    """Says how many texts are valid with the grammar and without, and how likely they are (Markdown)."""
    if len(drawn.bound) == 1:
        return TEXT("single" if drawn.valid[0] == 1 else "not ended", cost=-drawn.log_p)
    bound, free = drawn.valid
    return TEXT("all" if bound == 1 else "not all", bound=bound, free=free, cost=-drawn.log_p)


def first_step(subject: Subject, form: str) -> Guess | None:
    """Makes a guess about the mass that is taken from the first token once an example was read."""
    ids = subject.tokenizer.encode(prompt_of(form, "example"))
    truth = guesses.first_taken(first_mass(subject.model, subject.tokenizer, ids, form))
    if truth is None:
        return None
    outcome = TEXT("outcome", **truth.numbers)
    return Guess.of(TEXT, truth, TEXT["guess"], outcome, {"grammar_prompt": "example"})


def _draw(subject: Subject, shown: Written, step: int) -> None:
    labels = [subject.vocabulary[each.token] for each in shown.steps]
    masses = [each.mass for each in shown.steps]
    plot(
        figure(labels, masses, step, candidates(subject, shown, step)),
        key="grammar_mass",
        height=330,
        name="constrained-decoding",
        data=pd.DataFrame(
            {"token": labels, "mass_left": masses, "log_p": [each.log_p for each in shown.steps]}
        ),
        alt=TEXT("alt", tokens=len(labels), least=min(masses)),
    )


def candidates(subject: Subject, shown: Written, step: int) -> list[tuple[str, float, float]]:
    """Returns the likeliest tokens of a step, each with its probability before the grammar and after."""
    record = shown.steps[step]
    allowed = dict(record.after)
    both = sorted((dict(record.before) | allowed).items(), key=lambda row: -row[1])
    return [(subject.vocabulary[n], p, p / record.mass if n in allowed else 0.0) for n, p in both]


def figure(
    labels: list[str], masses: list[float], step: int, rows: list[tuple[str, float, float]]
) -> go.Figure:
    """Draws the mass left and taken at each step, and beside it the tokens of one step."""
    at, names = list(range(len(labels))), [name for name, _, _ in rows]
    places = list(range(len(rows)))
    bars = [
        go.Bar(x=at, y=masses, name=TEXT["left"], marker={"color": colour("output")}),
        go.Bar(
            x=at, y=[1 - mass for mass in masses], name=TEXT["taken"], marker={"color": colour("quiet", 40)}
        ),
    ]
    for name, which, shade in ((TEXT["before"], 1, "validation"), (TEXT["after"], 2, "output")):
        side = {"orientation": "h", "xaxis": "x2", "yaxis": "y2", "showlegend": which == 1}
        values = [row[which] for row in rows]
        bars.append(go.Bar(x=values, y=places, name=name, marker={"color": colour(shade)}) | side)
    for bar in bars:
        bar["hovertemplate"] = TEXT["hover token" if "orientation" in bar else "hover step"]
    bars[0]["offsetgroup"] = bars[1]["offsetgroup"] = "steps"
    bars[1]["base"] = masses
    steps = token_axis(labels, TEXT["tokens"])
    tokens = go.axis(TEXT("at step", step=step + 1), anchor="y2", range=[0, 1.02])
    share = go.axis(TEXT["probability"], range=[0, 1.02])
    candidates = go.ticks(places, names, autorange="reversed", anchor="x2")
    below = {  # on a phone: the step below the text
        "xaxis": steps,
        "yaxis": share | {"domain": [0.6, 1]},
        "xaxis2": tokens,
        "yaxis2": candidates | {"domain": [0, 0.38]},
    }
    mark = {"color": colour("quiet"), "dash": "dot", "width": 1.5}
    return go.figure(
        bars,
        barmode="group",
        bargap=0.25,
        margin={"l": 56, "r": 12, "t": 36, "b": 60},
        xaxis=steps | {"domain": [0, 0.6]},
        yaxis=share,
        xaxis2=tokens | {"domain": [0.74, 1]},
        yaxis2=candidates,
        shapes=[go.rule(x=step, yref="y domain", line=mark)],
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        meta={"narrow": below, "taller": 1.8},
    )


def by_hand(subject: Subject, shown: Written, step: int, form: str) -> str:
    """Returns the arithmetic of a step, and of the whole text (Markdown)."""
    record = shown.steps[step]
    p = dict(record.after).get(record.token, 0.0)
    return TEXT(
        "by hand",
        token=subject.vocabulary[record.token],
        p=p,
        mass=record.mass,
        q=p / record.mass,
        log_p=shown.log_p,
        product=shown.left,
        pattern=FORMS[form].pattern,
    )


def _table(drawn: Drawn) -> None:
    rows = [
        {
            TEXT["column bound"]: bound.text,
            TEXT["column log p"]: f"{bound.log_p:.1f}",
            TEXT["column free"]: free.text,
            TEXT["column free log p"]: f"{free.log_p:.1f}",
            TEXT["column valid"]: TEXT["yes" if free.valid else "no"],
        }
        for bound, free in zip(drawn.bound, drawn.free, strict=True)
    ]
    st.dataframe(pd.DataFrame(rows), hide_index=True, key="grammar_texts")
    if len(drawn.free) == 1:
        return
    case = "measured none" if math.isnan(drawn.free_log_p) else "measured"
    st.markdown(TEXT(case, count=len(drawn.free), expected=drawn.expected, mean=drawn.free_log_p))


VIEW = View(
    "constrained",
    TEXT,
    draw,
    (taken, after, TokenGrammar),
    takes=(SAYS, KEEPS),
    best=(REAL_MODEL,),
    brings_text=True,
    shows=("constrained decoding", "structured decoding", "structured output", "grammar", "JSON mode"),
)
