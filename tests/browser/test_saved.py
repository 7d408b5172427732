"""A view saved as HTML: opened from the disk in a browser without a network it asks nobody, and has what the app sent."""

import html
import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from tests.browser import training
from tests.browser.conftest import TIMEOUT_MS, after_frames, person, settled
from ui import export
from ui.players import component, served
from ui.views import views

FIGURE = '[data-testid="stMainBlockContainer"] .gf-tools'
HTML = 'button[aria-label^="Save as HTML"]'
DRAWN = "html[data-gf-saved=drawn]"
DARK, PHONE = {"color_scheme": "dark"}, {"viewport": {"width": 390, "height": 800}, "is_mobile": True}
KINDS: dict[str, dict[str, Any]] = {"light": {}, "dark": DARK, "phone": PHONE}
ALWAYS = {  # with what each is opened: a grid, two kinds of player, a player beside a chart, a chart over a training
    "attention/heads": "light",
    "sampling/stages": "phone",
    "positions/rope": "light",
    "shapes/pass": "light",
    "residual/norms": "dark",
}
FURTHER = {  # by name: settings of a view with kinds of player that none opens with
    "arcs": "attention?measure=true&attention_as=Arcs&attention_layer=1&attention_head=0",
    "clock": "positions?positions_view=sinusoidal&sinusoid_part=clock&sinusoid_length=32&sinusoid_width=8",
    "cloud": "embeddings?model=shakespeare-classic&embed_view=map&embed_picture=3-D",
    "ways": "families?families_view=three&families_show=live",
    "room": "sampling?sampling_view=you&you_part=room",
    "lines": "shapes?shapes_view=pass&hand=true&shapes_step=5",
}
SET = {"generation/tokens": "&generation_length=30"}  # one batch: a longer text goes on coming
WITHOUT = {  # a figure: lists, forms and tables
    *(
        "courses/courses",
        "exercises/practise",
        "exercises/before",
        "exercises/code",
        "shapes/wrong",
        "bugs/doctor",
        "families/why",
    ),
    *("reference/quick", "reference/export"),
}
MOST = {True: 2_000_000, False: 400_000}  # bytes of a file, with a chart and without; what was sent apart
MEASURED = """() => !document.querySelector('[data-testid="stMain"] .gf-follow:not([hidden])')"""
WIDER = "document.documentElement.scrollWidth - innerWidth"
CONTRACTS = Path(__file__).parent / "saved.json"  # the fields of what each component is sent
HOSTILE = (
    "</script><script>window.met=1</script><!--<script> \"'&\u2028 \U0001f469\u200d\U0001f680 שלום ${x} $& {}"
)


class File(NamedTuple):
    path: Path
    saved: dict[str, Any]
    sent: list[Any]  # what components of the page were sent, by Streamlit's messages


class Visitor(NamedTuple):
    page: Any
    sent: list[Any]


@pytest.fixture(scope="module")
def visitor(browser) -> Iterator[Visitor]:
    sent: list[Any] = []

    def received(data: bytes) -> None:
        message = ForwardMsg.FromString(data)
        if message.WhichOneof("type") == "delta" and message.delta.new_element.HasField("bidi_component"):
            proto = message.delta.new_element.bidi_component
            sent.append(
                proto.bytes.decode() if proto.WhichOneof("data") == "bytes" else json.loads(proto.json)
            )

    with person(browser) as context:
        page = context.new_page()
        page.on("websocket", lambda socket: socket.on("framereceived", received))
        yield Visitor(page, sent)


def saved(visitor: Visitor, address: str, folder: Path) -> File:
    """Opens a view, or takes that which is open, presses the button beside CSV, and has the file."""
    page = visitor.page
    if address:
        page.goto("about:blank")
        visitor.sent.clear()
        page.goto(address)
    page.locator(FIGURE).first.wait_for(state="attached")
    page.wait_for_function(MEASURED, timeout=3 * TIMEOUT_MS)
    settled(page)
    page.locator(f"{FIGURE} {HTML}").first.evaluate("button => button.click()")
    with page.expect_download(timeout=TIMEOUT_MS) as download:
        page.get_by_role("button", name="Save as HTML", exact=True).click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    page.get_by_role("button", name="Close without saving").click()
    held = re.search(r'id="gf-saved">(.*?)</script>', path.read_text("utf-8"), re.DOTALL)
    assert held is not None
    return File(path, json.loads(held[1]), list(visitor.sent))


@contextmanager
def opened(browser, path: Path, kind: str = "light", beside: tuple[str, ...] = ()) -> Iterator[Any]:
    """The file in a browser of its own, without a network; what it asks for but the files `beside` it, and what goes
    wrong, fail the test.
    """
    context = browser.new_context(**KINDS[kind])
    asked: list[str] = []
    wrong: list[str] = []
    try:
        context.set_offline(True)
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on(
            "console", lambda line: wrong.append(line.text) if line.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(path.as_uri())
        page.wait_for_selector(DRAWN, timeout=TIMEOUT_MS)
        yield page
        assert not wrong
        fetched = [url[:200] for url in asked[1:] if not url.startswith(("data:", "blob:"))]
        assert fetched == [(path.parent / name).as_uri() for name in beside]
    finally:
        context.close()


def table(page, place: str) -> str | None:
    """The CSV of the first figure that has one."""
    button = page.locator(f'{place} button[aria-label$="as CSV"]:not([hidden])')
    if not button.count():
        return None
    with page.expect_download(timeout=TIMEOUT_MS) as download:
        button.first.evaluate("button => button.click()")
    text: str = download.value.path().read_text("utf-8")
    return text


@pytest.mark.parametrize(
    ("name", "address"),
    [
        pytest.param(name, address, id=name, marks=[] if name in ALWAYS else pytest.mark.exhaustive)
        for name, address in [
            *((each.id, each.address() + SET.get(each.id, "")) for each in views() if each.id not in WITHOUT),
            *FURTHER.items(),
        ]
    ],
)
def test_a_saved_view_has_the_numbers_of_the_app_and_asks_nobody(
    name: str, address: str, visitor: Visitor, browser, app_url, tmp_path
) -> None:
    file = saved(visitor, f"{app_url}/{address}", tmp_path)
    as_it_was(file, visitor, browser, ALWAYS.get(name))


@pytest.mark.exhaustive
def test_a_run_is_saved_with_its_curve_and_all_that_it_wrote(
    visitor: Visitor, browser, app_url, tmp_path
) -> None:
    page = visitor.page
    training.begun(page, app_url, training.LINK.replace("steps=400", "steps=60"))
    training.ended(page)
    file = saved(visitor, page.url, tmp_path)
    as_it_was(file, visitor, browser)
    with opened(browser, file.path) as page:
        slider, where = page.get_by_label("Go back through the samples"), page.locator(".gf-samples output")
        assert "step 60 (newest)" in where.inner_text()
        slider.fill("0")
        assert "step 0" in where.inner_text()
        assert page.locator(".gf-samples-texts pre").inner_text().strip()


def said_by(file: File) -> str:
    """The answer on the screen, as HTML."""
    return "".join(block["html"] for block in file.saved["blocks"] if block.get("answer"))


def text_of(markup: str) -> str:
    """What markup says, without its blanks: a browser sets those of paragraphs and formulas in its own way."""
    return "".join(html.unescape(re.sub(r"<[^>]*>", "", markup)).split())


def as_it_was(file: File, visitor: Visitor, browser, kind: str | None = None) -> None:
    """Checks the file of the view on the visitor's screen, opened in a browser of that kind, or as it changes from one
    to another.
    """
    contracts = json.loads(CONTRACTS.read_text("utf-8"))
    parts = {part["key"]: part for part in file.saved["parts"]}
    assert parts
    for key, part in parts.items():
        assert part["data"] in file.sent, f"{key} is not what the app sent"
        name = part["module"].rpartition("/")[2]
        fields = sorted(json.loads(part["data"]) if isinstance(part["data"], str) else part["data"])
        assert fields in contracts[name], f"what {name} is sent has changed: can older files live with it?"
    data = len(json.dumps(file.saved).encode())
    assert (
        file.path.stat().st_size - data
        < MOST[any(part["module"].endswith("/plot") for part in parts.values())]
    )
    before = table(visitor.page, FIGURE)
    with opened(browser, file.path, kind or "light") as page:
        assert page.locator("h1").inner_text() == file.saved["title"]
        answers = page.locator(".gf-answer")
        said = "".join(answers.nth(i).inner_html() for i in range(answers.count()))
        assert text_of(said) == text_of(said_by(file))
        if kind is None:  # light, then dark, then as wide as a phone
            assert page.evaluate(WIDER) <= 0
            page.get_by_role("button", name="Dark page").click()
            page.set_viewport_size(PHONE["viewport"])
            after_frames(page)
            assert page.evaluate("document.documentElement.dataset.theme") == "dark"
        assert table(page, "figure .gf-tools") == before
        assert page.get_by_text("stay as they were saved").count() == 0, "said before anything was changed"
        wide = page.evaluate(WIDER)
        assert wide <= 0, f"it is {wide} pixels wider than the screen"


@pytest.mark.exhaustive
def test_a_control_that_needs_the_server_is_not_drawn_and_what_was_written_in_batches_is_whole(
    visitor: Visitor, browser, app_url, tmp_path
) -> None:
    page = visitor.page
    address = f"{app_url}/generation?generation_view=tokens&generation_length=100&generation_seed=5"
    page.goto(address)
    page.locator(".gf-writer .gf-steps button").last.click()
    page.locator(".gf-writer[data-at='100']").wait_for()
    file = saved(visitor, "", tmp_path)
    (part,) = file.saved["parts"]
    assert part["data"]["from"] == 0 and len(json.loads(part["data"]["nodes"])) == 100
    with opened(browser, file.path) as page:
        assert page.locator(".gf-writer").get_attribute("data-at") == "100"
        assert page.locator(".gf-writer-row").count() > 1
        assert page.locator(".gf-writer-other, .gf-writer-list button").locator("visible=true").count() == 0
        assert table(page, "figure .gf-tools") == table(visitor.page, FIGURE)


@pytest.mark.exhaustive
def test_what_follows_a_choice_only_in_the_app_is_said(visitor: Visitor, browser, app_url, tmp_path) -> None:
    file = saved(visitor, f"{app_url}/attention?model=shakespeare-classic", tmp_path)
    with opened(browser, file.path) as page:
        head = page.locator(".gf-head:not([aria-pressed=true])").first.element_handle()
        head.click()
        page.get_by_text("stay as they were saved").wait_for()
        after_frames(page, 120)
        assert head.get_attribute("aria-pressed") == "true", "nobody undoes it"
        page.get_by_text(re.compile(r"attends to “.*: about \d+%")).wait_for()  # its picture has 255 steps


def test_the_living_map_goes_through_its_training(visitor: Visitor, browser, app_url, tmp_path) -> None:
    file = saved(visitor, f"{app_url}/?model=timelapse&text=hark,+hark,+har", tmp_path)
    frames = file.saved["frames"]
    assert len(frames["steps"]) > 30 and frames["at"] == len(frames["steps"]) - 1
    with opened(browser, file.path) as page:
        summary, answer = page.locator(".gf-live-summary"), page.locator(".gf-answer")
        there, said = summary.inner_text(), answer.inner_text()
        page.get_by_role("slider", name="Training step of the model shown").focus()
        page.keyboard.press("Home")
        page.wait_for_function(
            "before => document.querySelector('.gf-live-summary').innerText !== before", arg=there
        )
        assert "step 0" in summary.inner_text() and answer.inner_text() != said


def test_the_steps_of_a_training_travel_along(visitor: Visitor, browser, app_url, tmp_path) -> None:
    view = f"{app_url}/residual?residual_view=norms&model=timelapse"
    first = said_by(saved(visitor, f"{view}&step=0", tmp_path))  # by the page
    file = saved(visitor, view, tmp_path)
    frames, answers = file.saved["frames"], file.saved["frames"]["answers"]
    assert answers[frames["at"]] == said_by(file) != first and text_of(answers[0]) == text_of(first)
    (part,) = file.saved["parts"]
    assert len(frames["steps"]) > 30 and frames["pictures"][frames["at"]] == {part["key"]: part["data"]}
    with opened(browser, file.path) as page:
        shown = (
            "document.querySelector('.gf-figure').data.map(({ y }) => Array.from(y?._inputArray ?? y ?? []))"
        )
        there, answer = page.evaluate(shown), page.locator(".gf-answer")
        assert text_of(answer.inner_html()) == text_of(answers[-1])
        slider = page.get_by_role("slider", name="Training step of the model shown")
        slider.focus()
        page.keyboard.press("Home")
        page.wait_for_function(f"before => JSON.stringify({shown}) !== before", arg=json.dumps(there))
        assert f"step {frames['steps'][0]}" in page.locator("output").first.inner_text()
        assert text_of(answer.inner_html()) == text_of(answers[0])
        assert "&step=0" in page.get_by_role("link", name="Open the live view").get_attribute("href")
        page.get_by_text("The numbers behind the figure").click()
        rows = page.locator(".gf-rows")
        first = rows.inner_text()
        page.keyboard.press("Escape")
        slider.focus()
        page.keyboard.press("End")
        page.wait_for_function(f"before => JSON.stringify({shown}) === JSON.stringify(before)", arg=there)
        assert "step=" not in page.get_by_role("link", name="Open the live view").get_attribute("href")
        page.wait_for_function("before => document.querySelector('.gf-rows').innerText !== before", arg=first)


def test_files_of_one_site_share_the_library(
    visitor: Visitor, browser, app_url, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = saved(visitor, f"{app_url}/residual?residual_view=norms", tmp_path)
    monkeypatch.setattr(component, "STYLES", {"plot": tuple(map(served.path_of, (component.SAVES, "plot")))})
    whole = export.page(["plot"], library="plotly.min.js")
    path = tmp_path / "one.html"
    path.write_text(
        whole.replace("{}</script>", json.dumps(file.saved).replace("<", "\\u003c") + "</script>"), "utf-8"
    )
    shutil.copy(served.library_path(), tmp_path / "plotly.min.js")
    with opened(browser, path, beside=("plotly.min.js",)) as page:
        page.locator(".gf-figure .main-svg").first.wait_for()
        assert table(page, "figure .gf-tools") == table(visitor.page, FIGURE)


def test_a_text_of_a_stranger_stays_text(visitor: Visitor, browser, app_url, tmp_path) -> None:
    text = (HOSTILE + "x" * 10_000)[:10_000]
    address = f"{app_url}/tokens?tokens_view=compare"
    visitor.page.goto("about:blank")
    file = saved(visitor, f"{address}&compare_corpus=shakespeare", tmp_path)
    held = json.dumps(file.saved | {"title": text, "settings": [["Text", text]]}).replace("<", "\\u003c")
    path = tmp_path / "hostile.html"
    whole = file.path.read_text("utf-8")
    begin, end = whole.index('id="gf-saved">') + len('id="gf-saved">'), whole.index("</script>")
    path.write_text(whole[:begin] + held + whole[end:], "utf-8")
    with opened(browser, path) as page:
        assert page.evaluate("window.met") is None
        assert page.locator("h1").text_content() == text
