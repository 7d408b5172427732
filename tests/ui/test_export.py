"""A view as one file: its script is made of the page's own modules, its policy lets nothing else run, and it is handed to its tab alone."""

import base64
import hashlib
import html
import re
import shutil
import subprocess
import tomllib
import zlib
from pathlib import Path
from types import SimpleNamespace

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from tests.source import ROOT
from ui import export, identity, live, session
from ui.players import bundle, component, served

COMPONENTS = sorted(
    path.stem
    for folder in ("ui/assets", "pages")
    for path in (ROOT / folder).rglob("*.js")
    if "export default component(" in path.read_text("utf-8")
)
CHROME = {"scrubber", "search"}  # they fetch other modules, and are in no saved file
FIGURES = [name for name in COMPONENTS if name not in CHROME]


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(component, "STYLES", {name: () for name in FIGURES})


def test_the_modules_of_every_figure_are_one_script(tmp_path: Path) -> None:
    script = bundle.script(FIGURES)
    assert len(FIGURES) > 20 and script == bundle.script(reversed(FIGURES))
    assert not re.search(r"</script|<!--|import\.meta", script, re.IGNORECASE)
    if node := shutil.which("node"):
        (tmp_path / "script.js").write_text(script, "utf-8")
        subprocess.run([node, "--check", tmp_path / "script.js"], check=True)


def test_modules_that_import_each_other_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = {
        bundle.BEGIN: 'import { b } from "./b.js"\nexport const begin = b',
        "ui/assets/b": 'import { begin } from "./saved.js"\nexport const b = begin',
    }
    monkeypatch.setattr(bundle, "STUBS", sources)
    bundle._source.cache_clear()
    with pytest.raises(
        ValueError, match="import each other: ui/assets/saved > ui/assets/b > ui/assets/saved"
    ):
        bundle.script(())
    bundle._source.cache_clear()


def test_its_policy_lets_its_two_scripts_run_and_nothing_be_fetched(known: None) -> None:
    page = export.page(["plot"])
    found = re.search(r'Content-Security-Policy" content="(.*?)"', page)
    assert found is not None
    policy = dict(rule.split(" ", 1) for rule in html.unescape(found[1]).split("; "))
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert policy["default-src"] == "'none'" and len(scripts) == 1
    library = served.library_path().read_bytes()
    hashes = [
        f"'sha256-{base64.b64encode(hashlib.sha256(each).digest()).decode()}'"
        for each in (scripts[0].encode(), library)
    ]
    assert policy["script-src"].split() == hashes
    assert policy["connect-src"] == "data:" and policy["img-src"] == "data: blob:"
    assert not re.search(r'(?:src|href)="?(?:https?:)?//', page.replace(scripts[0], ""))


def test_files_of_one_site_share_the_library(known: None) -> None:
    page = export.page(["plot"], library="../plotly.min.js")
    script = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)[0]
    assert len(page) < 200_000 and 'data-address="../plotly.min.js"' in page
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}' 'self';" in html.unescape(page)
    alone = export.page(["headgrid"], library="../plotly.min.js")  # needs no library: nothing is allowed it
    assert "../plotly" not in alone and "script-src 'self'" not in html.unescape(alone)


def test_the_library_comes_out_of_the_file_as_it_went_in() -> None:
    packed, size = export._packed()
    small = base64.b85decode(packed.translate(str.maketrans(",.:", "<>&")))
    assert zlib.decompress(small[:size]) == served.library_path().read_bytes()
    assert not set(packed) & set("<>&\"'\\")


def test_only_the_browser_that_shows_a_view_gets_it(known: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "st", SimpleNamespace(session_state={}, context=SimpleNamespace(cookies={})))
    monkeypatch.setattr(session, "owner", lambda: "somebody")
    offered = export.offer()
    assert export.offer() is offered
    export.note(
        {"What you see": "**Bold** :material/info: $x^2$ <b>", "Why it matters": ""}, {"Model": "small"}
    )
    client = TestClient(Starlette(routes=live.routes()))
    address = f"{live.PATH}saved/{offered.token}?components="
    answer = client.get(f"{address}plot,headgrid")
    saved = answer.json()["saved"]
    assert answer.json()["file"].count("{}</script>") == 1 and saved["facts"] == {"Model": "small"}
    assert (
        list(saved["words"]) == ["What you see"] and "<strong>Bold</strong>" in saved["words"]["What you see"]
    )
    assert "<msup>" in saved["words"]["What you see"] and "<b>" not in saved["words"]["What you see"]
    assert answer.headers["cache-control"] == "no-store"
    assert client.get(f"{address}plot,../../x").status_code == 404
    assert client.get(f"{live.PATH}saved/nobody").status_code == 404
    offered.by_cookie = True
    assert client.get(f"{address}plot").status_code == 403
    monkeypatch.setattr(identity, "key_in", lambda cookie: "somebody")
    assert client.get(f"{address}plot").status_code == 200


def test_its_colours_and_fonts_are_those_of_the_app() -> None:
    theme = tomllib.loads((ROOT / ".streamlit/config.toml").read_text("utf-8"))["theme"]
    style = (served.ASSETS / "saved.css").read_text("utf-8")
    light, dark = style.split(':root[data-theme="dark"]')
    for side, text in (("light", light), ("dark", dark.partition("}")[0])):
        for name, value in theme[side].items():
            if isinstance(value, str):
                written = re.sub("[A-Z]", lambda found: f"-{found[0].lower()}", name)
                assert f"--st-{written}: {value};" in text, (side, name)
    assert f"--st-font: {theme['font']};" in style and f"--st-code-font: {theme['codeFont']};" in style
