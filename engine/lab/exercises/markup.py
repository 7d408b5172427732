"""The Markdown of statements as HTML for paper, with the few signs of LaTeX that they use: a sheet needs no
script and no network.
"""

from __future__ import annotations

import html
import re

SIGNS = {
    "cdot": "·",
    "cdots": "⋯",
    "dots": "…",
    "theta": "θ",
    "tau": "τ",
    "Delta": "Δ",
    "infty": "∞",
    "sin": "sin",
    "cos": "cos",
    "ln": "ln",
    "log": "log",
    "le": "≤",
    ",": " ",
}
WRAPPED = {"sqrt": ("√(", ")"), "text": ("<span class='up'>", "</span>")}
_INLINE = re.compile(r"\$(?P<math>[^$]+)\$|`(?P<code>[^`]+)`|\*\*(?P<bold>.+?)\*\*|\*(?P<slant>[^*]+)\*")
_TOKEN = re.compile(r"\\([A-Za-z]+|,)|([_^{}])|([^\\_^{}])")


def inline(text: str) -> str:
    """A line of Markdown as HTML.

    >>> inline("**a < b** is $x_{ij}^2$")
    '<b>a &lt; b</b> is <i>x<sub>ij</sub><sup>2</sup></i>'
    """
    found, last = [], 0
    for match in _INLINE.finditer(text):
        found.append(html.escape(text[last : match.start()], quote=False))
        found.append(_marked(match))
        last = match.end()
    return "".join(found) + html.escape(text[last:], quote=False)


def _marked(match: re.Match[str]) -> str:
    if match["math"]:
        return f"<i>{math(match['math'])}</i>"
    if match["code"]:
        return f"<code>{html.escape(match['code'])}</code>"
    tag, words = ("b", match["bold"]) if match["bold"] else ("em", match["slant"])
    return f"<{tag}>{inline(words)}</{tag}>"


def block(text: str) -> str:
    """Paragraphs and lists."""
    found = []
    for part in re.split(r"\n+", text):
        tag = "li" if part.startswith("- ") else "p"
        found.append(f"<{tag}>{inline(part.removeprefix('- '))}</{tag}>")
    return re.sub(r"((?:<li>.*?</li>)+)", r"<ul>\1</ul>", "".join(found))


def math(source: str) -> str:
    """LaTeX as HTML. Raises KeyError for a command that no statement has used so far.

    >>> math(r"\\sqrt{d_k} \\cdot e^{-2i/d}")
    '√(d<sub>k</sub>) · e<sup>−2i/d</sup>'
    """
    tokens = [(m[1], m[2], m[3]) for m in _TOKEN.finditer(source)]
    done, rest = _group(tokens, 0, whole=True)
    assert rest == len(tokens), source
    return done


Tokens = list[tuple[str, str, str]]


def _group(tokens: Tokens, at: int, whole: bool = False) -> tuple[str, int]:
    """What stands there up to the brace that closes it, and where it goes on."""
    found: list[str] = []
    while at < len(tokens):
        if tokens[at][1] == "}" and not whole:
            return "".join(found), at + 1
        one, at = _one(tokens, at)
        found.append(one)
    return "".join(found), at


def _one(tokens: Tokens, at: int) -> tuple[str, int]:
    command, mark, sign = tokens[at]
    if command in WRAPPED:
        before, after = WRAPPED[command]
        inner, at = _one(tokens, at + 1)
        return f"{before}{inner}{after}", at
    if command:
        return SIGNS[command], at + 1
    if mark == "{":
        return _group(tokens, at + 1)
    if mark:
        tag = {"_": "sub", "^": "sup"}[mark]
        inner, at = _one(tokens, at + 1)
        return f"<{tag}>{inner}</{tag}>", at
    return html.escape(sign.replace("-", "−"), quote=False), at + 1
