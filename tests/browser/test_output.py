"""The output's pages in a real Chromium: the sampler answers without the server, caches are filled, trees grow."""

import re
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from playwright.sync_api import expect

from engine.data import corpora
from pages.output.sampling import held_out
from studies.generation.guessing_game import Turn, turn_nats
from tests.browser.conftest import reruns, settled
from tests.browser.visit import linked
from tests.pages.inside.models import shipped
from ui.training_step import NEWEST


def test_a_slider_answers_at_once_stands_in_the_link_and_cut_tokens_say_by_which_stage(tab, app_url):
    address = "sampling?model=shakespeare-classic&sampling_top_k=3&sampling_top_p=1&sampling_temperature=1.2"
    linked(tab, f"{app_url}/{address}", ".gf-sampler[data-stages]")
    expect(tab.get_by_label("Temperature, exactly")).to_have_value("1.2")
    cut = tab.locator(".gf-sampler-cell.gf-cut")
    assert cut.count() == 7  # ten rows, three of them kept
    expect(cut.first).to_have_text("✕ top-k")
    sampler = tab.locator(".gf-sampler").element_handle()
    slider = tab.get_by_label("Temperature", exact=True)
    # Within one task of the browser nothing can have come from the server.
    before, after = slider.evaluate("""async (s) => {
        const box = document.querySelector('.gf-sampler'), before = box.dataset.stages
        s.value = '1.9'; s.dispatchEvent(new Event('input', { bubbles: true }))
        await new Promise(requestAnimationFrame); await new Promise(requestAnimationFrame)
        return [before, box.dataset.stages] }""")
    assert before != after
    expect(tab).to_have_url(re.compile("sampling_temperature=1.9"))
    settled(tab)
    assert sampler.evaluate("node => node.isConnected")


def lit(page, panel: int, row: int) -> list[float]:
    """Opacity of the first cells of a row of a panel's picture: 1 for computed, less for read from the
    cache.
    """
    return page.evaluate(
        """([panel, row]) => {
          const canvas = document.querySelectorAll('.gf-kv canvas')[panel], scale = canvas.width / canvas.clientWidth
          const rows = Number(document.querySelector('.gf-kv input').max) + 1, columns = 17 + rows - 1
          const cell = canvas.clientWidth / columns, high = Math.min(16, Math.max(3, 170 / rows)), context = canvas.getContext('2d')
          return Array.from({ length: columns }, (_, i) => context.getImageData((i + 0.5) * cell * scale, (row + 0.5) * high * scale, 1, 1).data[3] / 255)
        }""",
        [panel, row],
    )


@pytest.mark.parametrize(
    ("address", "name"),
    [
        pytest.param("generation?generation_view=cache&kv_length=12&kv_step=", "Step", id="kv"),
        pytest.param(
            "positions?positions_view=sinusoidal&sinusoid_part=clock&sinusoid_length=32&sinusoid_width=8&clock_position=",
            "Position",
            id="clock",
            marks=pytest.mark.exhaustive,
        ),
        pytest.param(
            "families?families_view=three&families_show=live&live_step=",
            "Writing step",
            id="live",
            marks=pytest.mark.exhaustive,
        ),
    ],
)
def test_a_player_adopts_the_step_of_a_link_and_of_back(tab, app_url, address, name):
    """A player keeps its step in the address by itself, and so did not hear of another address of its view."""
    linked(tab, f"{app_url}/{address}4")
    slider = tab.get_by_role("slider", name=name, exact=True)
    expect(slider).to_have_value("4")
    tab.keyboard.press("Shift")  # a person's link is an entry of the history
    linked(tab, f"{app_url}/{address}2")
    expect(slider).to_have_value("2")
    slider.press("ArrowRight")
    expect(slider).to_have_value("3")
    tab.wait_for_url(re.compile(f"{address.rpartition('&')[2]}3"))
    tab.go_back()
    expect(slider).to_have_value("4")
    settled(tab)
    expect(slider).to_have_value("4")


def test_the_keyboard_steps_without_the_server(tab, app_url):
    reads = "model=shakespeare-classic&text=KING+RICHARD+II%3A%0A"
    tab.goto("about:blank")  # a player that is there already does not play by itself
    linked(tab, f"{app_url}/generation?generation_view=cache&kv_length=12&{reads}", ".gf-kv canvas")
    tab.get_by_role("button", name="Pause").click()  # it plays by itself
    settled(tab)
    before = reruns(tab)
    slider = tab.get_by_role("slider", name="Step", exact=True)
    slider.focus()
    slider.press("Home")
    now, total = tab.locator(".gf-kv-now"), tab.locator(".gf-kv-sum")
    expect(now.nth(0)).to_contain_text("17 positions computed, ")  # the prompt has to be read either way
    assert now.nth(0).text_content() == now.nth(1).text_content()
    slider.press("ArrowRight")
    slider.press("ArrowRight")
    expect(now.nth(0)).to_contain_text("This step: 1 position computed, 18 read from the cache")
    expect(now.nth(1)).to_contain_text("This step: 19 positions computed, ")
    expect(total.nth(0)).to_contain_text("So far: 19 positions")
    expect(total.nth(1)).to_contain_text("So far: 54 positions")  # 17 + 18 + 19
    with_cache, without = lit(tab, 0, 1), lit(tab, 1, 1)
    assert all(0.2 < x < 0.4 for x in with_cache[:17]) and with_cache[17] == 1
    assert all(x == 1 for x in without[:18]) and without[18] == 0
    expect(tab.locator(".gf-kv-formula")).to_contain_text("4 · 2 · 4 · 32 · 19 · 4 = 77,824 bytes")
    assert tab.locator(".gf-kv").get_attribute("data-bytes") == str(4 * 2 * 4 * 32 * 19 * 4)
    assert tab.locator(".gf-kv-slots .gf-kv-computed").count() == 1
    assert tab.locator(".gf-kv-slots .gf-kv-read").count() == 18
    texts = tab.locator(".gf-kv-text").all_text_contents()
    assert texts[0] == texts[1] and len(texts[0]) == 17 + 3
    expect(tab.locator(".gf-kv-same")).to_have_text("✓ Identical so far: 3 of 3 tokens.")
    tab.get_by_role("button", name="One step back").click()
    expect(tab).to_have_url(re.compile(r"kv_step=1(&|$)"))
    assert reruns(tab) == before, "the server was asked"


def test_a_short_game_is_played_in_the_browser_and_compared_on_the_same_characters(tab, app_url):
    """Typed, and pressed on the screen's keys; what comes next is nowhere on the page before it is guessed."""
    passage = studied("shakespeare-classic", 3)
    alphabet, ids = passage.alphabet, passage.ids
    first = "".join(alphabet[i] for i in ids[:4])
    wrong = next(character for character in "zqjx" if character not in first)
    linked(
        tab,
        f"{app_url}/sampling?sampling_view=you&you_part=reader&you_seed=3&model=shakespeare-classic",
        ".gf-play-text",
    )
    game, before = tab.locator(".gf-play"), reruns(tab)
    game.get_by_role("button", name="Start the clock").click()
    expect(game.locator(".gf-play-input")).to_be_focused()
    shown = tab.evaluate("document.querySelector('.gf-play').innerText.replace(/\\W/g, '')")
    after = re.sub(r"\W", "", "".join(alphabet[i] for i in ids[:40]))
    assert after not in shown and len(after) > 20
    tab.keyboard.type(wrong)
    expect(game.locator(".gf-play-number")).to_have_text("Guess 2 of 5.")
    tab.keyboard.type(first[0])
    expect(game.locator(".gf-play-said")).to_contain_text("guess 2")
    tab.keyboard.press("p")  # a letter of the game, and no stage
    assert not tab.evaluate("document.documentElement.classList.contains('gf-stage')")
    tried = 0 if first[1] == "p" else 1
    if tried:
        game.get_by_role("button", name="Show it").click()
        expect(game.locator(".gf-play-input")).to_be_focused()
    if first[2].isupper():
        game.get_by_role("button", name="Capital letters").click()
    name = {" ": "space", "\n": "line break"}.get(first[2], first[2])
    game.get_by_role("group", name="Characters").get_by_role("button", name=name, exact=True).click()
    expect(game.locator(".gf-play-count")).to_have_text("3 characters")
    game.get_by_role("button", name="End the game").click()
    turns = [Turn(2, True), Turn(1, tried == 0), Turn(1, True)]
    by_guesses = {name: turn_nats(each[:3], len(alphabet)).mean() for name, each in passage.turns.items()}
    by_guesses["you"] = turn_nats(turns, len(alphabet)).mean()
    bars = game.locator(".gf-play-bars li")
    expect(bars).to_have_count(6)
    found = [line.split() for line in bars.all_inner_texts()]
    assert [name for name, *_ in found] == ["uniform", "unigram", "bigram", "trigram", "model", "you"]
    for name, *losses in found:
        both = [passage.nats[name][:3].mean()] if name in passage.nats else []
        both += [by_guesses[name]] if name in by_guesses else []
        assert losses == [f"{loss:.2f}" for loss in both], name
    claim = (
        f"You needed {by_guesses['you']:.1f} nats per character; guessing in the same way, the trigram needs"
        f" {by_guesses['trigram']:.1f} and the model {by_guesses['model']:.1f}, on the same 3 characters."
    )
    expect(tab.locator(".st-key-answer")).to_contain_text(claim)
    assert reruns(tab) == before, "no guess is sent to the server"
    expect(game.get_by_role("button", name="Start the clock")).to_be_hidden()
    played = bars.all_inner_texts()
    tab.get_by_text("The room", exact=True).click()
    tab.locator(".gf-class").wait_for()
    tab.get_by_text("One reader", exact=True).click()
    expect(bars).to_have_text(played, use_inner_text=True)
    modern = studied("shakespeare-modern", 3)
    tab.goto(tab.url.replace("shakespeare-classic", "shakespeare-modern"))
    expect(bars.nth(4)).to_contain_text(f"{modern.nats['model'][:3].mean():.2f}")
    assert bars.nth(5).inner_text() == played[5] and bars.nth(4).inner_text() != played[4], "the same game"
    by_modern = turn_nats(modern.turns["model"][:3], len(alphabet)).mean()
    expect(tab.locator(".st-key-answer")).to_contain_text(
        f"the model {by_modern:.1f}, on the same 3 characters"
    )
    game.get_by_role("button", name="Play with another passage").click()
    expect(game.get_by_role("button", name="Start the clock")).to_be_visible()
    expect(tab).to_have_url(re.compile("you_seed=4"))
    expect(tab.locator(".st-key-answer")).to_contain_text("You have 2 minutes")


class HeldOut(NamedTuple):
    alphabet: list[str]
    ids: tuple[int, ...]
    nats: dict[str, np.ndarray]
    turns: dict[str, list[Turn]]


def studied(name: str, seed: int) -> HeldOut:
    """The passage of a seed, as the server draws it."""
    source = "python" if corpora.shakespeare_path() is None else "shakespeare"
    subject = SimpleNamespace(key=(name, NEWEST), corpus=source, **vars(shipped(name)))
    found = held_out.studied(subject, seed)
    tokenizer = subject.tokenizer
    alphabet = [tokenizer.decode([i]) for i in range(tokenizer.vocab_size)]
    return HeldOut(alphabet, found.passage.ids, dict(found.nats), dict(found.turns))
