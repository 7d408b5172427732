"""Every page, by links in one tab: its views are on one screen, of few words, with an answer, and nothing in anybody's way.

With --exhaustive a seventh of the pages each day (tests/day.py) is also looked at on a phone, with open folds and what axe finds
in them, in the dark and on the stage.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest

from tests.browser import visit
from tests.browser.conftest import open_fold, settled
from tests.day import of_today
from tests.models import REAL
from ui.fit_text import FIRST_TEXT
from ui.models import FIRST_MODEL
from ui.site import ENTRIES

pytestmark = pytest.mark.usefixtures("anew")  # no model or text of another file's tests goes along
LEAST = 0.6  # of the stage's height, for the figures of a view; less where other things are read beside them
LESS = {
    view: share
    for share, views in {
        # the map's text, answer and card stand with it; Breakdown has its guess and two lines of caption
        0.55: ("the map", "Ablation", "Breakdown", "Scaling laws", "Scores"),
        # strips of letters, and grids, whose size is their own; that of Parameters by hand is a list of formulas
        0.5: (
            "Running",
            "Tokenizers",
            "Token by token",
            "KV cache",
            "Forward pass",
            "Backpropagation",
            "Dropout",
            "Two heads by hand",
            "Quantisation",
            "Cost",
            "Race",
            "Chain of thought",  # a race below its three examples
            "FLOPs",
            "You are the model",
            "Memory",
        ),
        0.4: ("RoPE", "Live"),
        0.45: ("Steering", "Constrained"),  # its prompt and a button stand with it
        0.35: ("Extrapolation", "Overview"),
        0.3: ("Temperature",),
        0.15: ("Drafts",),  # two lines of a text, and four numbers
    }.items()
    for view in views
}
# forms, tables and lists; the drawing of a published model keeps its form and is not a figure to fill the screen
NONE = {"Published models", "Shape errors", "Diagnose", "Why decoders", "Export", "Quick reference"}
UNDRAWN = ("courses", "exercises")  # lists have no figure
LOOKED_INTO = (  # with training time above them
    "shapes?shapes_view=pass",
    "attention?attention_view=steps",
    "residual?residual_view=lens",
    "sampling?sampling_view=stages",
    "generation?generation_view=beam",
)
MODES = (  # second ones of views
    "after?after_view=finetune&model=shakespeare-classic",  # another text
    "after?after_view=reward&reward_mode=preferences",
    "after?after_view=aloud&aloud_mode=attempts",
    "after?after_view=aloud&aloud_mode=addition",
    "after?after_view=context&context_size=1",
    "tasks?tasks_view=solve&task=modular",
    "?model=pair-language",
    *(["after?after_view=context&context_learner=words"] if REAL else []),
    "shapes?shapes_view=backward&shapes_back=step",
    "parameters?parameters_scope=two",
    "families?families_view=why&families_why=unmasked",
    "exercises?exercises_on=paper",
    "tokens?tokens_view=compare&compare_part=ids",
    "generation?generation_view=cache&kv_part=bytes",
    "generation?generation_view=cache&kv_part=why",
    "generation?generation_view=cache&kv_part=smaller&cache_model=shown",
    "attention?attention_view=shared-keys&attention_sharing=published",
    "sampling?sampling_view=constrained&model=shakespeare-classic",
    "sampling?sampling_view=you&you_part=room",
)
HOMES = ("?part=attention", "?model=shakespeare-classic", "?model=encoder-blanks", "?model=timelapse")


@pytest.fixture
def console(tab) -> Iterator[list[str]]:
    """The errors that the page's scripts wrote; not what Streamlit asks for in vain. `tab` has those that they raised."""
    written: list[str] = []

    def heard(message) -> None:
        if message.type == "error" and not message.text.startswith("Failed to load resource"):
            written.append(message.text)

    tab.on("console", heard)
    tab.set_viewport_size({"width": visit.WIDE, "height": visit.HIGH})
    yield written
    tab.remove_listener("console", heard)


# Home comes last: the model that it opens with would go along.
@pytest.mark.parametrize("entry", [*ENTRIES[1:], ENTRIES[0]], ids=lambda entry: entry.url or "home")
def test_every_view_fits_the_screen_and_is_accessible(tab, console, app_url, entry, request):
    exhaustive = request.config.getoption("exhaustive")
    thorough = exhaustive and of_today(ENTRIES.index(entry))
    answer = ".gf-live-bars button" if not entry.url else ".st-key-answer"
    visit.linked(tab, f"{app_url}/{entry.url}", "h1" if entry.url == "courses" else answer)
    wrong: dict[str, list] = {}
    names = visit.views if entry.url else lambda page: ["the map"]
    for name in names(tab):
        if entry.url != "courses":
            wrong[name] = visit.screen_faults(tab)
        wrong[f"{name}, over a text"] = tab.evaluate(visit.OVERLAPS)
        wrong[f"{name}, save buttons"] = [size for size in tab.evaluate(visit.SAVES) if size < visit.TARGET]
        if thorough:
            wrong[f"{name}, phone"] = sideways(tab)
    if thorough and visit.AXE.is_file():
        for name in names(tab):
            wrong |= {f"{name}, {scheme}": found for scheme, found in unfolded(tab).items()}
    if thorough and entry.url not in UNDRAWN:
        visit.opened(tab, f"{app_url}/{entry.url}?stage=1", answer)
        wrong |= {f"{name}, stage": visit.stage_faults(tab, least(entry.url, name)) for name in names(tab)}
        fills_the_screen(tab)
    wrong["console"] = console
    wrong["errors"] = tab.locator('[data-testid="stException"]').all_inner_texts()
    if exhaustive:
        tab.goto("about:blank")  # else the next page is on the stage, too, or has this one's model
    assert not any(wrong.values()), "\n".join(f"{at}: {found}" for at, found in wrong.items() if found)


def sideways(page) -> list[int]:
    page.set_viewport_size({"width": 390, "height": 844})
    settled(page)
    found = [size for size in page.evaluate(visit.SIDEWAYS) if size]
    page.set_viewport_size({"width": visit.WIDE, "height": visit.HIGH})
    settled(page)
    return found


def unfolded(page) -> dict[str, list]:
    """What lies over a text with the folds open, and what axe finds, in light and in dark."""
    for name in ("Measure it", "By hand"):
        if page.locator('[data-testid="stExpander"] summary', has_text=name).count():
            open_fold(page, name)
    wrong = {"light": visit.violations(page), "over a text": page.evaluate(visit.OVERLAPS)}
    visit.shown_in(page, "dark")
    wrong["dark"] = visit.violations(page, "color-contrast")  # the other rules do not depend on colours
    visit.shown_in(page, "light")
    return wrong


def least(url: str, name: str) -> float:
    return 0 if name in NONE else LESS.get(name, LEAST)


def fills_the_screen(page) -> None:
    """The key f fills the stage with a figure of the last view, and gives it back."""
    if page.locator(".gf-filmed").count():
        page.mouse.move(640, 400)
        page.keyboard.press("f")
        page.wait_for_selector(".gf-full")
        page.keyboard.press("f")
        page.wait_for_selector(".gf-full", state="detached")


@pytest.mark.parametrize("view", ["sampling?sampling_view=stages", "generation?generation_view=cache"])
def test_a_text_of_two_lines_leaves_the_answer_on_the_screen_and_the_model_beside_the_question(
    tab, app_url, view
):
    tab.set_viewport_size({"width": visit.WIDE, "height": visit.HIGH})
    visit.linked(tab, f"{app_url}/{view}&model={FIRST_MODEL}&text={quote(FIRST_TEXT)}")
    assert visit.screen_faults(tab) == []
    question, model = (
        tab.locator(each).first.bounding_box() for each in ("h2", ".st-key-subject_bar button")
    )
    assert abs(question["y"] + question["height"] / 2 - model["y"] - model["height"] / 2) < 4
    if strip := tab.locator(".gf-few-lines").all():
        seen, chosen = strip[0].bounding_box(), tab.locator(".gf-few-lines .gf-chosen").bounding_box()
        assert seen["y"] <= chosen["y"] and chosen["y"] + chosen["height"] <= seen["y"] + seen["height"]


@pytest.mark.exhaustive
def test_views_with_training_time_above_them_and_second_modes_fit_the_screen(tab, console, app_url):
    wrong = {}
    for view in LOOKED_INTO:
        visit.opened(tab, f"{app_url}/{view}&model=timelapse")
        tab.locator(".gf-scrubber").wait_for()
        wrong[view] = visit.screen_faults(tab)
    for query in HOMES:
        visit.opened(tab, f"{app_url}/{query}", ".gf-live-bars button")
        wrong[query] = visit.screen_faults(tab)
    for mode in MODES:
        visit.opened(tab, f"{app_url}/{mode}")
        wrong[mode] = visit.screen_faults(tab)
        if visit.AXE.is_file():
            wrong[f"{mode}, axe"] = visit.violations(tab)
    wrong["console"] = console
    assert not any(wrong.values()), "\n".join(f"{view}: {found}" for view, found in wrong.items() if found)
