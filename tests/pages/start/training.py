"""What the tests of the training page share: opening it, pressing, and reading what it says."""

from __future__ import annotations

from pathlib import Path

from streamlit.testing.v1 import AppTest

PAGE = str(Path(__file__).parents[3] / "pages" / "start" / "train" / "page.py")


def opened(**query: str) -> AppTest:
    page = AppTest.from_file(PAGE, default_timeout=60)
    page.session_state["owner"] = "this-browser"
    for name, value in ({"data": "python"} | query).items():
        page.query_params[name] = value
    page.run()
    assert not page.exception
    return page


def sentences(page: AppTest) -> str:
    return " | ".join(
        str(e.value)
        for kind in (page.error, page.warning, page.info, page.caption, page.markdown)
        for e in kind
    )


def clicked(page: AppTest, key: str) -> AppTest:
    page.button(key=key).click().run()
    assert not page.exception
    return page


def unescaped(page: AppTest) -> str:
    return sentences(page).replace("\u2060", "").replace("\\", "")
