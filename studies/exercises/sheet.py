"""A printable sheet: questions on the first pages, the worked answers on the last.

Markdown with LaTeX becomes HTML and MathML: a printed sheet needs no script and no network.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from functools import cache
from random import Random
from xml.etree import ElementTree

from latex2mathml.converter import Converter
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

from studies.exercises.catalogue import SETS, make
from studies.exercises.exercise import Exercise

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


# Markdown with formulas as HTML --------------------------------------------------------------------

THIN = "0.1667em"


@cache
def _parser() -> MarkdownIt:
    """Builds a parser of CommonMark that escapes HTML and reads `$...$` as formulas."""
    parser = MarkdownIt("commonmark", {"html": False})
    return parser.use(dollarmath_plugin, renderer=lambda source, options: formula(source))


def inline(text: str) -> str:
    """Converts one line.

    >>> inline("**a < b** is *c*")
    '<strong>a &lt; b</strong> is <em>c</em>'
    """
    return _parser().renderInline(text)


def block(text: str) -> str:
    """Converts paragraphs and lists."""
    return _parser().render(text)


def formula(source: str) -> str:
    r"""Converts LaTeX to MathML, with TeX's spacing of signs and of functions, which latex2mathml leaves out.

    >>> formula(r"[-1]").partition("<mrow>")[2]
    '<mo stretchy="false">[</mo><mo form="prefix">−</mo><mn>1</mn><mo stretchy="false">]</mo></mrow></math>'
    """
    root = ElementTree.fromstring(Converter(xmlns="", display="inline").convert(source))
    for row in root.iter("mrow"):
        for before, node, after in zip([None, *row], row, [*row[1:], None], strict=False):
            opening = before is None or (before.tag == "mo" and before.text not in (")", "]"))
            if node.text == "−" and opening:
                node.set("form", "prefix")
            elif node.tag == "mi" and len(node.text or "") > 1:  # sin, cos, ln, log
                applied = after is not None and after.text == "("
                node.tag = "mo"
                node.attrib |= {"lspace": "0" if opening else THIN, "rspace": "0" if applied else THIN}
    return ElementTree.tostring(root, encoding="unicode")
