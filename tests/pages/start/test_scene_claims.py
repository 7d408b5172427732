"""How a scene's words are held against its screen (scene_claims.py), and scenes where no text can be had."""

from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.helpers import opened
from tests.pages.start.scene_claims import marks, missing
from tests.pages.start.scene_screen import Screen, read
from ui.tour.courses import FOLDER, Scene, parse, shelf

pytestmark = pytest.mark.usefixtures("manager")
# Their views read Tiny Shakespeare or gpt2's tokenizer when they are opened.
READERS = {"tokens", "train"}


def reads_a_text(scene: Scene) -> bool:
    query = dict(scene.query)
    return (scene.page in READERS and query.get("tokens_view") != "bpe") or query.get("bugs_view") == "doctor"


READING = [
    pytest.param(scene, id=f"{name} {number}")
    for name, course in shelf().courses.items()
    for number, scene in enumerate(course.scenes, 1)
    if reads_a_text(scene)
]


@pytest.fixture
def lookup(drawn) -> tuple[Scene, Screen]:
    """A scene of the first course, and its screen."""
    scene = shelf().courses["ten-minutes"].scenes[2]
    assert scene.page == "embeddings" and "128 numbers" in scene.text
    return scene, read(opened(scene.path, **dict(scene.query)), drawn)


@pytest.mark.parametrize(
    ("said", "instead", "fault"),
    [
        ("128 numbers", "129 numbers", "129 numbers"),
        ("128 numbers", "128 numbers, of 65 characters", ""),
        ("128 numbers", "128 numbers, of 66 characters", "of 66 characters"),
        ("128 numbers", "128 numbers, in 4 blocks", ""),
        ("128 numbers", "128 numbers, in five blocks", "five blocks"),
        ("128 numbers", "128 numbers at a loss of 1.51", ""),
        ("128 numbers", "128 numbers at a loss of 1.52", "of 1.52"),
        ("128 numbers", "128 numbers of “e”", ""),
        ("128 numbers", "128 numbers of “To bee”", "“To bee”"),
        ("128 numbers", "128 numbers, as in Llama", "Llama"),
        ("128 numbers", "128 numbers, two thirds", "two thirds"),
        ("128 numbers", "128 numbers, of shape (65, 129)", "(65, 129)"),
        ("128 numbers", "128 numbers, 9d²", "9d²"),
    ],
)
def test_a_number_a_quotation_or_a_name_that_is_not_on_screen_is_red(lookup, said, instead, fault):
    scene, screen = lookup
    assert missing(scene, (), screen) == []
    faults = missing(replace(scene, text=scene.text.replace(said, instead)), (), screen)
    assert len(faults) == bool(fault) and all(fault in one for one in faults), faults
    by_note = missing(replace(scene, notes=instead), (), screen)
    assert by_note == [] or fault in by_note[0]


def test_what_is_marked_is_not_looked_for_and_a_mark_marks_something(lookup):
    scene, screen = lookup
    wrong = replace(scene, text=f"{scene.text} The paper has 512, in 1817.")
    assert len(missing(wrong, (), screen)) == 2
    assert missing(wrong, ("has 512", "1817"), screen) == []
    assert missing(scene, ("512",), screen) == ["“512” is marked and not said"]


def test_marks_are_read_scene_by_scene(tmp_path):
    file = tmp_path / "1-a.yaml"
    file.write_text(
        "scenes:\n  - title: A\n    # not on screen: 1.88 (the lecture's); four layers\n    text: x\n  - title: B\n"
    )
    assert marks(file) == [("1.88", "four layers"), ()]
    for path in FOLDER.glob("*.yaml"):
        assert len(marks(path)) == len(parse(path.name, path.read_text("utf-8")).scenes)


def test_a_control_is_counted_by_what_it_offers():
    def page() -> None:
        import streamlit as st

        st.segmented_control("Step", ["a", "b", "c"], key="story_step")
        st.selectbox("Question", ["x", "At 12 blocks?"], index=1)
        st.table({"n": [1, 2]})

    screen = read(AppTest.from_function(page).run(), {})
    assert 3 in screen.counts["step"] and 12 in screen.counts["block"] and 2 in screen.counts["row"]


@pytest.mark.parametrize("scene", READING)
def test_a_scene_that_reads_a_text_says_which(scene):
    assert "Tiny Shakespeare" in f"{scene.text} {scene.notes}"


@pytest.mark.usefixtures("nowhere")
@pytest.mark.parametrize("scene", READING)
def test_a_scene_holds_without_the_text(scene, drawn):
    phrases = {
        each.title: marked
        for path in FOLDER.glob("*.yaml")
        for each, marked in zip(parse(path.name, path.read_text("utf-8")).scenes, marks(path), strict=True)
    }
    page = opened(scene.path, **dict(scene.query))
    assert missing(scene, phrases[scene.title], read(page, drawn)) == []
    assert not page.error and scene.point in str(page._tree)
