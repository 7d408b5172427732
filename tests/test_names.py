"""Names of pages, views and courses in sentences: they are those that the site and the courses have today."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from urllib.parse import parse_qs

import yaml

from tests import source
from tests.source import ROOT
from ui import content
from ui.site import ENTRIES
from ui.views import page_of

DOCS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES = {entry.url: entry for entry in ENTRIES}
LINK = re.compile(r"\[([^\]]+)\]\(/([a-z]*)(?:\?([^)]*))?\)")
PATH = re.compile(r"\b({}) > (\S[\w -]*)".format("|".join(entry.title for entry in ENTRIES)))
# "press **Train**", "the button *Guess first*", "open **More published models**"
PRESSED = re.compile(r"(?:[Pp]ress|[Bb]utton|[Oo]pen)\s+\*\*?([^*]+)\*\*?")
# Links whose text says what is there, in the middle of a sentence
EXCEPTIONS = {"every position", "the most likely text of several branches"}


@cache
def views(url: str) -> dict[str, str]:
    """Returns the titles of a page's views by their ids."""
    return {view.id: view.title for view in page_of(PAGES[url]).views}


def names(url: str, query: str) -> list[str]:
    """Returns the title of a page, and that of the view that a query names.

    >>> names("ladder", "ladder_view=scaling")
    ['Ladder', 'Scaling laws']
    """
    chosen = [each for key, values in parse_qs(query).items() if key.endswith("_view") for each in values]
    return [PAGES[url].title, *(views(url)[view] for view in chosen)]


def sentences() -> Iterator[tuple[str, str]]:
    """Yields what a screen may show, and the docs, each with its file."""
    yield from source.shown()
    yield from ((source.name(path), source.text(path)) for path in DOCS)


def plain(text: str) -> str:
    return " ".join(text.split()).lower()


def strings() -> set[str]:
    """Every string of the app's own modules and of the browser's."""
    nodes = (node for path in source.files("pages", "ui") for node in source.nodes(path))
    found = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    scripts = source.scripts()
    texts = (path for folder in ("pages", "ui") for path in (ROOT / folder).rglob("*.md"))
    found |= {
        section.text for path in texts for section in content.Sheet.read(source.text(path)).sections.values()
    }
    return found | {
        each for path in scripts for each in re.findall(r"[\"`]([^\"`\n]+)[\"`]", source.text(path))
    }


def test_what_the_docs_tell_one_to_press_is_on_a_page() -> None:
    named = [(path.name, name) for path in DOCS for name in PRESSED.findall(source.text(path))]
    known = strings()
    wrong = [f"{where}: no button is called {name!r}" for where, name in named if name not in known]
    assert len(named) > 5 and not wrong, "\n".join(wrong)


def test_links_are_called_as_the_page_or_view_that_they_lead_to() -> None:
    links = [(where, *link) for where, text in sentences() for link in LINK.findall(text)]
    wrong = [
        f"{where}: [{words}] leads to {names(url, query)}"
        for where, words, url, query in links
        if words not in EXCEPTIONS and not any(title.lower() in plain(words) for title in names(url, query))
    ]
    assert len(links) > 10 and not wrong, "\n".join(wrong)
    assert {words for _, words, *_ in links} >= EXCEPTIONS, "these exceptions are gone"


def test_a_path_of_page_and_view_is_one_of_the_site() -> None:
    urls = {entry.title: entry.url for entry in ENTRIES}
    wrong = [
        f"{where}: {page} > {rest}"
        for where, text in sentences()
        for page, rest in PATH.findall(text)
        if not any(rest.startswith(title) for title in views(urls[page]).values())
    ]
    assert not wrong, "\n".join(wrong)


def test_the_docs_call_the_courses_by_their_titles() -> None:
    courses = [yaml.safe_load(source.text(path)) for path in sorted((ROOT / "scenes").glob("*.yaml"))]
    text = source.text(ROOT / "docs" / "teaching.md")
    chapter = text.partition("## The courses")[2].partition("\n## ")[0]
    assert re.findall(r"^\| ([^|]+) \| (\d+) \|", chapter, re.MULTILINE) == [
        (course["title"], str(course["minutes"])) for course in courses
    ]
    named = re.findall(r"(?<!\*)\*([^*]+)\*(?!\*)", chapter)
    titles = [plain(course["title"]) for course in courses]
    wrong = [name for name in named if not any(plain(name) in title for title in titles)]
    assert len(named) > 5 and not wrong, wrong
