"""Hooks of MkDocs: they add the pages of `docs.site.pages`, and fit the repository's links to the site."""

from __future__ import annotations

from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import ConfigurationError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from docs.site import facts, live, pages
from ui.text.glossary import terms

TOP = {"README.md": "start.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
LOGO = facts.ROOT / "ui" / "assets" / "logo.svg"
STYLE, SCRIPT = (facts.ROOT / "docs" / "site" / name for name in ("site.css", "live.js"))


def _views() -> list[facts.Facts]:
    try:
        return facts.read()
    except FileNotFoundError as error:
        raise ConfigurationError("There is no .site/views.json: run `python -m docs.site.views`.") from error


def on_config(config: MkDocsConfig) -> None:
    """Puts the views and the engine into the menu, below the entries that name them."""
    views: dict[str, list[dict[str, str]]] = {}
    for view in _views():
        views.setdefault(view.page, []).append({view.title: f"views/{view.name}.md"})
    menus: dict[str, list[Any]] = {
        "views": ["views/index.md", *({page: below} for page, below in views.items())],
        "api": pages.engine_pages()[1],
    }
    config.nav = [
        {title: menus.get(entry, entry) if isinstance(entry, str) else entry}
        for title, entry in (next(iter(item.items())) for item in config.nav or [])
    ]


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Adds the pages that are made."""
    views = _views()
    made = {f"views/{view.name}.md": pages.view_page(view, terms(), config.extra["app"]) for view in views}
    made |= {"views/index.md": pages.questions(views), "glossary.md": pages.glossary(terms(), views)}
    made["index.md"] = pages.front(views[0])
    made |= pages.engine_pages()[0]
    for name, page in TOP.items():
        path = facts.ROOT / name
        made[page] = pages.relinked(path.read_text("utf-8"), path)
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    for source in (LOGO, STYLE, SCRIPT):
        files.append(File.generated(config, f"assets/{source.name}", abs_src_path=str(source)))
    for picture in facts.PICTURES.rglob("*.webp"):
        name = picture.relative_to(facts.PICTURES).as_posix()
        files.append(File.generated(config, f"views/pictures/{name}", abs_src_path=str(picture)))
    for figure in (facts.WORK / live.LIVE).rglob("*.*"):
        name = figure.relative_to(facts.WORK).as_posix()
        files.append(File.generated(config, name, abs_src_path=str(figure)))


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Turns the links of a page of docs/ into links of the site. A page with none beside it has no menu."""
    if page.parent is None:
        page.meta.setdefault("hide", []).append("navigation")
    path = facts.ROOT / "docs" / page.file.src_uri
    return pages.relinked(markdown, path) if path.is_file() else markdown
