"""The pages of the site that nobody writes: each view's, all questions, the glossary, the engine's."""

from __future__ import annotations

import ast
import html
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from docs.site import live
from docs.site.facts import PICTURES, ROOT, WORK, Facts, Link
from studies.exercises.sheet import block, inline
from ui.text.glossary import ANCHOR, Term, linked
from ui.text.markdown import plain

DOCS = ROOT / "docs"
ENGINE, *OTHERS = LIBRARY = tuple(ROOT / name for name in ("engine", "studies", "runs"))
UP = "../../../"  # from the page of a view to the start of the site
FIRST = "See inside a Transformer while it runs"
FRONT = (
    "Each line is a token on its way through a trained model, and on the right stands what the model expects"
    " next. Point at anything, open another block, choose a head, stop the model early. No number here is"
    " made up: this model computed each of them."
)
PICTURELESS = "No picture was taken for this copy of the site: `make docs` takes them where a browser is."

# A search lists what is about a word before the code that has it for a name; to Material, a title counts
# a thousand times a text.
SOON, LATE = "search: {boost: 2}", "search: {boost: 0.0002}"

_EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)")


def description(markdown: str) -> str:
    """Returns Markdown of the app as one line of plain text, without formulas.

    >>> description("**“e”** costs $x^2$: 2 < 3")
    '“e” costs x^2: 2 < 3'
    """
    tags = re.sub(r"<[^>]*>", "", inline(plain(markdown).replace("$", "").replace("\n", " ")))
    return html.unescape(tags).strip()


def explained(markdown: str, app: str) -> str:
    """Returns Markdown of the app as HTML of a view's page: formulas as MathML, terms as links. `app`
    is the address of the app.
    """
    text = block(linked(plain(markdown))).strip()
    return text.replace(f'href="{ANCHOR}', f'href="{UP}glossary/#').replace('href="/', f'href="{app}/')


def view_page(view: Facts, terms: Mapping[str, Term], app: str, made: Path = WORK) -> str:
    """Returns the page of a view, with its working figure or else its picture, which lie below `made`. `app`
    is the address of the app that its links lead to.
    """
    summary = description(view.answer or view.question)
    where = [view.section, f"[{view.page}](../index.md#{view.url or 'home'})", view.title]
    lines = [
        f"---\ntitle: {_quoted(view.question)}\ndescription: {_quoted(summary)}\nhide: [toc]\n{SOON}\n---",
        f"# {view.question}",
        " > ".join(dict.fromkeys(where)),
        _figure(view, made),
    ]
    if view.answer:
        opens = f", with {view.model}" if view.model else ""
        lines += [
            f'<div class="answer" markdown="0">{explained(view.answer, app)}</div>',
            f"This is its answer as it opens{opens}.",
        ]
    lines.append(
        f"[Open this view]({app}/{view.address}){{ .md-button .md-button--primary }} `/{view.address}`"
    )
    for title, text in view.words.items():
        lines += [f"## {title}", f'<div markdown="0">{explained(text, app)}</div>']
    lines += _listed("In the courses", view.scenes, app)
    lines += _listed("Exercises", view.exercises, app)
    if view.terms:
        named = (f"[{terms[name].title}](../../glossary.md#{name})" for name in view.terms)
        lines += ["## Terms", " · ".join(named)]
    if view.code:
        lines += ["## Code", "\n".join(f"- {_code(*names)}" for names in view.code.items())]
    return "\n\n".join(lines) + "\n"


def _figure(view: Facts, made: Path) -> str:
    if alive := live.figure(view, UP, made):
        return f'<div class="figure" markdown="0">{alive}</div>'
    if (made / PICTURES.name / f"{view.name}.webp").is_file():
        return f"![{view.question}](../pictures/{view.name}.webp)"
    return f"*{PICTURELESS}*"


def front(home: Facts, made: Path = WORK) -> str:
    """Returns the first page: a figure that moves, three sentences, and two ways on."""
    alive = live.figure(home, "", made, moves=True)
    lines = [
        f"---\ntitle: Glassformer\ndescription: {_quoted(FIRST)}\nhide: [navigation, toc]\n---",
        f"# {FIRST}",
        f'<div class="figure" markdown="0">{alive}</div>' if alive else "![Home](home.webp)",
        FRONT,
        "[Look around](views/index.md){ .md-button .md-button--primary } [Start it](start.md){ .md-button }",
    ]
    return "\n\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _listed(title: str, links: Sequence[Link], app: str) -> list[str]:
    rows = [f"- {link.of}: [{link.title}]({app}/{link.address})" for link in links]
    return [f"## {title}", "\n".join(rows)] if rows else []


def _code(name: str, documented: str) -> str:
    public = documented.startswith(("engine.", "studies.", "runs.")) and "._" not in documented
    return f"[`{name}`][{documented}]" if public else f"`{name}`"


def questions(views: Iterable[Facts]) -> str:
    """Returns the page of all questions, by the pages of the app."""
    lines = ["# Every view, by its question"]
    for section, of_section in groupby(views, key=lambda view: view.section):
        lines.append(f"## {section}")
        for (url, page), of_page in groupby(of_section, key=lambda view: (view.url, view.page)):
            lines.append(f"### {page} {{ #{url or 'home'} }}")
            lines.append("\n".join(f"- [{view.question}]({view.name}.md) ({view.title})" for view in of_page))
    return "\n\n".join(lines) + "\n"


def glossary(terms: Mapping[str, Term], views: Sequence[Facts]) -> str:
    """Returns the page of all terms by their letters, each with a link to the view that shows it,
    below an index of the letters.
    """
    letters = groupby(sorted(terms.values(), key=_spelled), key=lambda term: _spelled(term)[0].upper())
    of_letters = {letter: list(group) for letter, group in letters}
    index = " · ".join(f"[{letter}](#{group[0].id})" for letter, group in of_letters.items())
    lines = [f"---\nhide: [toc]\n{SOON}\n---\n# Glossary", index]
    for term in (term for group in of_letters.values() for term in group):
        of_page = [view for view in views if view.url == term.page]
        shown = next((view for view in of_page if _query(view) <= set(term.query)), of_page[0])
        lines += [
            f"## {term.title} {{ #{term.id} }}",
            f'<div markdown="0">{block(plain(term.text)).strip()}</div>',
            f"→ [{shown.question}](views/{shown.name}.md)",
        ]
    return "\n\n".join(lines) + "\n"


def _spelled(term: Term) -> str:
    """Returns what a term is sorted by: its title in small letters, from the first letter or digit on."""
    return re.sub(r"^\W+", "", term.title).lower()


def _query(view: Facts) -> set[tuple[str, str]]:
    return set(parse_qsl(view.address.partition("?")[2]))


# The engine ------------------------------------------------------------------------------------------


def _sentence(path: Path) -> str:
    """Returns the first sentence of a module's docstring."""
    text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].split()).partition(". ")[0].rstrip(".")


def engine_pages(package: Path = ENGINE) -> tuple[dict[str, str], list[Any]]:
    """Returns (path of a page -> its Markdown, the menu): a page for each module right in engine/ (studies/,
    runs/), and for each package below it, with its modules.
    """
    pages: dict[str, str] = {}
    menu: list[Any] = [f"{_folder(package)}index.md"]
    rows = ["| name | what it holds |", "|---|---|"]
    for below in sorted(init.parent for init in package.glob("*/__init__.py")):
        of_below, under = engine_pages(below)
        pages |= of_below
        menu.append({below.name: under})
        rows.append(f"| [`{below.name}`]({below.name}/index.md) | {_sentence(below / '__init__.py')} |")
    modules = [path for path in sorted(package.glob("*.py")) if not path.name.startswith("_")]
    if package in LIBRARY:
        for path in modules:
            pages[f"{_folder(package)}{path.stem}.md"] = _module_page(path)
            menu.append({path.stem: f"{_folder(package)}{path.stem}.md"})
            rows.append(f"| [`{path.stem}`]({path.stem}.md) | {_sentence(path)} |")
        modules = []
    table = ["\n".join(rows)] if rows[2:] else []
    lines = [
        f"---\n{LATE}\n---",
        f"# {_dotted(package)}",
        _shown(package),
        *table,
        *(_shown(path, heading=True) for path in modules),
    ]
    pages[menu[0]] = "\n\n".join(lines) + "\n"
    for other in OTHERS if package == ENGINE else ():
        of_other, under = engine_pages(other)
        pages |= of_other
        menu.append({f"{other.name}/": under})
    return pages, menu


def _module_page(path: Path) -> str:
    lines = [f"---\n{LATE}\n---", f"# {_dotted(path)}", _shown(path)]
    if path.stem == "nano":
        lines += ["## The whole file", f"```python\n{path.read_text('utf-8')}```"]
    return "\n\n".join(lines) + "\n"


def _shown(path: Path, heading: bool = False) -> str:
    """Returns the lines that have mkdocstrings document a module, with or without a heading."""
    return f"::: {_dotted(path)}\n    options:\n      show_root_heading: {str(heading).lower()}"


def fenced(docstring: str) -> str:
    r"""Returns a docstring with each of its examples in a fence.

    >>> fenced("Doubles.\n\n>>> double(2)\n4")
    'Doubles.\n\n```pycon\n>>> double(2)\n4\n```'
    """
    return _EXAMPLE.sub(lambda example: f"```pycon\n{example[0]}\n```", docstring)


def _dotted(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def _folder(package: Path) -> str:
    first, *below = package.relative_to(ROOT).parts
    return "api/" + "".join(f"{part}/" for part in (below if first == ENGINE.name else [first, *below]))


# Links ---------------------------------------------------------------------------------------------


def relinked(markdown: str, file: Path) -> str:
    """Returns the Markdown of a file of the repository with its links as the site has them."""
    return _LINK.sub(lambda match: _moved(match[1], file), markdown)


def _moved(target: str, file: Path) -> str:
    path = (file.parent / target).resolve()
    if path.suffix == ".py" and set(LIBRARY) & set(path.parents):
        if path.stem == "__init__":
            return f"{_folder(path.parent)}index.md"
        in_package = path.parent not in LIBRARY
        return _folder(path.parent) + (f"index.md#{_dotted(path)}" if in_package else f"{path.stem}.md")
    if DOCS in path.parents:
        return path.relative_to(DOCS).as_posix()
    if path == ROOT / "README.md":
        return "start.md"
    return path.name.lower() if path.suffix == ".md" and path.parent == ROOT else target
