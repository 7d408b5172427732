"""Normal use of a hosted server: a file comes in, pages are moved about, and the log stays quiet."""

from __future__ import annotations

import tomllib
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import settled
from tests.browser.server import ROOT, serve

# Streamlit 1.67 logs its complaint of a control that has a first value and is set by code, with a stack, unless
# told not to: .streamlit/config.toml says why it is. So the log says nothing of such controls here, and the links
# below show instead that each of them took its value.
SILENT = "disableWidgetStateDuplicationWarning"


def test_a_text_comes_in_and_the_log_has_no_stack(page, tmp_path: Path) -> None:
    refused: list[str] = []
    page.on(
        "response", lambda answer: refused.append(answer.url) if answer.status in (411, 413, 503) else None
    )
    text = tmp_path / "own.txt"
    text.write_text("the quick brown fox jumps over the lazy dog. " * 200)
    with serve(tmp_path) as url:
        page.goto(f"{url}/train?data=upload&steps=40")
        settled(page)
        page.get_by_role("button", name="Settings").click()
        drawer = page.get_by_role("dialog", name="Settings")
        drawer.get_by_text("Data", exact=True).click()
        drawer.locator('input[type="file"]').set_input_files(str(text))
        expect(page.get_by_text("9,000 characters")).to_be_visible()
        page.goto(f"{url}/attention?attention_view=steps&attention_layer=2&attention_head=1")
        for key, chosen in (("attention_layer", "2"), ("attention_head", "1")):
            row = page.locator(f".st-key-{key}")
            expect(row.get_by_role("radio", name=chosen, exact=True)).to_be_checked()
        page.goto(f"{url}/sampling?sampling_temperature=0.5")
        expect(page.get_by_role("slider", name="Temperature")).to_have_value("0.5")
        page.goto(f"{url}/")
        settled(page)
        log = (tmp_path / "server.log").read_text()
    assert refused == []
    assert "Stack (most recent" not in log and "Traceback" not in log
    assert tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())["global"][SILENT] is True
