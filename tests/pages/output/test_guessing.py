"""The view "You are the model": what the browser gets of a passage, and a room whose votes have a loss."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine.checkpoints import Checkpoint
from engine.config import ModelConfig, TrainConfig
from engine.data import corpora
from engine.model import build
from runs.rooms import Rooms
from runs.state import RunSpec
from tests.pages import helpers
from tests.pages.inside.models import shipped
from tests.pages.real_model import REAL, carried
from tests.pages.stage import StageManager
from tests.pages.start.training import begun
from ui import memo

pytestmark = pytest.mark.usefixtures("manager")
TINY = ModelConfig(vocab_size=90, context=16, d_model=16, n_layers=1, n_heads=2)
PREDICTORS = ["uniform", "unigram", "bigram", "trigram", "model"]


def opened(**query: str) -> AppTest:
    return helpers.opened("output/sampling", sampling_view="you", **query)


def text_here() -> tuple[str, str]:
    """(training part, validation part) of the text that the page takes, in the model's alphabet."""
    name = "python" if corpora.shakespeare_path() is None else "shakespeare"
    text = corpora.load(name).text
    cut, known = len(corpora.training_part(text)), set(shipped().tokenizer.alphabet)
    return "".join(filter(known.__contains__, text[:cut])), "".join(filter(known.__contains__, text[cut:]))


def test_the_game_is_of_held_out_text_with_the_nats_of_each_predictor_on_its_characters() -> None:
    page = opened(you_seed="7")
    sent, (train, held_out) = helpers.sent(page, "guessing"), text_here()
    alphabet, lead = sent["alphabet"], sent["lead"]
    assert "".join(alphabet) == shipped().tokenizer.alphabet
    guessed = "".join(alphabet[i] for i in sent["ids"])
    assert lead + guessed in held_out and len(guessed) == 240 and len(lead) >= 100
    assert list(sent["nats"]) == PREDICTORS and {len(nats) for nats in sent["nats"].values()} == {240}
    for at in (0, 100, 239):
        before = lead + guessed[:at]
        with torch.inference_mode():
            window = torch.tensor([shipped().tokenizer.encode(before[-128:])])
            p = shipped().model(window)[0, -1].double().softmax(-1)[sent["ids"][at]].item()
        two, character = before[-2:], guessed[at]
        trigram = (count(train, two + character) + 1) / (count(train[:-1], two) + 65)
        unigram = (train.count(character) + 1) / (len(train) + 65)
        wanted = {"model": p, "trigram": trigram, "unigram": unigram, "uniform": 1 / 65}
        assert {name: sent["nats"][name][at] for name in wanted} == pytest.approx(
            {name: -math.log(each) for name, each in wanted.items()}, abs=2e-4
        )
        order = sorted(range(65), key=lambda i: -count(train, two + alphabet[i]))
        guess = order.index(sent["ids"][at]) + 1
        assert sent["turns"]["trigram"][at] == (guess if guess <= 5 else 0)
    assert list(sent["turns"]) == PREDICTORS[1:]
    assert (sent["seconds"], sent["guesses"]) == (120, 5)
    verdicts = [sent["words"][name] for name in ("better", "worse", "even")]
    assert all(said.endswith(" larger than chance would make it.") for said in verdicts), verdicts
    assert "You have 2 minutes" in helpers.unescaped(page)
    assert guessed[:30] not in helpers.unescaped(page), "what comes next is not told"


def count(text: str, run: str) -> int:
    """Occurrences, overlapping ones too."""
    return len(re.findall(f"(?={re.escape(run)})", text))


def test_a_seed_of_the_address_names_the_passage_and_another_follows() -> None:
    page = opened(you_seed="7")
    first = helpers.sent(page, "guessing")
    assert helpers.sent(opened(you_seed="7"), "guessing")["ids"] == first["ids"]
    for stranger in ("-1", "99999", "<b>"):
        assert helpers.sent(opened(you_seed=stranger), "guessing")["key"][-1] == 0
    page = opened(you_seed="7", you_part="room")
    helpers.clicked(page, "you_another")
    assert helpers.in_address(page, "you_seed") == "8"
    page.query_params["you_part"] = "reader"
    assert helpers.sent(opened(you_seed="8"), "guessing")["ids"] != first["ids"]


def votes(rooms: Rooms, choices: str) -> None:
    """Lets a phone choose each of these characters."""
    question = rooms.mine("this-browser")
    assert question is not None and question.letters
    for person, character in enumerate(choices):
        rooms.choose(question.room, f"phone {person}", question.number, question.answers.index(character))


def test_a_room_has_a_loss_on_the_characters_that_it_guessed(rooms: Rooms) -> None:
    game = helpers.sent(opened(), "guessing")
    guessed = "".join(game["alphabet"][i] for i in game["ids"][:3])
    page = opened(you_part="room")
    assert page.button(key="you_next").label == "Ask the room" and rooms.mine("this-browser") is None
    helpers.clicked(page, "you_next")
    question = rooms.mine("this-browser")
    assert (
        question is not None and question.text == game["lead"] and list(question.answers) == game["alphabet"]
    )
    wrong = next(c for c in "xz" if c != guessed[0])
    votes(rooms, guessed[0] * 3 + wrong)
    page.run()
    sent = helpers.sent(page, "class_guessing")
    assert (sent["voted"], sent["rows"], sent["losses"], sent["next"]) == ("4 answers", [], [], "")
    helpers.clicked(page, "you_next")
    sent = helpers.sent(page, "class_guessing")
    assert page.button(key="you_next").label == "Reveal" and not sent["next"] and not sent["losses"]
    by_character = {row["character"]: row for row in sent["rows"]}
    assert by_character[guessed[0]]["class"] == pytest.approx((3 + 1 / 65) / 5)
    assert by_character[wrong]["class"] == pytest.approx((1 + 1 / 65) / 5)
    assert by_character[guessed[0]]["model"] == pytest.approx(math.exp(-game["nats"]["model"][0]), abs=1e-4)
    assert not any(row["right"] for row in sent["rows"]), "it is not told before it is revealed"
    helpers.clicked(page, "you_next")
    sent, room = helpers.sent(page, "class_guessing"), -math.log((3 + 1 / 65) / 5)
    assert sent["next"] == guessed[0] and [row["character"] for row in sent["rows"] if row["right"]] == [
        guessed[0]
    ]
    assert {each["name"]: each["nats"] for each in sent["losses"]} == pytest.approx(
        {name: game["nats"][name][0] for name in PREDICTORS} | {"class": room}, abs=1e-4
    )
    assert f"After 1 character the room needs **{room:.2f} nats**" in helpers.unescaped(page)
    assert "A single character says nothing yet." in helpers.unescaped(page)
    helpers.clicked(page, "you_next")  # the next character, of which nobody is right
    votes(rooms, wrong * 2 if guessed[1] != wrong else "qq")
    again = opened(you_part="room")  # a reload later
    helpers.clicked(again, "you_next")
    helpers.clicked(again, "you_next")
    losses = {each["name"]: each["nats"] for each in helpers.sent(again, "class_guessing")["losses"]}
    spread = abs(room - math.log(65 * 3)) / 2  # of two numbers: their difference / sqrt(2), / sqrt(2)
    assert f"a mean of so few characters by ±{2 * spread:.1f}" in helpers.unescaped(again)
    assert losses["class"] == pytest.approx((room - math.log(1 / 65 / 3)) / 2)
    assert losses["trigram"] == pytest.approx(np.mean(game["nats"]["trigram"][:2]), abs=1e-4)


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        pytest.param(
            "",
            f"Nobody has chosen, so smoothing alone gives every character the same **{1 / 65:.1%}**;",
            id="none",
        ),
        pytest.param("q", f"the room's first guess is q with **{(1 + 1 / 65) / 2:.0%}**,", id="one"),
        pytest.param(
            "qxxq", f"between q, x, each with **{(2 + 1 / 65) / 5:.0%}** after smoothing;", id="tie"
        ),
        pytest.param(
            "qxzj", f"among 4 characters, each with **{(1 + 1 / 65) / 5:.0%}** after smoothing;", id="many"
        ),
    ],
)
def test_a_room_has_a_first_guess_only_where_its_votes_have(rooms: Rooms, chosen: str, said: str) -> None:
    page = opened(you_part="room")
    helpers.clicked(page, "you_next")
    votes(rooms, chosen)
    helpers.clicked(page, "you_next")
    assert said in helpers.unescaped(page)
    assert "smoothed" in helpers.sent(page, "class_guessing")["head"]


def test_another_passage_closes_the_vote_and_begins_at_the_first_character(rooms: Rooms) -> None:
    page = opened(you_part="room")
    helpers.clicked(page, "you_next")
    helpers.clicked(page, "you_another")
    before = rooms.mine("this-browser")
    assert page.button(key="you_next").label == "Ask the room" and before is not None and not before.open
    helpers.clicked(page, "you_next")
    assert helpers.sent(page, "class_guessing")["losses"] == []
    helpers.clicked(page, "you_end")
    assert rooms.mine("this-browser") is None


def test_a_room_that_was_asked_something_else_goes_on_where_it_was(rooms: Rooms) -> None:
    page = opened(you_part="room")
    for _ in range(2):  # two characters
        helpers.clicked(page, "you_next")
        votes(rooms, "eet")
        helpers.clicked(page, "you_next")
        helpers.clicked(page, "you_next")
    before = helpers.sent(page, "class_guessing")
    assert [each["name"] for each in before["losses"]] == [*PREDICTORS, "class"]
    rooms.ask("this-browser", "Why?", ["a", "b"])
    page.run()
    now = helpers.sent(page, "class_guessing")
    assert {name: now[name] for name in ("text", "next", "losses", "rows")} == {
        name: before[name] for name in ("text", "next", "losses", "rows")
    }
    assert page.button(key="you_next").label == "Next character"
    helpers.clicked(page, "you_another")
    assert page.button(key="you_next").label == "Ask the room"
    helpers.clicked(page, "you_next")
    page = opened(you_part="room")  # the passage before
    assert helpers.sent(page, "class_guessing")["losses"] == before["losses"]
    helpers.clicked(page, "you_next")
    question = rooms.mine("this-browser")
    assert question is not None and question.text == before["text"] + before["next"]


@pytest.mark.parametrize("model", ["task-modular", pytest.param(REAL, marks=carried)])
def test_a_model_of_problems_or_pieces_is_refused(model: str) -> None:
    assert "does not read running text in single characters" in helpers.said(opened(model=model), "info")


@pytest.mark.parametrize("part", ["reader", "room"])
def test_a_model_whose_numbers_have_run_away_is_a_sentence(manager: StageManager, part: str) -> None:
    memo.clear()
    manager.scale = lambda step: 1e30
    page = opened(model=f"run-{begun(manager, status='failed')}", you_part=part)
    (warning,) = page.warning
    assert warning.value.startswith("The logits are not finite") and not page.error
    assert not any("guessing" in each.proto.component_name for each in page.get("bidi_component"))


def trained_on(manager: StageManager, monkeypatch: pytest.MonkeyPatch, text: str, seed: int = 0) -> str:
    """The name of a run of this browser's on a text, with the alphabet of that text."""
    memo.clear()
    found = corpora.from_text(text)
    spec = RunSpec(TINY, TrainConfig(), "text", text)
    run = begun(manager, spec, status="finished")
    config = replace(TINY, vocab_size=found.vocab_size)
    model = build(config, seed=seed).requires_grad_(False).eval()
    loaded = Checkpoint(model, model.config, found.tokenizer, {"corpus": "text", "step": 40})
    monkeypatch.setattr(manager, "model", lambda run, step=None: loaded)
    manager.change(run, snapshots=(0, 40))
    return f"run-{run}"


GERMAN = "Über allen Gipfeln ist Ruh, in allen Wipfeln spürest du kaum einen Hauch. " * 20


def test_a_run_on_ones_own_text_is_scored_on_its_held_out_tenth(
    manager: StageManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = trained_on(manager, monkeypatch, GERMAN)
    page = opened(model=name)
    sent = helpers.sent(page, "guessing")
    passage = sent["lead"] + "".join(sent["alphabet"][i] for i in sent["ids"])
    assert passage in GERMAN[int(0.9 * len(GERMAN)) :] and len(passage) > 50
    assert sent["key"][2] == "text" and "the held-out tenth of your own text" in helpers.unescaped(page)
    assert "at hand" not in helpers.unescaped(page) and "server" not in helpers.said(page, "caption")
    manager.mine = False  # who has a link to it does not read the text
    page = opened(model=name)
    sent = helpers.sent(page, "guessing")
    assert sent["key"][2] in ("shakespeare", "python")
    assert "The text that this model was trained on is not at hand." in helpers.unescaped(page)


@pytest.mark.parametrize("part", ["reader", "room"])
def test_a_foreign_alphabet_without_its_text_is_a_sentence(
    manager: StageManager, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    name = trained_on(manager, monkeypatch, "Πάντα ῥεῖ, καὶ οὐδὲν μένει. " * 20)
    manager.mine = False
    page = opened(model=name, you_part=part)
    share = re.search(
        r"This model knows (\d+)% of the characters", helpers.said(page, "info").replace("\\", "")
    )
    assert share and 0 < int(share[1]) < 50
    assert not any("guessing" in each.proto.component_name for each in page.get("bidi_component"))


def test_an_alphabet_larger_than_a_phone_shows_is_said_before_a_room_is_asked(
    manager: StageManager, monkeypatch: pytest.MonkeyPatch, rooms: Rooms
) -> None:
    text = "".join(chr(0x4E00 + i) for i in range(300)) * 5
    name = trained_on(manager, monkeypatch, text)
    assert helpers.sent(opened(model=name), "guessing")["key"][2] == "text", "a keyboard has them all"
    page = opened(model=name, you_part="room")
    assert "at most 256 characters, and this model has 300" in helpers.said(page, "info")
    assert "you_next" not in [button.key for button in page.button]


@pytest.mark.usefixtures("nowhere")
def test_without_the_models_text_another_is_guessed_and_that_is_said() -> None:
    page = opened()
    assert helpers.sent(page, "guessing")["key"][2] == "python"
    assert "It is scored on the Python manual, which it was not trained on" in helpers.unescaped(page)
