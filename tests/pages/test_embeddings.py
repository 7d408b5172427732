"""The embeddings' page alone: every view with every option, every kind of model and vocabulary, and URLs
written by strangers.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine import presets
from engine.checkpoints import Checkpoint
from engine.config import ModelConfig, TrainConfig
from engine.errors import RunError
from engine.measure.embeddings import neighbours
from engine.model import build
from engine.service.state import RunSpec
from engine.tokenizers import bpe
from pages.input.embeddings import cloud as embeddings_cloud
from pages.input.embeddings import figures
from pages.input.embeddings import map as embeddings_map
from pages.input.embeddings.shared import Vocabulary
from tests.pages.stage import StageManager, open_page, view_of
from ui import course as embeddings_course
from ui import state, subject

PAGE = str(Path(__file__).parents[2] / "pages" / "input" / "embeddings" / "page.py")
LOOKUP, MAP, CLASSES = "The lookup", "The map", "Do alike tokens find each other?"
SMALL = {"d_model": 16, "n_layers": 1, "n_heads": 2, "context": 32}


@pytest.fixture
def manager(monkeypatch: pytest.MonkeyPatch) -> StageManager:
    stage = StageManager()
    monkeypatch.setattr(state, "manager", lambda: stage)
    subject.st.cache_resource.clear()
    return stage


def opened(**query: str) -> AppTest:
    return open_page(AppTest.from_file(PAGE, default_timeout=60), **query)


def sentences(page: AppTest) -> str:
    return " | ".join(
        str(e.value)
        for kind in (page.error, page.warning, page.info, page.caption, page.markdown)
        for e in kind
    )


def with_run(manager: StageManager, steps: tuple[int, ...] = (0, 20, 40), **fields: Any) -> str:
    spec = RunSpec(
        ModelConfig(**{"vocab_size": 30, **SMALL, **fields}),
        TrainConfig(steps=40),
        corpus="python",
        name="mine",
    )
    manager.views["r"] = view_of(spec, "r", "done", snapshots=steps)
    return "run-r"


def test_the_lookup_follows_a_position(manager):
    page = opened(embed_position="4")
    said = sentences(page)
    assert "“t” is id **58**" in said and "row 58 of $E$" in said and "what block 0 reads: 0." in said
    assert "8,320 parameters" in said and "tied" in said and "a trained vector for each position" in said
    assert page.metric[0].value == "0" and page.metric[1].value == f"{61 * 65 * 128:,}"


@pytest.mark.parametrize("position", ["none", "sinusoidal", "learned", "rope", "alibi", "t5"])
@pytest.mark.parametrize("tied", [True, False])
def test_the_lookup_says_what_becomes_of_positions_and_of_the_matrix(manager, monkeypatch, position, tied):
    preset = replace(
        presets.PRESETS["classic"], model=ModelConfig(**SMALL, position=position, tie_embeddings=tied)
    )
    monkeypatch.setattr(subject, "PRESETS", {"classic": preset})
    monkeypatch.setattr(subject, "TRAINABLE", {"classic": preset})
    said = sentences(opened(model="untrained-classic"))
    assert ("Then the position is added" in said) == (position in ("sinusoidal", "learned"))
    assert ("not tied" in said) == (not tied)


@pytest.mark.parametrize("picture", ["2-D", "3-D"])
def test_the_map_with_every_option(manager, picture):
    name = with_run(manager)
    for query in (
        {"embed_colour": "frequency"},
        {"model": "untrained-modern"},
        {"model": name, "embed_colour": "frequency"},
        {"model": name, "step": "20"},
    ):
        said = sentences(opened(embed_view=MAP, embed_picture=picture, **query))
        assert (
            "The picture keeps" in said
            and "are among the 6 nearest dots" in said
            and "cannot be counted" not in said
        ), query


def test_axes_of_the_newest_step_stay_and_own_ones_hold_more(manager):
    name = with_run(manager)
    kept = {}
    for axes in ("of the newest step", "of this step"):
        said = sentences(opened(embed_view=MAP, model=name, step="0", embed_axes=axes))
        kept[axes] = float(said.split("The picture keeps ")[1].split("%")[0])
    assert kept["of this step"] > kept["of the newest step"] + 5
    newest = sentences(opened(embed_view=MAP, model=name, embed_axes="of the newest step"))
    own = sentences(opened(embed_view=MAP, model=name, embed_axes="of this step"))
    assert (
        newest.split("The picture keeps ")[1][:5] == own.split("The picture keeps ")[1][:5]
    )  # at the newest step they are the same


def test_a_chosen_token_names_its_neighbours(manager):
    page = opened(embed_view=MAP, embed_token="T")
    assert page.selectbox(key="embed_token").value == "T" and "Nearest to “T”" in sentences(page)
    page.selectbox(key="embed_token").select("␣").run()
    assert not page.exception and "class: whitespace" in sentences(page)


def test_a_trained_model_has_found_its_classes_and_an_untrained_one_has_not(manager):
    said = sentences(opened(embed_view=CLASSES))
    assert (
        "none of 100 shuffles reaches that" in said
        and "its own capital" in said
        and "vowels" in str(opened(embed_view=CLASSES).dataframe[0].value)
    )
    said = sentences(opened(embed_view=CLASSES, model="untrained-classic"))
    assert "none of 100 shuffles" not in said and "Before the first step" in said


def test_the_course_over_a_run_is_measured_bit_by_bit(manager, monkeypatch):
    monkeypatch.setattr(embeddings_course, "SLICE_SECONDS", 0.0)  # one snapshot in each round
    name = with_run(manager)
    page = opened(embed_view=CLASSES, model=name)
    assert "2 more snapshots are still to be measured" in sentences(page)
    for _ in range(3):
        page.run()
        assert not page.exception
    assert "still to be measured" not in sentences(page) and "do not stand out" in sentences(
        page
    )  # the stage's models are random


def test_a_snapshot_that_went_away_leaves_a_gap(manager, monkeypatch):
    name = with_run(manager)
    whole = manager.model

    def model(run: str, step: int | None = None) -> Checkpoint:
        if step == 20:
            raise RunError("gone")
        return whole(run, step)

    monkeypatch.setattr(manager, "model", model)
    page = opened(embed_view=CLASSES, model=name)
    page.run()
    assert not page.exception and not page.error and "still to be measured" not in sentences(page)


@pytest.mark.parametrize("view", [LOOKUP, MAP, CLASSES])
def test_pieces_of_a_bpe_are_looked_at_too(manager, monkeypatch, view):
    text = "the cat sat on the mat, and the hat — the bat was there 42 times " * 20
    tokenizer = bpe.train(text, 300)
    name = with_run(manager, vocab_size=tokenizer.vocab_size)

    def model(run: str, step: int | None = None) -> Checkpoint:
        config = ModelConfig(**SMALL, vocab_size=tokenizer.vocab_size)
        return Checkpoint(
            build(config, seed=step or 0).requires_grad_(False).eval(),
            config.resolved(),
            tokenizer,
            {"corpus": "python"},
        )

    monkeypatch.setattr(manager, "model", model)
    page = opened(embed_view=view, model=name, text="the cat sat", embed_token="␣the")
    said = sentences(page)
    assert not page.error
    if view == LOOKUP:
        assert f"The other {tokenizer.vocab_size - 3} rows of $E$ are not drawn" in said
    elif view == MAP:
        assert (
            "“␣the”" in said
            and "class: begins a word" in said
            and "never occur in the text of the training are left out" in said
        )
    else:
        assert "never occur in the text of the training are left out" in said


def known_of(counts: list[int] | None, size: int) -> Vocabulary:
    words = tuple(f"w{i}" for i in range(size))
    return Vocabulary(
        words,
        ("one",),
        np.zeros(size, int),
        None if counts is None else np.array(counts),
        False,
        np.zeros((0, 2), int),
    )


def test_tokens_that_were_never_met_are_neither_drawn_nor_neighbours():
    known = known_of([0, 5, 0, 9, 1, 7], 6)
    assert (
        known.met.tolist() == [1, 3, 4, 5]
        and known.drawn(2).tolist() == [3, 5]
        and "2 tokens that never occur" in known.left_out
    )
    for all_of_them in (known_of(None, 6), known_of([0, 0, 1, 1, 0, 0], 6), known_of([1, 2, 3, 4, 5, 6], 6)):
        assert all_of_them.met.tolist() == [0, 1, 2, 3, 4, 5] and not all_of_them.left_out
    # The same matrix with many rows that nothing has taught: they must not make all that was taught look
    # alike.
    taught = np.random.default_rng(0).standard_normal((8, 16)).astype(np.float32)
    matrix = np.concatenate((taught, np.full((200, 16), -5, np.float32)))
    ids, cosine = embeddings_map._neighbours.__wrapped__(("m", 0), 3, matrix, np.arange(8))
    alone = neighbours(taught, 3, embeddings_map.NEIGHBOURS)
    assert (
        ids.tolist() == alone[0].tolist()
        and np.allclose(cosine, alone[1])
        and cosine.max() < 0.7 < neighbours(matrix, 3, 1)[1][0]
    )
    seen = embeddings_map._map.__wrapped__(("m", 0), -1, True, matrix, np.arange(8))
    own = embeddings_map._map.__wrapped__(("m", 0), -1, True, taught, np.arange(8))
    assert (
        np.allclose(seen.scores[:8], own.scores, atol=1e-4)
        and np.allclose(seen.kept, own.kept)
        and seen.ranges == own.ranges
    )


def test_a_large_vocabulary_is_drawn_in_part(manager, monkeypatch):
    name = with_run(manager, vocab_size=600)
    monkeypatch.setattr("pages.input.embeddings.shared.DRAWN", 50)
    monkeypatch.setattr("pages.input.embeddings.shared._text", lambda corpus: None)
    for picture in ("2-D", "3-D"):
        page = opened(embed_view=MAP, model=name, embed_picture=picture)
        assert "of 600 tokens are drawn" in sentences(page)


def test_a_text_that_is_not_at_hand_is_not_counted(manager, monkeypatch):
    monkeypatch.setattr("pages.input.embeddings.shared._text", lambda corpus: None)
    page = opened(embed_view=MAP, embed_colour="frequency")
    assert "cannot be counted" in sentences(page) and "is not known here" in sentences(page)
    assert "none of 100 shuffles" in sentences(opened(embed_view=CLASSES))


@pytest.mark.parametrize(
    "query",
    [
        {"embed_view": "<script>"},
        {"embed_position": "99999"},
        {"embed_position": "-1"},
        {"embed_position": "²"},
        {"embed_view": MAP, "embed_token": "<b>no such</b>"},
        {"embed_view": MAP, "embed_token": "x" * 3000},
        {"embed_view": MAP, "embed_picture": "4-D", "embed_colour": "nan", "embed_axes": "-5"},
        {"embed_view": MAP, "embed_picture": "3-D", "embed_turn": "nan,1e9"},
        {"embed_view": MAP, "embed_picture": "3-D", "embed_turn": "9" * 40 + ",²"},
        {"embed_view": CLASSES, "text": ""},
        {"embed_view": MAP, "model": "run-nobody", "step": "10000000000"},
    ],
)
def test_a_url_written_by_a_stranger_does_no_harm(manager, query):
    page = opened(**query)
    assert not page.error and "no such" not in sentences(page)


def test_angles_in_a_link_are_brought_into_their_range():
    assert embeddings_cloud._read("725,120") == (5, 90) and embeddings_cloud._read("-10,-5") == (350, -5)
    for wrong in ("", "1", "1,2,3", "a,b", "1.5,2", "--1,2", "999999,1", "²,³", ","):
        assert embeddings_cloud._read(wrong) is None


def test_a_class_is_told_by_its_shape_as_well_as_its_colour():
    from engine.measure.embeddings import CHARACTERS, PIECES

    for names in (CHARACTERS, PIECES):
        looks = [figures.class_look(name) for name in names]
        assert len({symbol for _, symbol in looks}) == len({shade for shade, _ in looks}) == len(names)


def test_frequency_has_one_scale_however_many_classes_there_are():
    figure = figures.token_map(
        np.eye(4, dtype=np.float32),
        list("abcd"),
        np.arange(4),
        ("vowels", "consonants"),
        np.arange(4) % 2,
        labelled=np.ones(4, bool),
        chosen=0,
        near=np.array([1]),
        titles=["x", "y"],
        ranges=((0, 1), (0, 1)),
        frequency=np.arange(4.0),
    )
    assert [trace.marker.showscale for trace in figure.data[1:3]] == [True, False]


def test_markup_in_a_token_is_drawn_as_it_stands():
    words = ["<b>", "a", "&"]
    scores = np.eye(3, dtype=np.float32)
    figure = figures.token_map(
        scores,
        words,
        np.arange(3),
        ("vowels",),
        np.zeros(3, int),
        labelled=np.ones(3, bool),
        chosen=0,
        near=np.array([1]),
        titles=["x", "y"],
        ranges=((0, 1), (0, 1)),
    )
    assert list(figure.data[1].text) == ["&lt;b&gt;", "a", "&amp;"]
