"""The view "Fine-tuning": a model learns a new fact in seconds; what it answers then, and what it forgot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from engine.data.progress import Steps
from engine.errors import GlassformerError
from engine.model import Transformer
from pages.lab.after.another_text import FORGETS, choose_prompt, chosen, draw_text
from pages.lab.after.another_text import lessons as texts
from pages.lab.after.stored_tunings import (
    between,
    last_values,
    live_line,
    spread,
    stored,
    stored_line,
)
from pages.lab.after.tuned_model import (
    LORA,
    METHOD,
    changes,
    counted,
    look_inside,
    take_along,
    use_lora,
)
from studies.after.finetune import (
    MAX_SENTENCES,
    FinetuneRecipe,
    adapters,
    fine_tune,
    target_count,
    trained_parameters,
)
from studies.after.lessons import OPENING, STYLES, TEXT_STEPS, TOPICS, Setting, Style, TextLesson, Topic, rate
from studies.after.new_fact import FactEvaluation, Taught, ask, teach
from studies.experiments.finetune_runs import FinetuneRun
from studies.guesses import after
from ui import content, explain, guess, session, widgets
from ui.background_jobs import Key, begun, measured
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.guess import Guess
from ui.model_bar import Subject
from ui.model_needs import CAUSAL, SAYS
from ui.models import REAL_MODEL
from ui.page_frame import View
from ui.players.plot import plot
from ui.text.markdown import safe, whole
from ui.widgets import MOST_ANSWER, MOST_PROMPT, line

TEXT = content.beside(__file__)
OWN, REHEARSE = "own", "tune_rehearse"
WRITTEN = {Topic: 3, Style: 6}  # tokens that the model writes after each prompt
WIDTHS = {Topic: (5, 4), Style: (1, 1)}  # of the figure and the table
RANKS = {LORA: 4, "lora-1": 1, "lora-16": 16, "full": 0}
BOX, MOST_BEGINS = 2_000, 20  # characters of a visitor's sentences, and of a word that answers begin with
STEPS, MOST_STEPS = 10, 30
LEAST_OF_TEXT, MOST_OF_TEXT = 12, 120  # steps of a lesson that is a text
MOST_SEED = 100
FULL_BYTES = 16  # for each weight: a copy, its gradient, AdamW's two moments
ROW = [5, 4, 3, 5, 2, 3]  # widths of the controls of a fact
HEIGHTS = {Topic: 328, Style: 312}  # pixels
MORE = 16  # the rank that a guess sets
LOOKS = {  # (colour, dash, width) of a line by its role
    "new": ("output", "solid", 3.0),
    "reworded": ("output", "dot", 2.0),
    "known": ("validation", "solid", 2.0),
    "leak": ("run1", "dash", 2.0),
    "single": ("output", "solid", 1.0),
}


def draw(subject: Subject) -> None:
    """Draws what is taught and how, the answers step by step, and what the model writes before and after."""
    setting, pressed = _controls(subject)
    if setting is None:
        return
    memory = FULL_BYTES * trained_parameters(subject.model, setting.recipe.rank)
    if session.profile().public and memory > session.profile().max_worker_bytes:
        st.info(TEXT("too large", memory=memory))
        use_lora()
        return
    key = ("fine-tuning", subject.key, setting)
    _guess(subject, setting)
    if isinstance(setting.topic, TextLesson):
        draw_text(subject, setting, setting.topic, pressed)
    elif pressed or begun(key):
        _taught(subject, setting, setting.topic, key)
    else:
        _before(subject, setting, setting.topic)


def _guess(subject: Subject, setting: Setting) -> None:
    """Offers the guess about rehearsal where stored runs tell, else that about the rank."""
    topic = setting.topic
    without, rehearsing = (stored(subject, replace(setting, rehearse=on)) for on in (False, True))
    if isinstance(topic, Topic) and without and rehearsing:
        guess.ask("rehearsed", guess_rehearsed, topic, setting.rehearse, without, rehearsing)
    else:
        guess.ask("adapter", _guess_adapter, subject.model, setting.recipe.rank)


def _taught(subject: Subject, setting: Setting, topic: Topic | Style, key: Key) -> None:
    """Draws the fine-tuning while it goes on, and what it has taught."""
    taught = measured(
        key,
        _teaching(subject, setting, topic),
        TEXT["fine-tuning"],
        lambda looks: _by_step(subject, setting, topic, looks or ()),
        pausable=True,
    )
    if taught is None:
        return
    left, right = st.columns(WIDTHS[type(topic)], gap="small")
    with left:
        _by_step(subject, setting, topic, taught.looks)
    with right:
        _written(setting, topic, taught.before, taught.after)
        st.caption(counted(taught.trained, taught.total, done=True))
    with left:  # where there is room
        if runs := stored(subject, setting):
            st.caption(spread_of(topic, runs))
        elif not setting.recipe.rank:
            st.caption(TEXT["no draw"])
        else:
            st.caption(TEXT("single run", seed=setting.recipe.seed))
    explain.answer(learned(topic, taught))
    look_inside(subject, setting, taught)
    explain.measure_it(_more, subject, setting, topic, taught)


def _before(subject: Subject, setting: Setting, topic: Topic | Style) -> None:
    """Draws what the model answers before anything is taught."""
    lessons = topic.lessons(setting.rehearse, setting.answers_only)
    try:
        count = target_count(lessons, subject.tokenizer)
    except GlassformerError as error:
        st.warning(safe(str(error)))
        return
    questions, tokens = topic.questions, WRITTEN[type(topic)]
    first = measured(
        ("asked", subject.key, questions, tokens),
        partial(ask, subject.model, subject.tokenizer, questions, tokens),
        TEXT["asking"],
    )
    if first is None:
        return
    answers, written = first
    left, right = st.columns(WIDTHS[type(topic)], gap="small")
    with left:
        _by_step(subject, setting, topic, (FactEvaluation(0, math.nan, answers),))
    with right:
        _written(setting, topic, written)
        total = trained_parameters(subject.model, 0)
        trained = trained_parameters(subject.model, setting.recipe.rank)
        st.caption(
            TEXT(
                "step",
                counted=counted(trained, total, done=False),
                sentences=len(lessons),
                tokens=count,
                seed=setting.recipe.seed,
            )
        )
    explain.answer(untaught(topic, answers))
    explain.measure_it(st.markdown, _lessons(topic, setting.rehearse))


def _teaching(
    subject: Subject, setting: Setting, topic: Topic | Style
) -> partial[Steps[Taught[FactEvaluation]]]:
    lessons = topic.lessons(setting.rehearse, setting.answers_only)
    text, written = topic.text if isinstance(topic, Style) else "", WRITTEN[type(topic)]
    about = subject.model, subject.tokenizer, lessons, topic.questions
    return partial(teach, *about, setting.recipe, written, text)


def _controls(subject: Subject) -> tuple[Setting | None, bool]:
    """Returns what is to be taught, None where the visitor's own fact or text is not complete; and whether it
    is to begin now.
    """
    others = texts(subject)
    titles = {name: topic.title for name, topic in (TOPICS | STYLES).items()} | {OWN: TEXT["own fact"]}
    first = next(iter(others), None)
    lessons = others | titles
    settled = widgets.settled(lessons, "tune_fact", first or next(iter(lessons)))
    of_text, of_style = settled in others, settled in STYLES
    widths = [5.4, 4, 3, 3.6, 3, 2, 3.6] if of_text else [5, 4, 3, 5, 3, 2, 4] if of_style else ROW
    a, b, c, d, *g, e, f = st.columns(widths, gap="small", vertical_alignment="bottom")
    name = widgets.select(TEXT["lesson"], lessons, "tune_fact", first=first, kind="list", container=a)
    methods = {method: TEXT(f"method {method}") for method in RANKS}
    method = widgets.select(TEXT["method"], methods, METHOD, kind="list", container=b)
    prompt = ""
    if of_text:
        with g[0]:
            prompt = choose_prompt(subject)
        steps = widgets.slide(
            TEXT["steps"], LEAST_OF_TEXT, MOST_OF_TEXT, TEXT_STEPS, "tune_text_steps", step=12, container=c
        )
    else:
        steps = widgets.slide(TEXT["steps"], 2, MOST_STEPS, STEPS, "tune_steps", container=c)
    with d:
        label = TEXT["rehearse" if of_text or of_style else "rehearse facts"]
        hint = TEXT["rehearse text hint" if of_text else "rehearse hint"]
        rehearse = widgets.switch(label, False, REHEARSE, hint=hint)
        label = TEXT["answers only" if of_style else "loss on answers"]
        only = not of_text and widgets.switch(label, False, "tune_answers", hint=TEXT["answers hint"])
    seed = widgets.whole(TEXT["seed"], 0, MOST_SEED, 0, "tune_seed", container=e, hint=TEXT["seed hint"])
    with f:
        # Streamlit's own: it begins something and has no value.
        pressed = st.button(TEXT["fine-tune"], icon=":material/play_arrow:", type="primary", key="tune_go")
    topic: Topic | Style | TextLesson | None
    topic = chosen(name, subject, prompt) if of_text else _own() if name == OWN else (TOPICS | STYLES)[name]
    if topic is None:
        return None, False
    if isinstance(topic, Style):
        with g[0]:
            begins = topic.answer.strip() + OPENING
            begins = line(TEXT["begins"], begins, "tune_begins", MOST_BEGINS, TEXT["begins hint"])
        topic = topic.beginning(begins)
    rank = RANKS[method]
    return Setting(topic, FinetuneRecipe(rank, steps, rate(rank, of_text), seed), rehearse, only), pressed


def _own() -> Topic | None:
    """Returns the visitor's fact; None, and a sentence, while something is missing."""
    first = TOPICS["capital"]
    most = MAX_SENTENCES - len(first.rehearsed)  # so that rehearsal can be switched on
    a, b, c = st.columns([6, 4, 2], gap="small")
    with a:
        label = TEXT("sentences", most=most)
        text = whole(widgets.box(label, BOX, "tune_sentences", height=90)).replace("\0", " ")
    with b:
        prompt = line(TEXT["prompt"], first.prompt, "tune_prompt", MOST_PROMPT)
    with c:
        answer = line(TEXT["answer"], first.answer, "tune_answer", MOST_ANSWER, TEXT["answer hint"])
    sentences = tuple(line.strip() for line in text[:BOX].splitlines() if line.strip())[:most]
    if not (sentences and prompt.strip() and answer.strip()):
        st.info(TEXT["own missing"])
        return None
    return Topic(TEXT["own title"], sentences, prompt, "", answer, first.known, first.rehearsed)


def _by_step(
    subject: Subject, setting: Setting, topic: Topic | Style, looks: tuple[FactEvaluation, ...]
) -> None:
    if not looks:
        return
    steps, plain = [look.step for look in looks], np.array([look.plain for look in looks])
    answers = np.array([look.answers for look in looks]).T  # (question, step)
    lines, count = _drawn(topic, answers), len(topic.questions)
    runs = stored(subject, setting) if len(looks) > 1 else ()
    values = [np.array(run.values).T for run in runs]  # the last one of a style is the loss on plain text
    labels = _labels(topic)
    ends = [TEXT("alt end", line=name, share=row[-1]) for (name, _), row in zip(labels, lines, strict=True)]
    plot(
        answers_by_step(
            steps,
            lines,
            labels,
            setting.recipe.steps,
            plain if isinstance(topic, Style) else None,
            [(r.steps, _drawn(topic, v[:count]), v[-1]) for r, v in zip(runs, values, strict=True)],
        ),
        key="tune_answers_by_step",
        height=HEIGHTS[type(topic)],
        name="fine-tuning",
        data={"step": np.array(steps), "plain_text_loss": plain}
        | {f"{q.prompt}{q.answer}": line for q, line in zip(topic.questions, answers, strict=True)},
        alt=TEXT("alt", steps=steps[-1], ends="; ".join(ends)),
    )


def _drawn(topic: Topic | Style, answers: np.ndarray) -> np.ndarray:
    """Returns the lines of the figure (line, step) for answers (question, step): those of a fact themselves;
    of a style each unseen prompt, then the means over these and over those of another form.
    """
    return answers if isinstance(topic, Topic) else topic.with_means(answers)


def _labels(topic: Topic | Style) -> list[tuple[str, str]]:
    """Returns (name, role) of each line of `_drawn`, in their order: what the figure calls them. A name is no
    Markdown.
    """
    answer = topic.answer.strip()
    if isinstance(topic, Style):
        rows = [(TEXT("line single", prompt=prompt), "single") for prompt in topic.unseen]
        rows.append((TEXT("line new questions", word=answer), "new"))
        rows.append((TEXT("line other texts", word=answer), "leak"))
    else:
        rows = [(TEXT("line new", answer=answer), "new")]
        if topic.reworded:
            rows.append((TEXT("line reworded", answer=answer), "reworded"))
        rows += [(TEXT("line known", answer=q.answer.strip()), "known") for q in topic.known]
        if topic.known:
            known = topic.known[0].answer.strip()
            rows.append((TEXT("line leak", answer=answer, known=known), "leak"))
    return [(str(name), role) for name, role in rows]


def _written(
    setting: Setting, topic: Topic | Style, before: tuple[str, ...], after: tuple[str, ...] = ()
) -> None:
    """Draws what the model writes after each prompt, before and after."""
    rows: dict[str, str] = {}
    for i, question in enumerate(topic.questions):
        if not isinstance(topic, Style) or question.prompt in topic.listed:
            row = TEXT(
                "written after" if after else "written before",
                prompt=question.prompt,
                before=before[i].strip(),
                after=after[i].strip() if after else "",
            )
            rows.setdefault(question.prompt, row)
    st.markdown("\n".join([TEXT("written", steps=setting.recipe.steps), *rows.values()]))


def _more(subject: Subject, setting: Setting, topic: Topic | Style, taught: Taught[FactEvaluation]) -> None:
    changes(subject, setting, taught)
    st.markdown(_lessons(topic, setting.rehearse))
    take_along(subject, setting, taught)


def _lessons(topic: Topic | Style, rehearse: bool) -> str:
    """Lists the sentences that were read (Markdown)."""
    lines = [*topic.sentences, *(topic.rehearsed if rehearse else ())]
    said = " ".join(TEXT("sentence", text=line) for line in lines)
    return TEXT("lessons", sentences=content.Filled(said))


# What is said of it -------------------------------------------------------------------------------


def learned(topic: Topic | Style, taught: Taught[FactEvaluation]) -> str:
    """Returns the answer: what is learned, and what became of the first known fact (Markdown)."""
    if isinstance(topic, Style):
        return _styled(topic, taught)
    first, last = taught.looks[0].answers, taught.looks[-1].answers
    best = max(taught.looks, key=lambda look: look.answers[0])
    if last[0] >= 0.5:
        case = "as a sentence" if topic.reworded and last[1] < 0.5 else "learned"
    else:
        case = "lost again" if first[0] < 0.5 <= best.answers[0] else "not learned"
    became, old, was, is_now = "alone", "", 0.0, 0.0
    if topic.known:
        at = len(last) - 1 - len(topic.known)
        old, was, is_now = topic.known[0].answer.strip(), first[at], last[at]
        became = "known" if is_now >= was / 2 else "forgotten"
    return TEXT(
        f"fact {case}, {became}",
        new=topic.answer.strip(),
        steps=taught.looks[-1].step,
        now=last[0],
        reworded=last[1] if topic.reworded else 0.0,
        best=best.answers[0],
        best_step=best.step,
        old=old,
        old_before=was,
        old_now=is_now,
    )


def _styled(topic: Style, taught: Taught[FactEvaluation]) -> str:
    """Says how likely the style is where it was not shown, and what became of plain text (Markdown)."""
    first, last = taught.looks[0], taught.looks[-1]
    begins, leak = _drawn(topic, np.array([last.answers]).T)[-2:, 0]
    case = "learned" if begins >= 0.5 else "not learned"
    spreads = ", spreads" if leak >= 0.5 else ""
    style = TEXT(f"style {case}{spreads}", steps=last.step, word=topic.answer.strip(), begins=begins)
    forgot = "forgot little" if last.plain - first.plain < FORGETS else "forgot"
    return f"{style} {TEXT(forgot, before=first.plain, after=last.plain)}"


def untaught(topic: Topic | Style, answers: Sequence[float]) -> str:
    """Returns the answer before anything is taught (Markdown)."""
    word = topic.answer.strip()
    if isinstance(topic, Style):
        begins = _drawn(topic, np.array([answers]).T)[-2, 0]
        return TEXT("untaught style", begins=begins, word=word, answers=len(topic.shown))
    known = answers[0] >= 0.5
    if not topic.known:
        return TEXT("known already, alone" if known else "unknown, alone", new=word, now=answers[0])
    old, old_now = topic.known[0].answer.strip(), answers[-1 - len(topic.known)]
    return TEXT("known already" if known else "unknown", new=word, now=answers[0], old=old, old_now=old_now)


def spread_of(topic: Topic | Style, runs: Sequence[FinetuneRun]) -> str:
    """Says at what the stored runs ended: of the first two lines, and the loss on plain text."""
    values = last_values(runs)
    lines = zip(_labels(topic), _drawn(topic, values[:, : len(topic.questions)].T), strict=True)
    ends = [
        TEXT("end", line=name, between=between(row, ".0%"))
        for (name, role), row in lines
        if role in ("new", "known", "leak")
    ][:2]
    if isinstance(topic, Style):
        ends.append(TEXT("end on plain", between=between(values[:, -1], ".2f")))
    return spread(runs, ends)


def guess_rehearsed(
    topic: Topic, now: bool, without: Sequence[FinetuneRun], rehearsing: Sequence[FinetuneRun]
) -> Guess | None:
    """Makes a guess about the first old fact, from stored runs without and with rehearsal; a choice
    switches it on. None where it is on `now`.
    """
    if now or not (without and rehearsing):
        return None
    at = -1 - len(topic.known)
    ends = ([run.values[-1][at] for run in runs] for runs in (without, rehearsing))
    truth = after.rehearsed(without[0].values[0][at], *ends)
    if truth is None:
        return None
    old, sentences = topic.known[0].answer.strip(), len(topic.rehearsed)
    return Guess.of(
        TEXT,
        truth,
        TEXT("rehearsal guess", sentences=sentences, old=old),
        TEXT("rehearsal outcome", steps=without[0].steps[-1], runs=len(rehearsing), **truth.numbers),
        {REHEARSE: True},
    )


def _guess_adapter(model: Transformer, rank: int) -> Guess | None:
    """Makes a guess about the numbers that a larger adapter trains; a choice sets its rank."""
    truth = after.adapter(model, rank, MORE)
    if truth is None:
        return None
    n = truth.numbers
    return Guess.of(
        TEXT,
        truth,
        TEXT("adapter guess", rank=MORE, now=rank),
        TEXT("adapter outcome", share=n["after"] / n["total"], **n),
        {METHOD: f"lora-{MORE}"},
    )


def answers_by_step(
    steps: Sequence[int],
    lines: np.ndarray,
    labels: Sequence[tuple[str, str]],
    end: int,
    plain: np.ndarray | None = None,
    stored: Sequence[tuple[Sequence[int], np.ndarray, np.ndarray]] = (),
) -> go.Figure:
    """Draws the probability of each answer (line, step) by step up to `end`; a label is its name and role.
    Below them, where it was measured, the loss on `plain` text (step,). `stored` runs, (steps, lines,
    loss on plain text), are thin lines.
    """
    traces, hover = [], TEXT["share hover"]
    for values, (name, role) in zip(lines, labels, strict=True):
        shade, dash, width = LOOKS[role]
        look = {"color": colour(shade), "dash": dash, "width": width}
        trace = live_line(steps, values, name, look, hover) | {"showlegend": role != "single"}
        traces.append(trace | ({"mode": "lines"} if role == "single" and len(steps) > 1 else {}))
    for at, run, _ in stored:
        for values, (name, role) in zip(run, labels, strict=True):
            if role != "single":
                traces.append(stored_line(at, values, name, LOOKS[role][0], hover))
    below: dict[str, Any] = {}
    hangs: dict[str, Any] = {}
    if plain is not None and np.isfinite(plain).any():
        loss, hover = TEXT["plain loss"], TEXT["loss hover"]
        look = {"color": colour("validation"), "width": 2.0}
        own = live_line(steps, plain, loss, look, hover) | {"name": TEXT["plain line"]}
        thin = [stored_line(at, values, loss, "validation", hover) for at, _, values in stored]
        traces += [each | {"yaxis": "y2"} for each in (own, *thin)]
        every = np.concatenate([plain, *(values for _, _, values in stored)])
        room = max(0.1, 0.15 * float(np.ptp(every)))
        reach = [float(every.min()) - room, float(every.max()) + room]
        hangs = {"anchor": "y2"}
        below = {"yaxis2": go.axis(TEXT["loss axis"], domain=[0, 0.27], range=reach, showgrid=True, nticks=4)}
    return go.figure(
        traces,
        **below,
        margin={"l": 52, "r": 12, "t": 8, "b": 40},
        showlegend=True,
        xaxis=go.axis(TEXT["step axis"], dtick=max(1, end // 10), range=[-0.02 * end, 1.02 * end], **hangs),
        yaxis=go.axis(TEXT["share axis"], range=[-0.02, 1.04], tickformat=".0%", showgrid=True)
        | ({"domain": [0.38, 1]} if below else {}),
    )


VIEW = View(
    "finetune",
    TEXT,
    draw,
    code=(adapters, fine_tune, teach),
    brings_text=True,
    takes=(SAYS, CAUSAL),
    best=(REAL_MODEL,),
)
