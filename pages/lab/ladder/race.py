"""The view "Race": rungs side by side, or models that differ in one thing; raced on demand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from engine.data import corpora
from engine.data.corpus import Corpus
from engine.errors import CorpusError
from runs.race import race
from runs.state import RunView
from studies.experiments.lab_races import RUNGS, question_specs, rung_specs
from studies.experiments.ladder_gains import EXPLODED, Finish, finish
from studies.experiments.race_recipes import QUESTIONS
from studies.experiments.race_table import Standing, Unit, standings
from studies.experiments.stored_races import Stored
from studies.tasks.all import TASKS
from studies.tasks.rungs import FIRST_FOUR, LADDER, LONG_TRAINING, RACE_TRAINING
from ui import content, session, widgets
from ui.page_frame import View
from ui.race import show_race, stored_race
from ui.run_text import counting
from ui.text.markdown import safe

TEXT = content.beside(__file__)
STEPS = (150, RACE_TRAINING.steps, LONG_TRAINING.steps)
TEXTS = ("shakespeare", "python", "text")  # and the tasks; the last is the visitor's own
SECONDS = (5, 15)  # of computing, each
KEY, TYPED = "ladder_question", "ladder_typed"
MOST = 8
WIDE, NARROW = 500, 170  # pixels of the lists
HEIGHT, LOWER = 350, 300  # pixels of the chart; where rungs are chosen above it


def draw() -> None:
    """Draws a list of questions; the race that answers it, with rungs, text and budget where rungs race."""
    line = st.container(horizontal=True, vertical_alignment="bottom", gap="small")
    titles = {RUNGS: str(TEXT["rungs question"])} | {
        name: question.asks for name, question in QUESTIONS.items()
    }
    name = widgets.select(TEXT["question"], titles, KEY, kind="list", width=WIDE, container=line)
    if name == RUNGS:
        _rungs(line)
        return
    question, unit, stored = QUESTIONS[name], _unit(name), stored_race(name)

    def say(views: Sequence[RunView]) -> str:
        return compared(name, _finish(views, stored, unit, counting(unit=unit)))

    specs = question_specs(name)
    show_race(f"question_{name}", question.title, specs, say=say, stored=stored, height=HEIGHT)


def _finish(
    views: Sequence[RunView], stored: Stored | None, unit: Unit, lines: Mapping[str, float]
) -> Finish | None:
    """The order of a race, with the other seeds of those runs that are stored."""
    return finish(standings(views), unit, lines, standings(stored.repeats_of(views) if stored else ()))


def _unit(name: str) -> Unit:
    """Nats of different tokens say nothing between them."""
    return "bits" if len({c.train.tokenizer for c in QUESTIONS[name].contestants}) > 1 else "nats"


def _rungs(line: st.delta_generator.DeltaGenerator) -> None:
    budgets = {f"{n}": TEXT("steps", count=n) for n in STEPS}
    budgets |= {f"{n}s": TEXT("seconds", count=n) for n in SECONDS}
    budget = widgets.select(
        TEXT["budget"],
        budgets,
        "ladder_steps",
        first=f"{RACE_TRAINING.steps}",
        kind="list",
        hint=TEXT["budget hint"],
        width=NARROW,
        container=line,
    )
    texts = {name: TEXT(f"text {name}") for name in TEXTS}
    texts |= {name: TEXT("task", title=task.title) for name, task in TASKS.items()}
    text = widgets.select(TEXT["text"], texts, "ladder_text", kind="list", width=NARROW, container=line)
    names = widgets.select_several(
        TEXT["rungs"],
        {name: rung.title for name, rung in LADDER.items()},
        "ladder_rungs",
        first=FIRST_FOUR,
        kind="list",
        max_selections=MOST,
        label_visibility="collapsed",
    )
    if len(names) < 2:
        st.info(TEXT["few"])
        names = list(FIRST_FOUR)
    text, typed, corpus = _corpus(text)
    lines = {} if corpus is None else corpus.baselines
    by_clock = budget.endswith("s")
    specs = rung_specs(
        names,
        text,
        typed,
        65 if corpus is None else corpus.vocab_size,
        steps=0 if by_clock else int(budget),
        seconds=float(budget[:-1]) if by_clock else 0.0,
    )

    stored = stored_race(RUNGS)

    def say(views: Sequence[RunView]) -> str:
        return answer(_finish(views, stored, "nats", lines))

    show_race(RUNGS, TEXT["title"], specs, say=say, stored=stored, height=LOWER)


def _corpus(text: str) -> tuple[str, str | None, Corpus | None]:
    """(its name, what was typed, the corpus); no corpus, with a sentence, where it cannot be had."""
    typed = None
    if text == "text":
        limit = session.profile().max_text
        hint = TEXT["your text hint"]
        typed = widgets.box(TEXT["your text"], limit, TYPED, height=80, placeholder=hint) or None
        if typed is None:
            st.info(TEXT["too short"])
            text = "shakespeare"
    try:
        return text, typed, corpora.from_text(typed) if typed else session.corpus(text)
    except CorpusError as error:
        st.warning(safe(str(error)))
        return text, None, None


def answer(finish: Finish | None) -> str:
    """Says which rung is ahead, and which know more than pairs."""
    if finish is None:
        return TEXT["before"]
    best, *others = finish.order
    leads = "leads" if finish.complete else "leads yet"
    if not others:
        leads = "leads alone" if finish.complete else "leads yet alone"
    behind = content.Filled(_losses(finish, others))
    said = [
        TEXT(leads, best=_named(best), loss=finish.loss(best), others=behind),
        _ended_early(finish),
    ]
    if finish.bigram is not None:
        ahead = [line.name for line in finish.below_bigram]
        case = "none below" if not ahead else "below" if len(ahead) < 3 else "many below"
        said.append(
            TEXT(
                case,
                bigram=finish.bigram,
                who=content.Filled(" and ".join(ahead)),
                count=len(ahead),
                runs=len(finish.order),
            )
        )
    return " ".join(filter(None, said))


def compared(name: str, finish: Finish | None) -> str:
    """Names best and worst; says whether that is more than seeds differ by, and who stalls."""
    if finish is None:
        return TEXT["before"]
    if name.startswith("norms") and finish.stalled:
        losses = content.Filled(_losses(finish, finish.order))
        said = [_stalled(finish), TEXT("medians" if finish.seeds > 1 else "losses", losses=losses)]
    else:
        of = " of seeds" if finish.seeds > 1 else ""
        clear = "" if finish.clear else ", unclear"
        best, worst = finish.best, finish.worst
        said = [
            TEXT(
                "compared" if finish.complete else "compared so far",
                best=_named(best),
                lowest=finish.loss(best),
                unit=TEXT(f"unit {finish.unit}"),
                worst=_named(worst),
                highest=finish.loss(worst),
                apart=TEXT(f"apart{of}{clear}", apart=finish.apart, seeds=finish.seeds),
            )
        ]
    if name == "inits" and finish.loss(finish.worst) > EXPLODED:
        said.append(TEXT["large"])
    said.append(_ended_early(finish))
    if name == "cuts":
        said.append(TEXT["cuts"])
    return " ".join(filter(None, said))


def _named(line: Standing) -> content.Filled:
    return content.Filled(line.name)  # the app's own


def _losses(finish: Finish, order: Sequence[Standing]) -> str:
    return ", ".join(TEXT("loss of", name=_named(line), loss=finish.loss(line)) for line in order)


def _stalled(finish: Finish) -> str:
    """Says which runs learned little more than the frequencies of characters, and with how many seeds."""
    if finish.seeds == 1:
        who = " and ".join(TEXT("stalled", name=content.Filled(name)) for name in finish.stalled)
        return TEXT("stalls once", who=content.Filled(who), unigram=finish.unigram)
    counts = ", ".join(
        TEXT("stalled with", name=content.Filled(name), count=count) for name, count in finish.stalled.items()
    )
    return TEXT(
        "stalls alone" if len(finish.stalled) < len(finish.order) else "stalls",
        counts=content.Filled(counts),
        seeds=finish.seeds,
        unigram=finish.unigram,
    )


def _ended_early(finish: Finish) -> str:
    """Names the runs that did not finish: their loss is that of fewer steps."""
    who = ", ".join(TEXT("ended at", name=_named(line), step=line.step) for line in finish.early)
    return TEXT("ended early", who=content.Filled(who)) if who else ""


VIEW = View("race", TEXT, draw, code=(race,), needs_model=False)
