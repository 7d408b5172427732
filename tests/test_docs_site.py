"""The documentation site: its links, and a page for every view. Only the exhaustive test builds it."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
import yaml

from docs.site import facts, live, pages
from docs.site.facts import Facts, Link
from docs.site.views import exercises, opens, scenes
from tests import source
from tests.browser import view_pictures
from tests.browser.test_saved import WITHOUT
from tests.source import ROOT
from tests.test_source import imports
from ui import view_file
from ui.players import component
from ui.text.glossary import terms
from ui.tour.courses import parse
from ui.views import views

APP = "https://glassformer.example"
MOST = 2_500_000  # bytes that a page of the site fetches, compressed as a server sends them
SITE = "https://docs.glassformer.example"
LENS = Facts(
    section="Inside",
    page="Residual stream",
    url="residual",
    id="lens",
    title="Logit lens",
    address="residual?residual_view=lens",
    question='Which "block" decides?',
    answer="The **logit lens** says: :blue[block 3], as $p_3 > 0.5$. [Race](/ladder?ladder_view=race).",
    model="Shakespeare",
    words={"What you see": "One row < one block."},
    code={
        "engine.a.b": "engine.a.b",
        "engine.a.C.d": "engine.a.C",
        "engine.a._e": "engine.a._e",
        "ui.f": "ui.f",
    },
    scenes=(Link("Depth", "Built live", "residual?residual_view=lens&course=built-live&scene=9"),),
    exercises=(),
    terms=("logit-lens",),
)


def test_the_page_of_a_view_has_its_question_claim_and_links(tmp_path: Path) -> None:
    page = pages.view_page(LENS, terms(), APP, tmp_path)
    head = yaml.safe_load(page.split("---\n")[1])
    assert head["title"] == LENS.question
    assert head["description"] == "The logit lens says: block 3, as p_3 > 0.5. Race."
    assert f"[Open this view]({APP}/residual?residual_view=lens)" in page
    assert f"Built live: [Depth]({APP}/residual?residual_view=lens&course=built-live&scene=9)" in page
    assert (
        '<a href="../../../glossary/#logit-lens">' in page
        and "[logit lens](../../glossary.md#logit-lens)" in page
    )
    assert f'<a href="{APP}/ladder?ladder_view=race">Race</a>' in page
    assert "<math" in page and "$" not in page and ":blue" not in page and "One row &lt; one" in page
    assert "- [`engine.a.b`][engine.a.b]\n- [`engine.a.C.d`][engine.a.C]\n- `engine.a._e`\n- `ui.f`" in page
    assert "Exercises" not in page


def made(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


def test_a_page_shows_the_working_figure_of_its_view_or_else_its_picture(tmp_path: Path) -> None:
    assert pages.PICTURELESS in pages.view_page(LENS, terms(), APP, tmp_path)
    made(tmp_path / "pictures" / "residual" / "lens.webp")
    page = pages.view_page(LENS, terms(), APP, tmp_path)
    assert "](../pictures/residual/lens.webp)" in page and pages.PICTURELESS not in page
    made(tmp_path / "live" / "residual" / "lens.html")
    page = pages.view_page(LENS, terms(), APP, tmp_path)
    assert '<iframe class="live" src="../../../live/residual/lens.html"' in page and ".webp" not in page
    assert 'title="Which &quot;block&quot; decides?" loading="lazy">' in page


def test_a_view_with_several_figures_has_a_list_of_those_that_were_saved(tmp_path: Path) -> None:
    home = replace(LENS, url="", id="living", section="Start")
    choices = live.CHOICES[home.name]
    assert [len(list(some)) for _, some in groupby(choices, key=lambda each: each.of)] == [5, 5]
    for i in range(5):
        made(tmp_path / "live" / "home" / f"living-{i}.html")
    page = pages.view_page(home, terms(), APP, tmp_path)
    assert page.count("<option") == 5 and page.count("<optgroup") == 1 and "ROMEO:⏎O, she d" in page
    assert page.count("<iframe") == 1
    front = pages.front(home, tmp_path)
    assert 'src="live/home/living-0.html"' in front and "data-moves" in front
    assert len(re.findall(r"[.:?!](?=\s|$)", pages.FRONT)) <= 4 and front.count("](") == 2


def test_the_figures_of_the_site_share_a_library_and_leave_out_what_its_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(component, "STYLES", {"plot": ()})
    saved = {
        "parts": [{"module": "ui/assets/plot", "key": "a", "data": "{}"}],
        "blocks": [{"part": 0}, {"html": "<p>Yes</p>", "answer": True}, {"html": "<p>small</p>"}],
        "words": {"What you see": "x"},
        "facts": {"Model": "m"},
    }
    monkeypatch.setattr(view_file, "gathered", lambda entry, page, app: saved)
    (listed,) = (each for each in views() if each.id == "residual/lens")
    page: Any = None
    assert live.save(LENS, listed, page, APP, tmp_path)
    text = (tmp_path / "live" / "residual" / "lens.html").read_text("utf-8")
    held = json.loads(re.search(r'id="gf-saved">(.*?)</script>', text, re.DOTALL)[1])  # type: ignore[index]
    assert held["blocks"] == [{"part": 0}, {"html": "<p>small</p>"}] and held["words"] == held["facts"] == {}
    (library,) = (tmp_path / "live").glob("*.js")
    assert f"../{library.name}" in text and len(text) < 100_000 < library.stat().st_size

    def refused(*_: object) -> None:
        raise view_file.ViewFileError("no figure")

    monkeypatch.setattr(view_file, "gathered", refused)
    assert not live.save(LENS, listed, page, APP, tmp_path)


def test_no_picture_is_taken_where_there_is_no_browser(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(view_pictures, "read", lambda: [replace(LENS, id="unsaved")])
    monkeypatch.setattr(view_pictures, "sync_playwright", nullcontext)
    monkeypatch.setattr(view_pictures, "serve", lambda *_, **__: pytest.fail("a server was started"))
    monkeypatch.setattr(view_pictures, "chromium_path", lambda _: None)
    view_pictures.main()
    assert "no browser is here" in capsys.readouterr().out


def test_the_glossary_has_an_index_of_its_letters() -> None:
    known = terms()
    here = [replace(LENS, url=page, address=page) for page in {term.page for term in known.values()}]
    page = pages.glossary(known, here)
    index = re.findall(r"\[(\w)\]\(#([\w-]+)\)", page.split("\n\n")[1])
    titles = re.findall(r"^## (.+) \{ #([\w-]+) \}", page, re.MULTILINE)
    assert len(titles) == len(known) and len(index) > 15
    firsts = {next(c for c in title if c.isalnum()).upper(): None for title, _ in titles}
    assert [letter for letter, _ in index] == list(firsts) == sorted(firsts)
    for letter, anchor in index:
        title = next(title for title, _ in titles if next(c for c in title if c.isalnum()).upper() == letter)
        assert (title, anchor) in titles


def test_facts_are_read_as_they_were_written(tmp_path: Path) -> None:
    facts.write([LENS], tmp_path / "views.json")
    assert facts.read(tmp_path / "views.json") == [LENS]


@pytest.mark.parametrize(
    ("file", "link", "moved"),
    [
        ("README.md", "docs/hosting.md#configuration", "hosting.md#configuration"),
        ("docs/python.md", "../README.md#try-it", "start.md#try-it"),
        ("README.md", "docs/train.png", "train.png"),
        ("README.md", "engine/nano.py", "api/nano.md"),
        ("docs/terms.md", "architecture.md#one-forward-pass", "architecture.md#one-forward-pass"),
        ("docs/developing.md", "../CONTRIBUTING.md", "contributing.md"),
        ("docs/read-the-engine.md", "../engine/parts/norms.py", "api/parts/index.md#engine.parts.norms"),
        ("docs/developing.md", "https://nodejs.org", "https://nodejs.org"),
        ("docs/read-the-engine.md", "../engine/data/tokenizers/__init__.py", "api/data/tokenizers/index.md"),
    ],
)
def test_links_of_the_repository_become_links_of_the_site(file: str, link: str, moved: str) -> None:
    assert pages.relinked(f"[x]({link})", ROOT / file) == f"[x]({moved})"


def test_every_public_module_of_the_engine_is_documented_once() -> None:
    made, _ = pages.engine_pages()
    shown = [line[4:] for page in made.values() for line in page.splitlines() if line.startswith("::: ")]
    public = [path for path in source.ENGINE if not path.name.startswith("_") or path.name == "__init__.py"]
    names = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in public
    ]
    assert sorted(shown) == sorted(names)


def test_examples_in_docstrings_are_fenced() -> None:
    assert (
        pages.fenced("A.\n\n>>> f(1)\n2\n>>> g()\n\nB.") == "A.\n\n```pycon\n>>> f(1)\n2\n>>> g()\n```\n\nB."
    )


def test_the_course_in_the_docs_can_be_read() -> None:
    text = (ROOT / "docs" / "first-course.md").read_text("utf-8")
    course = parse("7-my-course.yaml", text.partition("```yaml\n")[2].partition("```")[0])
    assert course.id == "my-course" and course.scenes[0].question


def test_every_guess_is_in_the_table_for_teachers() -> None:
    text = (
        (ROOT / "docs" / "teaching.md")
        .read_text("utf-8")
        .partition("## Guess first")[2]
        .partition("\n## ")[0]
    )
    rows = [line for line in text.splitlines() if line.startswith("| ") and "| view |" not in line]
    asked = {
        (path, name)
        for path in (ROOT / "pages").rglob("*.py")
        for name in re.findall(r"^ +(?:guess\.)?ask\(\"([a-z]+)\"", path.read_text("utf-8"), re.MULTILINE)
    }
    assert len(rows) == len(asked) > 20 and f"\n{len(asked)} guesses stand" in text


@pytest.mark.parametrize(
    "name, most", [("first-lecture.md", 300), ("first-course.md", 300), ("read-the-engine.md", 500)]
)
def test_the_first_pages_are_short(name: str, most: int) -> None:
    assert len((ROOT / "docs" / name).read_text("utf-8").split()) <= most


def test_the_walk_leads_through_the_whole_engine_and_meets_no_file_before_those_that_it_imports() -> None:
    walk = re.findall(
        r"\]\(\.\./(engine/[\w/]+\.py)\)", (ROOT / "docs" / "read-the-engine.md").read_text("utf-8")
    )
    modules = [name.removesuffix(".py").replace("/", ".") for name in walk]
    wrong = [
        f"{name} before {other}"
        for at, name in enumerate(walk)
        for other in modules[at + 1 :]
        if any(other == each or other.startswith(f"{each}.") for each in imports(ROOT / name))
    ]
    assert not wrong and len(set(walk)) == len(walk)
    every = {
        path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in (ROOT / "engine").rglob("*.py")
    }
    assert {*walk} == {name for name, text in every.items() if text.count("\n") > 10}
    assert sum(text.count("\n") for text in every.values()) <= 7_500 and len(every) <= 50


# The built site --------------------------------------------------------------------------------------


class Html(HTMLParser):
    """The ids of a page, its links, and what a browser loads for it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids, self.links, self.loaded = {""}, list[str](), list[str]()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in ("script", "link", "img", "source", "iframe") and values.get("rel") != "canonical":
            self.loaded += [values[name] for name in ("href", "src") if name in values]


@cache
def size(path: Path) -> int:
    """The bytes of a file as a server sends it that compresses texts."""
    data = path.read_bytes()
    return len(data if path.suffix in (".png", ".webp") else gzip.compress(data, 6))


def weight(page: Path, site: Path) -> int:
    """The bytes that a browser fetches for a page, its figure, and the search, which begins to load by itself."""
    seen, waiting = set[Path](), [page, site / "search" / "search_index.json"]
    while waiting:
        path = waiting.pop().resolve()
        if path in seen:
            continue
        seen.add(path)
        if path.suffix == ".html":
            shared = re.findall(r'data-address="([^"]+)"', path.read_text("utf-8"))
            links = [*Html(path).loaded, *shared]
            loaded = (target_of(link, path, site) for link in links if not urlsplit(link).scheme)
            # the page before and the next one are named, and not fetched
            waiting += [target for target in loaded if target.suffix != ".html" or "live" in target.parts]
    return sum(map(size, seen))


def target_of(link: str, page: Path, site: Path) -> Path:
    path = unquote(urlsplit(link).path)
    start = site if path.startswith("/") else page.parent
    target = (start / path.lstrip("/")).resolve() if path else page
    return target / "index.html" if target.is_dir() else target


def broken(site: Path, html: Mapping[Path, Html]) -> list[str]:
    wrong = []
    for page, found in html.items():
        for link in [*found.links, *found.loaded]:
            if urlsplit(link).scheme or link.startswith("//"):
                continue
            target, anchor = target_of(link, page, site), unquote(urlsplit(link).fragment)
            if not target.is_file() or (target in html and anchor not in html[target].ids):
                wrong.append(f"{page.relative_to(site)}: {link}")
    return wrong


@pytest.mark.exhaustive
def test_every_scene_and_exercise_is_on_the_page_of_a_single_view() -> None:
    links = [*scenes(), *exercises()]
    wrong = [link for link, url, query in links if sum(opens(view, url, query) for view in views()) != 1]
    assert len(links) > 200 and not wrong


def build(site: Path) -> None:
    """Builds the site into a folder, as `make docs` does."""
    environment = os.environ | {"GLASSFORMER_APP": APP, "GLASSFORMER_SITE": SITE, "NO_MKDOCS_2_WARNING": "1"}
    environment["PYTHONPATH"] = str(ROOT)
    for command in (["docs.site.views"], ["mkdocs", "--quiet", "build", "--site-dir", str(site)]):
        done = subprocess.run(
            [sys.executable, "-m", *command],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]


@pytest.mark.exhaustive(day=0)
@pytest.mark.skipif(find_spec("material") is None, reason="requirements-docs.txt is not installed")
def test_the_site_is_built_whole_from_the_app_and_the_docs(tmp_path: Path) -> None:
    build(site := tmp_path / "site")
    # a published model is only drawn
    assert [view.name for view in facts.read() if not view.answer] == ["home/published"]
    unsaved = [view.name for view in facts.read() if not live.figure(view, "")]
    assert set(unsaved) == WITHOUT - {"exercises/before"}  # a sheet, which works by itself
    weights = {page.relative_to(site).as_posix(): weight(page, site) for page in site.rglob("index.html")}
    heavy = {name: size for name, size in weights.items() if size > MOST}
    assert not heavy, heavy
    html = {path: Html(path) for path in site.rglob("*.html")}
    assert not broken(site, html)
    (wrong := site / "wrong.html").write_text('<a href="glossary/#no-such-term">1</a><img src="none.png">')
    assert broken(site, html | {wrong: Html(wrong)}) == [
        "wrong.html: glossary/#no-such-term",
        "wrong.html: none.png",
    ]
    assert not [link for found in html.values() for link in found.loaded if urlsplit(link).netloc]

    sitemap = (site / "sitemap.xml").read_text("utf-8")
    known = {listed.entry.url: (listed.page.key, set[str]()) for listed in views()}
    for listed in views():
        known[listed.entry.url][1].add(listed.view.id)
        path = f"views/{listed.entry.url or 'home'}/{listed.view.id}/"
        assert f"<loc>{SITE}/{path}</loc>" in sitemap
        page = html[site / path / "index.html"]
        assert f"{APP}/{listed.address()}" in page.links
    for link in {link for found in html.values() for link in found.links if link.startswith(APP)}:
        url, query = urlsplit(link).path.strip("/"), dict(parse_qsl(urlsplit(link).query))
        key, ids = known[url]
        assert key not in query or query[key] in ids, link
    command = [sys.executable, "-m", "tests.browser.site_figures", str(site)]
    seen = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert seen.returncode == 0, seen.stderr[-4000:]
