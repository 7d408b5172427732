"""A server in the frame of another site, and what a link to a page asks for."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import TIMEOUT_MS, settled
from tests.browser.server import ARGUMENTS, chromium_path, serve
from tests.operating import answering
from ui import asgi_limits, identity


@pytest.fixture
def strict(browser) -> Iterator[object]:
    """A browser that keeps no cookie of a frame, unless it is kept apart for the site around it."""
    kind = browser.browser_type
    path = chromium_path(SimpleNamespace(chromium=kind))
    chromium = kind.launch(executable_path=path, args=[*ARGUMENTS, "--test-third-party-cookie-phaseout"])
    yield chromium
    chromium.close()


@pytest.mark.exhaustive
def test_in_a_frame_of_a_course_s_page_somebody_stays_who_he_is_and_sends_a_text(
    strict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(asgi_limits.FRAMES, "http://localhost:*")
    monkeypatch.setenv(identity.TRUST, "1")
    text = tmp_path / "own.txt"
    text.write_text("the quick brown fox jumps over the lazy dog. " * 200)
    tls = {
        "X-Forwarded-Proto": "https"
    }  # as the proxy says; a browser keeps secure cookies of this computer without
    visitor = strict.new_context(viewport={"width": 1280, "height": 800}, extra_http_headers=tls)
    visitor.set_default_timeout(TIMEOUT_MS)

    def keys() -> list[str]:
        return [one["value"] for one in visitor.cookies() if one["name"] == identity.COOKIE]

    framed = '<iframe src="{}/train?data=upload&steps=40" width="1200" height="700"></iframe>'
    with serve(tmp_path) as url, answering(lambda _: framed.format(url).encode()) as around:
        page = visitor.new_page()
        page.goto(f"http://localhost:{around}/")  # another site than 127.0.0.1
        frame = page.frame_locator("iframe")
        frame.get_by_role("button", name="Settings").click()
        drawer = frame.get_by_role("dialog", name="Settings")
        drawer.get_by_text("Data", exact=True).click()
        drawer.locator('input[type="file"]').set_input_files(str(text))
        expect(frame.get_by_text("9,000 characters")).to_be_visible()
        first = keys()
        page.reload()
        expect(frame.get_by_role("button", name="Settings")).to_be_visible()
        assert len(first) == 1 and keys() == first, "the server knew the browser, and made no new key"
    visitor.close()


def test_a_link_to_a_page_asks_for_nothing_in_vain_and_nobody_else(page, app_url: str) -> None:
    asked: list[str] = []
    page.on("request", lambda one: asked.append(one.url))
    vain: list[str] = []
    page.on("response", lambda one: vain.append(one.url) if one.status >= 400 else None)
    page.goto(f"{app_url}/attention?attention_view=mask")
    settled(page)
    assert asked and not [url for url in asked if not url.startswith((app_url, "data:", "blob:"))]
    assert vain == []
    icon = page.locator('[data-testid="stSidebarNavLink"][href$="/attention"]')
    assert icon.evaluate("link => getComputedStyle(link, '::before').content") == '"hub" / ""'
    page.wait_for_function("document.fonts.check('16px \"Material Symbols Rounded\"')")
