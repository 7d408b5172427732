"""Files that the browser fetches by itself: served from where they lie, under names that hold their content."""

import shutil

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit import config

from ui.players import component, served
from ui.site import ROOT


@pytest.fixture
def client():
    return TestClient(Starlette(routes=served.routes()))


@pytest.fixture
def assets(tmp_path, monkeypatch):
    """A copy of the modules and styles that a test may change."""
    for name, path in served._assets().items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, tmp_path / name)
    monkeypatch.setattr(served, "ROOT", tmp_path)
    cached = (served._assets, served._paths, served.modules, served._files)
    for function in cached:
        function.cache_clear()
    yield tmp_path
    for function in cached:
        function.cache_clear()


def test_every_module_and_style_and_plotly_is_served_and_kept_for_good(client):
    folders = (ROOT / "ui" / "assets", ROOT / "pages")
    paths = [path for folder in folders for path in folder.rglob("*") if path.suffix in (".js", ".css")]
    assert len({path.name for path in paths}) == len(paths), "a component is named without its folder"
    for path in paths:
        answer = client.get(f"/app/static/{served.modules()}/{path.relative_to(ROOT).as_posix()}")
        assert answer.content == path.read_bytes() and "immutable" in answer.headers["cache-control"]
        assert answer.headers["content-type"].startswith(
            "text/javascript" if path.suffix == ".js" else "text/css"
        )
    assert len(client.get(f"/app/static/{served.library()}").content) > 1_000_000


@pytest.mark.parametrize(
    "name",
    [
        "",
        "none.js",
        "{}",
        "{}/",
        "{}/ui/assets/logo.svg",
        "{}/pages/start/home/page.py",
        "{}/../../app.py",
        "{}/%2e%2e/%2e%2e/app.py",
        "{}//etc/passwd",
    ],
)
def test_no_other_name_reaches_the_disk(client, name):
    assert client.get(f"/app/static/{name.format(served.modules())}").status_code == 404


def test_another_content_has_another_address(client, assets):
    before = served.modules()
    with (assets / "pages/input/positions/clock.css").open("a") as style:
        style.write("/* another */")
    served.modules.cache_clear(), served._files.cache_clear()
    assert served.modules() != before and served.modules() in component.script("clock", ("clock",))
    assert client.get(f"/app/static/{before}/pages/input/positions/clock.css").status_code == 404
    assert client.get(f"/app/static/{served.modules()}/pages/input/positions/clock.css").text.endswith(
        "/* another */"
    )


def test_a_server_below_a_path_serves_them_there(monkeypatch):
    monkeypatch.setattr(config, "get_option", lambda name: "/below/here/")
    client = TestClient(Starlette(routes=served.routes()))
    assert client.get(f"/below/here/app/static/{served.modules()}/ui/assets/load.js").status_code == 200
