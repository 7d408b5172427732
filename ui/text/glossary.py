"""The field's words: what each means in a sentence, which page shows it, and where they stand in a text.

The words themselves lie in glossary.toml. Markdown of ours goes through `linked`, and the browser explains
what is linked there (`ui.glossary_panel`).
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import parse_qsl

TABLE = Path(__file__).with_suffix(".toml")
ANCHOR = "#term-"

# What is no running text, and is left as it is: escapes, code, math, links (and what is coloured), tags,
# addresses, words in quotation marks, which are tokens or a person's own, and headings, which have anchors.
_LEFT_ALONE = "|".join(
    (
        r"```.*?(?:```|\Z)",
        r"\\.",
        r"(?P<ticks>`+)(?!`).*?(?<!`)(?P=ticks)(?!`)",
        r"\$\$.*?\$\$",
        r"\$[^$\n]*\$",
        r"!?(?::[\w-]+)?\[(?:\\.|[^\]\\])*\](?:\((?P<target>[^)]*)\))?",
        r":material/\w+:",
        r"<[^>\n]*>",
        r"https?://[^\s)]+",
        r"“[^”\n]*”",
        r'"[^"\n]{0,60}"',
        r"^[ ]{0,3}#{1,6} [^\n]*$",
    )
)


@dataclass(frozen=True)
class Term:
    """A word of the field. `forms` are all ways in which it is written, `synonyms` other words by which it is
    found, `page` the address of the page that shows it, with the `query` that opens the right view there.
    """

    id: str
    title: str
    forms: tuple[str, ...]
    synonyms: tuple[str, ...]
    text: str
    page: str
    query: tuple[tuple[str, str], ...]


@cache
def terms() -> dict[str, Term]:
    """Returns all terms by their id, in alphabetical order."""
    return {name: _term(name, entry) for name, entry in tomllib.loads(TABLE.read_text("utf-8")).items()}


def _term(name: str, entry: dict[str, object]) -> Term:
    forms, synonyms = entry["say"], entry.get("find", [])
    assert isinstance(forms, list) and isinstance(synonyms, list)
    page, _, query = str(entry["at"]).partition("?")
    query_pairs = tuple(parse_qsl(query))
    return Term(name, forms[0], tuple(forms), tuple(synonyms), str(entry["text"]), page, query_pairs)


def linked(markdown: str) -> str:
    """Returns the same Markdown, in which each term is a link to #term-<id> where it stands first. Existing
    links stay, so that a text may come through here twice.

    >>> linked("The **softmax** of `logits`, then the softmax again")
    'The **[softmax](#term-softmax)** of `logits`, then the softmax again'
    """
    seen: set[str] = set()

    def mark(match: re.Match[str]) -> str:
        word = match["term"]
        name = (match["target"] or "").removeprefix(ANCHOR) if word is None else _forms()[_plain(word)]
        if word is None or name in seen:
            seen.add(name)
            return match[0]
        seen.add(name)
        return f"[{word}]({ANCHOR}{name})"

    return _pattern().sub(mark, markdown)


@cache
def _forms() -> dict[str, str]:
    """Every form as it is looked up -> the id of its term."""
    return {form: term.id for term in terms().values() for form in term.forms}


def _plain(word: str) -> str:
    """Returns a word as the table writes it: at the start of a sentence a small letter is a capital one."""
    return word if word in _forms() else word[0].lower() + word[1:]


@cache
def _pattern() -> re.Pattern[str]:
    """Returns the pattern of text to leave alone, or of a term as a whole word: not a part of a name, a path
    or a compound.
    """
    longest_first = sorted(_forms(), key=len, reverse=True)
    words = "|".join(_either_case(form) for form in longest_first)
    whole = rf"(?<![\w\-/.#:@\\])(?P<term>{words})(?![\w/@]|[.\-:]\w)"
    return re.compile(f"{_LEFT_ALONE}|{whole}", re.DOTALL | re.MULTILINE)


def _either_case(form: str) -> str:
    first, rest = form[0], re.escape(form[1:])
    if form.islower() and "_" not in form:
        return f"[{first}{first.upper()}]{rest}"
    return re.escape(first) + rest
