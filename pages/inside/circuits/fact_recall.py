"""The view "Fact recall": in which block the answer appears, and who wrote it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import streamlit as st

from engine.data.tokenizers import Tokenizer
from engine.errors import GlassformerError
from engine.recording import record
from pages.inside.circuits.prompts import OWN, QUESTIONS, Question
from studies.circuits.fact_recall import Answer, Fact, answer_of, trace
from ui import content, explain, memo, widgets
from ui.figures import specs as go
from ui.figures.labels import plain
from ui.figures.theme import colour
from ui.fit_text import most_tokens, read
from ui.model_bar import Subject
from ui.model_needs import CAUSAL, SAYS
from ui.page_frame import View
from ui.players.plot import plot
from ui.text.markdown import safe, sentence
from ui.widgets import MOST_ANSWER, MOST_PROMPT, line

TEXT = content.beside(__file__)
HEIGHT = 360


def draw(subject: Subject) -> None:
    """Draws a prompt, the climb of its answer, and the writers."""
    known = questions_for(subject.tokenizer)
    titles = {name: TEXT(f"question {name}") for name in (*known, OWN)}
    chosen = widgets.select(TEXT["prompt"], titles, "fact_question", kind="pills", wrap=True, hidden=True)
    question = _own(next(iter(known.values()), Question("", ""))) if chosen == OWN else known[chosen]
    ids, prompt, notes = read(question.prompt, subject.tokenizer, min(most_tokens(subject.config), 64))
    for note in notes:
        st.caption(f":material/info: {safe(note)}")
    try:
        fact, meant = _traced(subject.key, ids, prompt, question.answer, subject)
    except GlassformerError as error:
        st.warning(sentence(error), icon=":material/info:")
        return
    _draw(subject, fact)
    explain.answer(answer(fact, subject.vocabulary, prompt))
    explain.measure_it(st.markdown, who(fact))
    if meant is not None and (made := of_answer(question.answer, meant, subject.vocabulary)):
        st.caption(f":material/info: {made}")


def questions_for(tokenizer: Tokenizer) -> dict[str, Question]:
    """Returns the questions whose answer is one token; those for letters where none of the others is."""
    known = {name: q for name, q in QUESTIONS.items() if fits(tokenizer, q)}
    of_words = {name: q for name, q in known.items() if not q.letters}
    return of_words or known


def fits(tokenizer: Tokenizer, question: Question) -> bool:
    """True if the answer is one token, and one that stands by itself after the prompt."""
    if tokenizer.unknown(question.prompt + question.answer):
        return False
    answer = tokenizer.encode(question.answer)
    together = tokenizer.encode(question.prompt + question.answer)
    return len(answer) == 1 and together == [*tokenizer.encode(question.prompt), *answer]


def _own(first: Question) -> Question:
    left, right = st.columns([5, 2], gap="small")
    with left:
        prompt = line(TEXT["prompt"], first.prompt, "fact_prompt", MOST_PROMPT)
    with right:
        answer = line(TEXT["answer"], "", "fact_answer_text", MOST_ANSWER, TEXT["answer hint"])
    return Question(prompt, answer)


@memo.measured(TEXT["reading"])
def _traced(
    key: tuple[str, int], ids: tuple[int, ...], prompt: str, answer: str, _subject: Subject
) -> tuple[Fact, Answer | None]:
    """The fact, and how an answer was read. Raises GlassformerError where there is none."""
    recording = record(_subject.model, ids)
    if not answer:
        return trace(_subject.model, recording), None
    meant = answer_of(_subject.tokenizer, prompt, answer, recording.logits[-1])
    return trace(_subject.model, recording, meant.token), meant


def _draw(subject: Subject, fact: Fact) -> None:
    names = [depth_name(depth) for depth in range(len(fact.rank))]
    guesses = [subject.vocabulary[i] for i in fact.guess]
    written = fact.written
    parts = None if written is None else {"attention": written.attention, "feedforward": written.feedforward}
    table = {"depth": names, "rank": fact.rank, "probability": fact.probability, "guess": guesses}
    for name, values in (parts or {}).items():
        table[f"{name}_nats"] = np.concatenate(([np.nan], values))
    plot(
        answer_by_depth(fact.rank, fact.probability, guesses, parts, subject.config.vocab_size),
        key="fact_climb",
        height=HEIGHT if parts else HEIGHT - 100,
        name="fact",
        data=table,
        alt=TEXT("alt", word=subject.vocabulary[fact.answer], first=fact.rank[0], last=fact.rank[-1]),
    )


# What is said of it -------------------------------------------------------------------------------


def depth_name(depth: int) -> content.Filled:
    """Names a depth by what came last.

    >>> depth_name(0), depth_name(1)
    ('embed', 'block 0')
    """
    return TEXT("block", block=depth - 1) if depth else TEXT["embed"]


def of_answer(text: str, answer: Answer, vocabulary: Sequence[str]) -> str:
    """Says what was made of a visitor's answer; empty where it was taken as it is."""
    notes = [TEXT("space added", answer=text)] if answer.blank else []
    if answer.tokens > 1:
        notes.append(TEXT("only the first", count=answer.tokens, first=vocabulary[answer.token]))
    return " ".join(notes)


def answer(fact: Fact, vocabulary: Sequence[str], prompt: str) -> str:
    """Returns where it becomes the likeliest, where it climbs most, and who wrote it (Markdown)."""
    word, p, depths = vocabulary[fact.answer], fact.probability[-1], len(fact.rank)
    if fact.first is None:
        said = [
            TEXT(
                "never leads",
                prompt=prompt,
                word=word,
                rank=fact.rank[-1],
                p=p,
                guess=vocabulary[fact.guess[-1]],
                best=fact.rank[fact.best],
                depth=depth_name(fact.best),
            )
        ]
    else:
        if fact.first in (0, depths - 1):
            leads = "leads last" if fact.first else "leads at once"
        else:
            leads = "leads early" if 2 * fact.first < depths else "leads late"
        said = [TEXT(leads, prompt=prompt, word=word, depth=depth_name(fact.first), p=p)]
    if fact.leap is not None:
        before, after = fact.rank[fact.leap - 1 : fact.leap + 1]
        said.append(TEXT("jump", depth=depth_name(fact.leap), before=before, after=after))
    if fact.written is not None:
        part, block, most = fact.written.most
        said.append(TEXT("most", part=TEXT(f"part {part}"), block=block, most=most))
    return " ".join(said)


def who(fact: Fact) -> str:
    """Says what attention, the networks and the largest of them wrote (Markdown)."""
    written = fact.written
    if written is None:
        return TEXT["no writers"]
    part, block, most = written.most
    head = written.head
    return TEXT(
        "writers" if head is None else "writers and head",
        attention=written.by_attention,
        networks=written.by_feedforward,
        part=TEXT(f"part {part}"),
        block=block,
        most=most,
        head=content.Filled("" if head is None else f"{head.layer}.{head.head}"),
        alone=0.0 if head is None else head.value,
    )


# The figure ---------------------------------------------------------------------------------------


def answer_by_depth(
    rank: np.ndarray,
    probability: np.ndarray,
    guesses: Sequence[str],
    written: Mapping[str, np.ndarray] | None,
    last: int,
) -> go.Figure:
    """Draws, above, the answer's rank by depth, 1 on top, and its probability; below, what attention and the
    feed-forward network of each block wrote of its logit (layer,). `last` is the lowest rank there is.
    """
    at = np.arange(len(rank))
    words = [TEXT("guess", depth=depth_name(i), guess=plain(word)) for i, word in enumerate(guesses)]
    chance = go.Scatter(
        x=at,
        y=probability.astype(np.float32),
        yaxis="y2",
        name=TEXT["probability"],
        mode="lines",
        fill="tozeroy",
        fillcolor=colour("output", 20),
        line={"color": colour("output", 50), "width": 1},
        hovertemplate=TEXT("hover of a probability", name=TEXT["probability"]),
        showlegend=False,  # the axis says it
    )
    hover = TEXT["hover of a rank"]
    ranks = go.line(at, rank, "output", TEXT["rank"], hover, points=5, customdata=words, showlegend=False)
    traces = [chance, ranks]
    for part, values in (written or {}).items():
        name = TEXT(f"bars {part}")
        traces.append(
            go.Bar(
                x=at[1:],
                y=values,
                yaxis="y3",
                name=name,
                marker={"color": colour(part)},
                hovertemplate=TEXT("hover of a bar", name=name),
                customdata=[depth_name(depth) for depth in range(1, len(rank))],
            )
        )
    top = [0.44, 1.0] if written is not None else [0.0, 1.0]
    decades = [10**i for i in range(7) if 10**i <= last]
    axes = {
        "yaxis": go.axis(
            TEXT["rank axis"],
            showgrid=True,
            type="log",
            range=[float(np.log10(last)), -0.12],
            tickvals=decades,
            ticktext=[f"{n:,}" for n in decades],
            domain=top,
            zeroline=False,
        ),
        "yaxis2": go.axis(
            TEXT["probability"],
            overlaying="y",
            side="right",
            range=[0, 1.05],
            tickvals=[0, 0.5, 1],
            zeroline=False,
        ),
    }
    if written is not None:
        axes["yaxis3"] = go.axis(
            TEXT["nats axis"],
            showgrid=True,
            domain=[0.0, 0.36],
            zeroline=True,
            zerolinecolor=colour("quiet"),
            zerolinewidth=1,
            nticks=4,
        )
    ticks = [0, *range(1, len(rank), 1 if len(rank) <= 13 else 5)]
    return go.figure(
        traces,
        margin={"l": 78, "r": 52, "t": 26, "b": 40},
        barmode="group",
        bargap=0.2,
        xaxis=go.ticks(
            ticks,
            ["E", *(str(depth - 1) for depth in ticks[1:])],
            title=TEXT["depths axis"],
            tickangle=0,
            anchor="y3" if written else "y",
            range=[-0.6, len(rank) - 0.4],
        ),
        **axes,
    )


def _variant(subject: Subject) -> str:
    return "" if subject.is_pretrained else "small"


VIEW = View(
    "fact", TEXT, draw, (trace,), brings_text=True, takes=(SAYS, CAUSAL), variant=_variant, figures_only=True
)
