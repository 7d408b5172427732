"""Texts of a view: the Markdown file beside its module, in sections whose fields are filled in.

    TEXT = content.beside(__file__)                    # induction.py reads induction.md
    TEXT("copies", loss=1.23, heads=3)                 # "… {loss:.1f} nats, {heads} {heads:head|heads} …"

A file begins with `# the view's title` and its question; then come `## name` sections. Lines `name: text` of
the section `## labels` are sections, too. `## see`, `why`, `try` and `texts` are the view's words, `## try
small` those of a variant. A field is written as Python's `format` does, with a true minus, in one of FORMATS,
or as `{count:one|several}`. Text in it is escaped as a stranger's, but for what another section gave, and in
`alt ...` and `labels`, which are no Markdown.

`induction.de.md` would be a translation: each heading of it ends with the digest of the English section that
it says again (`## copies 1a2b3c4d`), so that one whose English has changed since is known. English stands in
for what is missing.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from string import Formatter
from typing import Any, NamedTuple

from ui.text import numbers
from ui.text.markdown import safe, with_blanks

ENGLISH = "en"
LABELS, ALT = "labels", "alt"
WORDS = ("see", "why", "try", "texts")
_LINE = re.compile(r"\s*(?:[-*+] |\d+\. |\||>|#)")  # begins a line of its own, in Markdown
_DIGEST = re.compile(r"(.+?) ([0-9a-f]{8})")
FORMATS: dict[str, Callable[[Any], str]] = {
    "bytes": numbers.gigabytes,
    "duration": numbers.duration,
    "flop": numbers.flop,
    "number": numbers.number,
    "percent": lambda share: numbers.percent(share, 1),
    "scientific": numbers.scientific,
    "short": numbers.short,
    "visible": with_blanks,
}


class Filled(str):
    """A text of ours with its fields filled in: another does not escape it."""


def _filled(text: str, fields: Mapping[str, Any], escape: bool) -> str:
    """Fills the fields of a section in; `escape` where it is Markdown."""
    return "".join(
        [
            literal if name is None else literal + _field(fields[name], form, escape)
            for literal, name, form in _parsed(text)
        ]
    )


def _field(value: Any, form: str, escape: bool) -> str:
    if "|" in form:
        return form.split("|")[bool(value != 1)]
    written = FORMATS[form](value) if form in FORMATS else str(format(value, form))
    if isinstance(value, str):
        return safe(written) if escape and not isinstance(value, Filled) else written
    return numbers.minus(written) if written.startswith("-") else written


@lru_cache(4_000)
def _parsed(text: str) -> tuple[tuple[str, str | None, str], ...]:
    """The pieces of a text, each with the field behind it; `Formatter.format` takes twice as long."""
    pieces = [*Formatter().parse(text)]
    if any(conversion for *_, conversion in pieces):
        raise ValueError(f"a field has no conversion: {text}")
    return tuple((literal, name, form or "") for literal, name, form, _ in pieces)


class Section(NamedTuple):
    text: str
    plain: bool = False  # it is no Markdown


@dataclass(frozen=True)
class Sheet:
    """The texts of one file, in one language."""

    title: str
    question: str
    sections: Mapping[str, Section]
    made_from: Mapping[str, str]  # by section: the digest of the English that a translation says again

    @classmethod
    def read(cls, text: str) -> Sheet:
        """Reads the sections of a file.

        >>> sheet = Sheet.read("# RoPE\\nWhat turns?\\n\\n## see\\nTwo\\nlines.\\n## labels\\nangle: Angle")
        >>> sheet.title, sheet.question, sheet.sections["see"].text, sheet.sections["angle"]
        ('RoPE', 'What turns?', 'Two lines.', Section(text='Angle', plain=True))
        """
        head, *parts = re.split(r"^## +", text, flags=re.MULTILINE)
        title, _, question = head.removeprefix("# ").partition("\n")
        sections: dict[str, Section] = {}
        made_from: dict[str, str] = {}
        for part in parts:
            name, _, body = part.partition("\n")
            if found := _DIGEST.fullmatch(name.strip()):
                name, made_from[found[1]] = found.groups()
            if name.strip() == LABELS:
                lines = (line for line in body.splitlines() if line.strip())
                rows = (line.partition(": ") for line in lines)
                said = {label: Section(written, True) for label, _, written in rows}
            else:
                said = {name.strip(): Section(_joined(body), name.split()[0] == ALT)}
            if twice := said.keys() & sections:
                raise ValueError(f"the text of {title.strip()!r} has two sections {min(twice)!r}")
            sections |= said
        return cls(title.strip(), " ".join(question.split()), sections, made_from)

    def digest(self, name: str) -> str:
        """Returns eight digits for the wording of a section."""
        return hashlib.sha256(self.sections[name].text.encode()).hexdigest()[:8]

    def stale(self, english: Sheet) -> list[str]:
        """Returns the sections of this translation whose English is another now, or gone."""
        return [
            name
            for name, digest in self.made_from.items()
            if name not in english.sections or english.digest(name) != digest
        ]


def _joined(body: str) -> str:
    """Returns paragraphs as one line each; lists, tables and quotations keep their lines."""
    paragraphs = []
    for paragraph in re.split(r"\n\s*\n", body.strip()):
        lines: list[str] = []
        for line in paragraph.splitlines():
            if lines and not _LINE.match(line) and not lines[-1].endswith("  "):
                lines[-1] += " " + line.strip()
            else:
                lines.append(line.rstrip() if lines else line.strip())
        paragraphs.append("\n".join(lines))
    return "\n\n".join(paragraphs)


class Texts:
    """The texts beside a module, read again when their file has changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read: dict[str, tuple[int, Sheet | None]] = {}

    @property
    def title(self) -> str:
        return self._said("title")

    @property
    def question(self) -> str:
        return self._said("question")

    def __getitem__(self, name: str) -> Filled:
        return self(name)

    def __call__(self, name: str, /, **fields: Any) -> Filled:
        """Fills a section in. Raises KeyError for a section or a field that is not there."""
        text, plain = self._section(name)
        return Filled(_filled(text, fields, not plain))

    def __iter__(self) -> Iterator[str]:
        return iter(self._sheet(ENGLISH).sections)

    def __contains__(self, name: str) -> bool:
        return name in self._sheet(ENGLISH).sections

    def _said(self, attribute: str) -> str:
        sheets = (self._in(language) for language in (language_shown(), ENGLISH))
        return next((said for sheet in sheets if sheet and (said := str(getattr(sheet, attribute)))), "")

    def _section(self, name: str) -> Section:
        shown = self._in(language_shown())
        if shown is not None and name in shown.sections:
            return shown.sections[name]
        return self._sheet(ENGLISH).sections[name]

    def _sheet(self, language: str) -> Sheet:
        sheet = self._in(language)
        if sheet is None:
            raise FileNotFoundError(self._file(language))
        return sheet

    def _file(self, language: str) -> Path:
        return _beside(self._path, language)

    def _in(self, language: str) -> Sheet | None:
        """The texts in a language as the file has them now; None where there is none."""
        path = self._file(language)
        try:
            changed = os.stat(path).st_mtime_ns
        except FileNotFoundError:
            return None
        if language not in self._read or self._read[language][0] != changed:
            self._read[language] = changed, Sheet.read(path.read_text("utf-8"))
        return self._read[language][1]


@lru_cache(1_000)
def _beside(module: Path, language: str) -> Path:
    return module.with_suffix(".md" if language == ENGLISH else f".{language}.md")


def language_shown() -> str:
    """Returns the language of the texts. There is one."""
    return ENGLISH


def beside(module: str) -> Texts:
    """Returns the texts of a module, by its `__file__`."""
    return Texts(Path(module))
