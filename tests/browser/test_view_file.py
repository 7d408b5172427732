"""A view saved without a browser is the file that the browser which shows it saves."""

import html
import json
import re
from typing import Any

import pytest

from tests.browser.test_saved import saved as saved_by_browser
from tests.browser.test_saved import visitor as visitor
from ui import background_jobs, view_file

ALWAYS = (  # a player, a chart with the steps of its training, texts
    "attention?attention_view=heads",
    "residual?residual_view=norms&model=timelapse",
    "tokens?tokens_view=compare",
)


def held(text: str) -> dict[str, Any]:
    found = re.search(r'id="gf-saved">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    saved: dict[str, Any] = json.loads(found[1])
    return saved


def said(markup: str) -> str:
    """The words of a piece of HTML."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", markup)).split())


@pytest.mark.parametrize("address", ALWAYS)
def test_it_is_what_the_browser_saves(address: str, visitor, app_url, tmp_path, monkeypatch) -> None:
    file = saved_by_browser(visitor, f"{app_url}/{address}", tmp_path)
    monkeypatch.setattr(background_jobs, 'GLANCE', 300.0)
    text = view_file.file_of(address, app_url)
    there, here = file.saved, held(text)
    assert text.partition("gf-saved")[0] == file.path.read_text("utf-8").partition("gf-saved")[0]
    for kind in ("address", "settings"):
        if there[kind] != here[kind]:
            print(kind, there[kind], here[kind], sep="\n")
    print([said(b.get("html","")) for b in there["blocks"]]); print([said(b.get("html","")) for b in here["blocks"]])
    for k in there:
        print(k, there[k]==here[k])
    assert list(there)==list(here)
