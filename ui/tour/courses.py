"""Courses: what is shown in which order, read from scenes/*.yaml. docs/first-course.md says how.

A file is read strictly: what is missing, unknown or too long is said in a sentence that names file, line and
scene. A value is text until a number is asked for: `Yes`, `1:30` and a date are what they look like.
"""

from __future__ import annotations

import os
import random
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import yaml

from engine.errors import GlassformerError
from ui import site
from ui.tour import names

FOLDER = site.ROOT / "scenes"
MORE = "GLASSFORMER_COURSES"  # a folder with courses of whoever runs the app
MOST_LETTERS = 250  # of what a scene says: two lines of the bar on a projector
MOST_TITLE = 60
SEED = 0  # of the order of answers
SOON_TIRED = 180  # minutes
MOST_BYTES, MOST_SCENES = 64 * 1024, 200  # of a file: it is read while everybody waits
FEWEST_ANSWERS, MOST_ANSWERS = 2, 5
KINDS = ("str", "seq", "map")  # of values, as YAML calls them
_FILE = re.compile(r"(?:\d+-)?(?P<id>[a-z][a-z0-9-]*)")
_KEY = re.compile(r"[A-Za-z0-9_-]{1,64}")  # of a control or figure: it goes into a style
_OWN = {"course", "scene", "stage"}  # of the address: not a scene's to say


class CourseError(GlassformerError):
    """A course that cannot be read; its message says what is wrong where, and what would be right."""


class _Table(dict[str, Any]):
    """A table of a file, and the line where it begins."""

    line = 0


class _Loader(yaml.BaseLoader):
    """Reads YAML whose every value is a text, a list or a table with names that are there once."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        if not node.tag.startswith("tag:yaml.org,2002:") or node.tag.rpartition(":")[2] not in KINDS:
            tag = node.tag.replace("tag:yaml.org,2002:", "!!")
            raise _Misread(None, None, f"the tag `{tag}` means nothing here; leave it out", node.start_mark)
        return super().construct_object(node, deep)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> _Table:
        names = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _Misread(None, None, "the name of a value must be text", key.start_mark)
            if key.value in names:
                raise _Misread(None, None, f"`{key.value[:40]}` is given twice", key.start_mark)
            names.add(key.value)
        table = _Table(super().construct_mapping(node, deep=True))
        table.line = node.start_mark.line + 1
        return table


class _Misread(yaml.MarkedYAMLError):
    """YAML that is valid and means nothing in a course."""


@dataclass(frozen=True)
class Question:
    """A question before the figure is seen. `right` is the index of the right one of `answers`."""

    text: str
    answers: tuple[str, ...]
    right: int
    why: str

    def shuffled(self, course: str) -> Question:
        """Returns the question with its answers in an order of its own: an author's right one tends to stand
        second. Course and text are the seed, so that a link, the notes and every vote agree.
        """
        order = random.Random(f"{SEED} {course} {self.text}").sample(
            range(len(self.answers)), len(self.answers)
        )
        return replace(self, answers=tuple(self.answers[i] for i in order), right=order.index(self.right))


@dataclass(frozen=True)
class Scene:
    """A page with its parameters, and what is said about it. `point` is the key of the control or figure that
    gets an outline; `notes` are for the speaker.
    """

    title: str
    text: str
    page: str  # as in the address: nothing for Home
    query: tuple[tuple[str, str], ...]
    point: str
    question: Question | None = None
    notes: str = ""

    @property
    def model(self) -> str:
        """The model that its link names; nothing where it names none."""
        return dict(self.query).get("model", "")

    @property
    def path(self) -> str:
        """The path of its page, as Streamlit wants it."""
        entry = site.entry_of(self.page)
        assert entry is not None  # `parse` has looked
        return entry.path


@dataclass(frozen=True)
class Course:
    """Scenes in their order, for whom they are, and how many minutes they take when somebody talks."""

    id: str
    title: str
    audience: str
    minutes: int
    scenes: tuple[Scene, ...]

    def question(self, at: int) -> Question | None:
        """Returns the question of a scene, counted from 0, as it is asked."""
        asked = self.scenes[at].question
        return asked and asked.shuffled(self.id)

    @property
    def models(self) -> tuple[str, ...]:
        """The models that its scenes name, each once."""
        return tuple(dict.fromkeys(scene.model for scene in self.scenes if scene.model))

    @property
    def names(self) -> frozenset[str]:
        """Every parameter that one of its links has."""
        return frozenset(name for scene in self.scenes for name, _ in scene.query)


@dataclass(frozen=True)
class Shelf:
    """The courses that can be read, by their id and in the order of their files; and what is wrong with
    others.
    """

    courses: Mapping[str, Course]
    problems: tuple[str, ...]


@cache
def shelf(folder: Path = FOLDER) -> Shelf:
    """Returns all courses of a folder and of $GLASSFORMER_COURSES, read once, and a sentence about each file
    that cannot be read.
    """
    courses: dict[str, Course] = {}
    problems = []
    more = os.environ.get(MORE)
    for path in [*sorted(folder.glob("*.yaml")), *(sorted(Path(more).glob("*.yaml")) if more else ())]:
        try:
            course = parse(path.name, _text_of(path))
            if course.id in courses:
                raise CourseError(f"{path.name}: another course is called “{course.id}” already.")
            courses[course.id] = course
        except CourseError as error:
            problems.append(str(error))
    return Shelf(courses, tuple(problems))


def _text_of(path: Path) -> str:
    """Returns what stands in a file. Raises CourseError."""
    try:
        if not path.is_file():
            raise CourseError(f"{path.name} is not a file.")
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise CourseError(f"{path.name} cannot be read: {error.strerror}.") from None
    if len(data) > MOST_BYTES:
        raise CourseError(f"{path.name} has more than {MOST_BYTES // 1024} KB; make two courses of it.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CourseError(f"{path.name}, line {line}: this is not UTF-8; save the file as UTF-8.") from None


def parse(file: str, text: str) -> Course:
    """Returns the course in the text of a file of that name, such as 01-ten-minutes.yaml, whose id is
    ten-minutes.

    Raises CourseError.
    """
    named = _FILE.fullmatch(Path(file).stem)
    if named is None:
        raise CourseError(
            f"{file}: a course's file name has lower-case letters, digits and hyphens, as in"
            " 1-my-course.yaml."
        )
    document = _document(file, text)
    table = _table(file, document, {"title", "for", "minutes", "scenes"}, set())
    scenes = table["scenes"]
    if not isinstance(scenes, list) or not scenes:
        raise CourseError(f"{file}: `scenes` must be a list of at least one scene.")
    if len(scenes) > MOST_SCENES:
        raise CourseError(f"{file} has {len(scenes):,} scenes; at most {MOST_SCENES} are read.")
    return Course(
        named["id"],
        _words(file, table, "title", MOST_TITLE),
        _words(file, table, "for", MOST_LETTERS),
        _number(file, table, "minutes", 1, SOON_TIRED),
        tuple(_scene(_place(file, number, scene), scene) for number, scene in enumerate(scenes, 1)),
    )


def _document(file: str, text: str) -> object:
    """Returns what YAML makes of a text. Raises CourseError: PyYAML raises what it happens to meet, such as a
    ValueError for an escape beyond Unicode and a RecursionError for many brackets.
    """
    loader: _Loader | None = None
    try:
        loader = _Loader(text)
        return loader.get_single_data()
    except _Misread as error:
        raise CourseError(f"{file}{_line(error)}: {error.problem}.") from None
    except yaml.MarkedYAMLError as error:
        problem = ", ".join(filter(None, (error.context, error.problem)))
        raise CourseError(f"{file}{_line(error)} is not valid YAML: {' '.join(problem.split())}.") from None
    except yaml.reader.ReaderError as error:
        at = error.position if isinstance(error.position, int) else 0
        line = text.count("\n", 0, at) + 1
        raise CourseError(
            f"{file}, line {line} is not valid YAML: a control character stands there."
        ) from None
    except Exception as error:
        where = f"{file}, line {1 if loader is None else loader.line + 1}"
        deep = isinstance(error, RecursionError)
        problem = "brackets are nested too deeply" if deep else "an escape names no character"
        raise CourseError(f"{where} is not valid YAML: {problem}.") from None


def _line(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    return "" if mark is None else f", line {mark.line + 1}"


def _place(file: str, number: int, scene: object) -> str:
    line = f", line {scene.line}" if isinstance(scene, _Table) else ""
    return f"{file}{line}, scene {number}"


def _scene(where: str, entry: object) -> Scene:
    table = _table(where, entry, {"title", "text", "at", "point"}, {"question", "notes"})
    page, query = _link(where, table)
    point = _words(where, table, "point", 64)
    if not _KEY.fullmatch(point):
        raise CourseError(f"{where}: `point` must be the key of a control or figure, such as attention_grid.")
    entry_of_page = site.entry_of(page)
    if entry_of_page and (problem := names.fault(entry_of_page, query, point)):
        raise CourseError(f"{where}: {problem}")
    return Scene(
        _words(where, table, "title", MOST_TITLE),
        _words(where, table, "text", MOST_LETTERS),
        page,
        query,
        point,
        _question(f"{where}, question", table["question"]) if "question" in table else None,
        _words(where, table, "notes", 2000) if "notes" in table else "",
    )


def _link(where: str, table: Mapping[str, Any]) -> tuple[str, tuple[tuple[str, str], ...]]:
    page, _, rest = _words(where, table, "at", 2000).removeprefix("/").partition("?")
    if site.entry_of(page) is None:
        pages = ", ".join(entry.url for entry in site.built() if entry.url)
        raise CourseError(f"{where}: there is no page “{page}”. The pages are Home, which is /, and {pages}.")
    query = tuple(parse_qsl(rest, keep_blank_values=True))
    if any(not name or name.startswith("$$") for name, _ in query):
        raise CourseError(f"{where}: a value in the link has no name; write it as `name=value`.")
    if reserved := _OWN & {name for name, _ in query}:
        raise CourseError(f"{where}: `{min(reserved)}` in a link is reserved for the bar; leave it out.")
    return page, query


def _question(where: str, entry: object) -> Question:
    table = _table(where, entry, {"asked", "answers", "right", "why"}, set())
    answers = table["answers"]
    if not isinstance(answers, list) or not FEWEST_ANSWERS <= len(answers) <= MOST_ANSWERS:
        raise CourseError(f"{where}: `answers` must be a list of {FEWEST_ANSWERS} to {MOST_ANSWERS}.")
    options = tuple(_words(where, {"answers": answer}, "answers", MOST_LETTERS) for answer in answers)
    if len(set(options)) < len(options):
        raise CourseError(f"{where}: two of the `answers` are the same.")
    right = _number(where, table, "right", 1, len(options))
    question = _words(where, table, "asked", MOST_LETTERS)
    return Question(question, options, right - 1, _words(where, table, "why", 2 * MOST_LETTERS))


def _table(where: str, entry: object, needed: set[str], allowed: set[str]) -> Mapping[str, Any]:
    if not isinstance(entry, dict):
        raise CourseError(f"{where}: this must be a table with {_listed(needed)}, each `name: value`.")
    if missing := needed - entry.keys():
        raise CourseError(f"{where}: {_listed(missing)} is missing.")
    if unknown := {str(name)[:40] for name in entry} - needed - allowed:
        raise CourseError(
            f"{where}: {_listed(unknown)} is unknown; the allowed names are {_listed(needed | allowed)}."
        )
    return entry


def _words(where: str, table: Mapping[str, Any], name: str, most: int) -> str:
    value = table[name]
    if not isinstance(value, str) or not value.strip():
        raise CourseError(
            f"{where}: `{name}` must be text; if it contains a colon or a bracket, put it in quotation marks."
        )
    text = " ".join(value.split())
    if any(unicodedata.category(letter) in ("Cc", "Cs") for letter in text):
        raise CourseError(f"{where}: `{name}` contains a character that cannot be shown.")
    if len(text) > most:
        raise CourseError(f"{where}: `{name}` has {len(text)} characters; at most {most} fit.")
    return text


def _number(where: str, table: Mapping[str, Any], name: str, low: int, high: int) -> int:
    written = table[name]
    if isinstance(written, str) and re.fullmatch(r"[0-9]{1,9}", written) and low <= int(written) <= high:
        return int(written)
    raise CourseError(f"{where}: `{name}` must be a whole number from {low} to {high}.")


def _listed(names: set[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))
