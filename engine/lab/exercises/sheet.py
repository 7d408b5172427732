"""A printable sheet: questions on the first pages, the worked answers on the last."""

from __future__ import annotations

import html
from collections.abc import Sequence
from random import Random

from engine.lab.exercises.catalogue import SETS, make
from engine.lab.exercises.exercise import Exercise
from engine.lab.exercises.markup import block, inline

STYLE = """
body { font: 12pt/1.45 Georgia, 'Times New Roman', serif; }
body { max-width: 19cm; margin: 1cm auto; padding: 0 .6cm; }
h1 { font-size: 17pt; margin: 0 0 .2cm; } .about { color: #444; margin: 0 0 .6cm; }
section { break-inside: avoid; margin: 0 0 .7cm; } h2 { font-size: 12.5pt; margin: 0 0 .1cm; }
p { margin: .1cm 0; } ul { margin: .1cm 0; } .blank { border-bottom: 1px solid #888; height: .9cm; }
.options li { list-style: square; } .answers { break-before: page; }
math { font-family: 'Cambria Math', 'STIX Two Math', 'Latin Modern Math', 'DejaVu Math TeX Gyre', math; }
code { font-family: ui-monospace, monospace; font-size: 10.5pt; }
@media print { body { margin: 0; max-width: none; } .hint { display: none; } @page { margin: 1.8cm; } }
"""


def chosen(sets: Sequence[str], count: int, seed: int) -> list[Exercise]:
    """Returns `count` exercises of these sets, in their order; beyond that, again with other numbers."""
    known = [task for name in sets for task in SETS[name].tasks]
    result: list[tuple[int, str]] = []
    turn = 0
    while known and len(result) < count:
        some = Random(f"sheet/{seed}/{turn}").sample(known, min(count - len(result), len(known)))
        result += [(seed + turn, task) for task in some]
        turn += 1
    return [make(task, number) for number, task in sorted(result, key=lambda one: known.index(one[1]))]


def sheet(exercises: Sequence[Exercise], title: str, seed: int) -> str:
    """Returns a whole HTML page, without scripts. `title` may be any text."""
    name = html.escape(title)
    asked = "".join(_question(number, each) for number, each in enumerate(exercises, 1))
    told = "".join(_answer(number, each) for number, each in enumerate(exercises, 1))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{name}</title>'
        f"<style>{STYLE}</style></head><body><h1>{name}</h1>"
        f'<p class="about">{len(exercises)} exercises, seed {seed}. Name: ______________________________</p>'
        f'{asked}<div class="answers"><h1>Answers</h1><p class="about">{name}, seed {seed}</p>{told}</div>'
        "</body></html>"
    )


def _question(number: int, exercise: Exercise) -> str:
    options = getattr(exercise.form, "options", ())
    listed = "".join(f"<li>{inline(each)}</li>" for each in options)
    below = f'<ul class="options">{listed}</ul>' if options else '<div class="blank"></div>'
    return f"<section><h2>{number}. {inline(exercise.title)}</h2>{block(exercise.statement)}{below}</section>"


def _answer(number: int, exercise: Exercise) -> str:
    text = inline(exercise.form.text(exercise.answer))
    steps = "".join(f"<li>{inline(step)}</li>" for step in exercise.steps)
    return f"<section><h2>{number}. {inline(exercise.title)}: {text}</h2><ul>{steps}</ul></section>"
