"""Markdown with LaTeX as HTML and MathML: a printed sheet needs no script and no network."""

from __future__ import annotations

from functools import cache
from xml.etree import ElementTree

from latex2mathml.converter import Converter
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

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
