"""The view of a fact in the stream: in which block the answer appears, and who wrote it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st

from engine.data.tokenizers import Tokenizer
from engine.errors import GlassformerError
from engine.measure.circuits.fact_recall import Fact, answer_of, trace
from engine.measure.recording import record
from pages.inside.circuits import words_behaviour as words
from pages.inside.circuits.figures_fact import answer_by_depth
from pages.inside.circuits.prompts import OWN
from ui import explain, memo, widgets
from ui.fit_text import most_tokens, read
from ui.model_bar import Subject
from ui.players.plot import plot
from ui.text.markdown import safe, sentence
from ui.widgets import MOST_ANSWER, MOST_PROMPT, line

HEIGHT = 360


@dataclass(frozen=True)
class Question:
    """A prompt, and the token that should follow; empty: whatever the model says."""

    title: str
    prompt: str
    answer: str
    letters: bool = False  # for models that read letters


QUESTIONS: dict[str, Question] = {
    "capital": Question("capital of France", "The capital of France is", " Paris"),
    "gold": Question("gold", "The chemical symbol for gold is", " Au"),
    "hamlet": Question("Hamlet", "The author of Hamlet is William", " Shakespeare"),
    "planet": Question("largest planet", "The largest planet in the solar system is", " Jupiter"),
    "opposite": Question("opposite of hot", "The opposite of hot is", " cold"),
    "sum": Question("two plus two", "Two plus two is", " four"),
    "window": Question("But, soft!", "But, soft! what light through yonder win", "d", letters=True),
    "romeo": Question("ROMEO", "ROMEO", ":", letters=True),
    "art": Question("thou art", "thou ar", "t", letters=True),
    "citizen": Question("First Citizen", "First Citiz", "e", letters=True),
}


def draw_fact(subject: Subject) -> None:
    """Draws a prompt, the climb of its answer, and the writers."""
    known = questions_for(subject.tokenizer)
    titles = {name: q.title for name, q in known.items()} | {OWN: words.YOUR_OWN}
    chosen = widgets.select(words.PROMPT, titles, "fact_question", kind="pills", wrap=True, hidden=True)
    question = _own(next(iter(known.values()), Question("", "", ""))) if chosen == OWN else known[chosen]
    ids, prompt, notes = read(question.prompt, subject.tokenizer, min(most_tokens(subject.config), 64))
    for note in notes:
        st.caption(f":material/info: {safe(note)}")
    try:
        fact, note = _traced(subject.key, ids, prompt, question.answer, subject)
    except GlassformerError as error:
        st.warning(sentence(error), icon=":material/info:")
        return
    _draw(subject, fact)
    explain.answer(words.fact_answer(fact, subject, prompt))
    explain.measure_it(st.markdown, words.who(fact))
    if note:
        st.caption(f":material/info: {safe(note)}")


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
        prompt = line(words.PROMPT, first.prompt, "fact_prompt", MOST_PROMPT)
    with right:
        answer = line(words.ANSWER, "", "fact_answer_text", MOST_ANSWER, words.ANSWER_HINT)
    return Question("", prompt, answer)


@memo.measured(words.FACT_MEASURED)
def _traced(
    key: tuple[str, int], ids: tuple[int, ...], prompt: str, answer: str, _subject: Subject
) -> tuple[Fact, str]:
    """The fact and what was made of the answer. Raises GlassformerError where there is none."""
    recording = record(_subject.model, ids)
    if not answer:
        return trace(_subject.model, recording), ""
    meant = answer_of(_subject.tokenizer, prompt, answer, recording.logits[-1])
    note = words.of_answer(answer, meant, _subject.vocabulary[meant.token])
    return trace(_subject.model, recording, meant.token), note


def _draw(subject: Subject, fact: Fact) -> None:
    names = words.depth_names(subject.config.n_layers)
    guesses = [subject.vocabulary[i] for i in fact.guess]
    written = fact.written
    parts = None if written is None else {"attention": written.attention, "feedforward": written.feedforward}
    table = {"depth": names, "rank": fact.rank, "probability": fact.probability, "guess": guesses}
    for name, values in (parts or {}).items():
        table[f"{name}_nats"] = np.concatenate(([np.nan], values))
    plot(
        answer_by_depth(fact.rank, fact.probability, guesses, names, parts, subject.config.vocab_size),
        key="fact_climb",
        height=HEIGHT if parts else HEIGHT - 100,
        name="fact",
        data=table,
        alt=words.depths_alt(subject.vocabulary[fact.answer], fact),
    )
