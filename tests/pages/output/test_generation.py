"""The Generation page, token by token, as a beam search, and with a KV cache: what the browser may ask for,
links and limits.
"""

import json
import math
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine import checkpoints
from engine.config import ModelConfig, SampleConfig
from engine.data.progress import finish
from engine.data.tokenizers.char import CharTokenizer
from engine.model import build
from engine.recording import record
from engine.sample import generate
from pages.output.generation import beam_search as beam_view
from pages.output.generation import beside_a_sample, step_by_step
from pages.output.generation import session as sessions
from pages.output.generation import token_by_token as generation
from pages.output.generation.link import LINK, link, parse
from pages.output.generation.message import message
from pages.output.generation.records import BATCH, BRANCHES, Limits, Session, reason
from pages.output.generation.session import answer, begin, resting, token_of
from studies.costs import presets
from studies.generation import degeneration
from studies.generation.beam import beam_search
from studies.generation.branches import Tree
from studies.generation.decoding_comparison import ending_with, rivals
from studies.generation.kv_cache import Speed, compare
from studies.generation.surprise import surprise
from tests.engine.cases import for_each
from tests.engine.helpers import loud, tiny
from tests.pages import helpers
from tests.pages.helpers import chosen, clicked, lacking, ran
from tests.pages.helpers import said as sentences
from tests.pages.inside.models import shipped
from ui import memo
from ui.fit_text import show_token
from ui.model_bar import Subject
from ui.site import ROOT
from ui.text.numbers import flop, gigabytes, percent, scientific

pytestmark = pytest.mark.usefixtures("manager", "measured_anew")
WARM = SampleConfig(temperature=1.0, seed=3)
LIMITS = Limits(100, 400)
KING = "KING RICHARD II:\n"
PICK = {"id": "b-1", "have": BATCH, "leaf": BATCH - 1, "at": 5, "do": "pick", "after": 4, "token": 7}


def opened(**query: str) -> AppTest:
    return helpers.opened("output/generation", **{"measure": "true", "hand": "true"} | query)


def session_of(page: AppTest) -> Session:
    return next(reversed(page.session_state[generation.SESSIONS].values()))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Speed is measured shortly, and nothing is kept: readers of these tests have one name and many models."""
    monkeypatch.setattr(step_by_step, "SPEED_SECONDS", 0.02)
    memo.clear()
    yield
    memo.clear()


def reader(vocab: str = "abcdefghijk", ids: tuple[int, ...] = (1, 2, 3)) -> Subject:
    model = loud(tiny(), seed=3, factor=4.0)
    return Subject(("test", -1), "Test", model, CharTokenizer(vocab), "bcd", ids, None)


class Browser:
    """Asks as the writer does: one thing at a time, with what it has."""

    def __init__(self, subject: Subject, limits: Limits = LIMITS, tree: str = "", at: str = "") -> None:
        self.subject, self.limits, self.asks = subject, limits, 0
        self.session = begin("name", subject, WARM, limits, tree, at)
        self.nodes: list[Any] = []
        self.words: dict[str, Any] = {}
        self.told = self._take({})

    def ask(self, do: str, **rest: Any) -> dict[str, Any]:
        self.asks += 1
        ask = {
            "id": f"me-{self.asks}",
            "session": "name",
            "have": len(self.nodes),
            "leaf": self.told["leaf"],
            "at": self.told["at"],
            "do": do,
        } | rest
        answer(self.session, ask, self.subject, WARM, self.limits)
        self.told = self._take(ask)
        return self.told

    def _take(self, ask: dict[str, Any]) -> dict[str, Any]:
        told = json.loads(json.dumps(message(self.session, ask, self.subject, self.limits), allow_nan=False))
        assert told["from"] == len(self.nodes)
        self.nodes += json.loads(told["nodes"])
        self.words |= told["words"]
        for node in self.nodes:
            assert {str(node[1]), str(node[2]), *(str(t) for t in node[6][::3])} <= set(self.words)
        return told

    def path(self) -> list[int]:
        found, place = [], self.told["leaf"]
        while place is not None and place >= 0:
            found.append(self.nodes[place][1])
            place = self.nodes[place][0]
        return found[::-1]


def test_what_is_written_for_one_reader_is_there_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    first = Browser(reader())
    first.ask("more")
    monkeypatch.setattr(sessions, "grown", lambda *_, **__: pytest.fail("written twice"))
    second = Browser(reader())
    second.ask("more")
    assert second.path() == first.path() and len(second.path()) == 2 * BATCH
    monkeypatch.undo()
    other = Browser(reader(ids=(1, 2, 4)))
    assert other.nodes != first.nodes[:BATCH], "with its own probabilities"


def test_the_first_batch_is_there_at_once_and_the_rest_comes_when_it_is_asked_for():
    browser = Browser(reader())
    assert len(browser.nodes) == BATCH and browser.told["fresh"]
    assert browser.told["ends"][str(browser.told["leaf"])] == [BATCH, ""]
    while not browser.told["ends"][str(browser.told["leaf"])][1]:
        browser.ask("more")
    assert browser.path() == list(generate(browser.subject.model, (1, 2, 3), 100, WARM))
    assert browser.told["ends"][str(browser.told["leaf"])] == [100, "length"] and not browser.told["fresh"]
    browser.ask("more")  # nothing is left to be written
    assert len(browser.nodes) == 100


def test_an_ask_is_done_once_and_a_page_that_was_away_gets_everything_again():
    browser = Browser(reader())
    browser.ask("more")
    size = len(browser.session.tree)
    again = {"id": "me-1", "session": "name", "have": 0, "leaf": browser.told["leaf"], "at": 0, "do": "more"}
    for ask in (again, again | {"session": "another", "id": "me-7"}):
        answer(browser.session, ask, browser.subject, WARM, LIMITS)
        assert len(browser.session.tree) == size
    assert len(json.loads(message(browser.session, {}, browser.subject, LIMITS)["nodes"])) == size
    assert message(browser.session, ask, browser.subject, LIMITS)["from"] == 0


def test_a_pick_begins_a_branch_and_deleting_it_leads_back():
    browser = Browser(reader())
    first, leaf = browser.path(), browser.told["leaf"]
    other = next(t for t in range(11) if t != first[9])
    told = browser.ask("pick", after=8, token=other)
    assert (told["move"], told["at"], len(told["leaves"])) == (1, 10, 2)
    assert browser.path()[:10] == [*first[:9], other] and len(browser.path()) > 10
    assert link(browser.session)[:2] == (f"{BATCH}_{len(browser.path())}-10.{other}", "1.10")
    back = browser.ask("pick", after=8, token=first[9])  # the token of the first branch: it is there
    assert back["leaf"] == leaf and len(back["leaves"]) == 2
    told = browser.ask("delete", branch=leaf)
    assert told["leaves"] != [leaf] and len(told["leaves"]) == 1 and browser.path()[9] == other
    assert browser.ask("delete", branch=told["leaves"][0])["leaves"] == told["leaves"]  # the last one stays


def test_a_token_can_be_typed():
    subject, spaced = reader(), reader("abcdefghi \n")
    assert token_of("c", subject) == (2, "")
    assert token_of("ca", subject)[0] == 2 and "2 tokens" in token_of("ca", subject)[1]
    assert token_of("", subject)[0] == token_of("☃", subject)[0] == -1 and "☃" in token_of("☃", subject)[1]
    for shown, meant in (("␣", " "), ("⏎", "\n")):
        assert token_of(shown, spaced)[0] == spaced.tokenizer.encode(meant)[0]
    browser = Browser(subject)
    assert browser.ask("pick", after=None, text="k")["at"] == 1 and browser.path()[0] == 10
    assert "no token" in browser.ask("pick", after=None, text="🙂")["said"]


NONSENSE: list[dict[str, Any]] = [
    {"do": "pick", "after": 99, "token": 1},
    {"do": "pick", "after": "x", "token": 1},
    {"do": "pick", "after": 2, "token": 11},
    {"do": "pick", "after": 2, "token": -1},
    {"do": "pick", "after": 2, "token": math.nan},
    {"do": "delete", "branch": 1},
    {"do": "fly"},
    {"do": "more", "leaf": 10**9},
    {"do": "more", "leaf": True, "at": "9"},
    {"at": 1e300},
    {"have": -1},
    {"have": 10**9},
    {"leaf": [1]},
]


@for_each("ask", NONSENSE)
def test_what_makes_no_sense_is_left_undone(ask):
    subject = reader()
    session = begin("name", subject, WARM, LIMITS, "", "")
    before = session.tree
    whole = {"id": "x-1", "session": "name", "have": BATCH, "leaf": BATCH - 1, "at": 3, "do": "look"} | ask
    answer(session, whole, subject, WARM, LIMITS)
    told = message(session, whole, subject, LIMITS)
    json.dumps(told, allow_nan=False)
    assert 0 <= told["from"] <= BATCH and 0 <= session.at <= BATCH
    assert session.tree == before or whole["do"] == "more"


@for_each("text", ["", "-", "12-3.", "12-3.99", "12-5.1-3.2", "12-0.1", "9999999", "1²", "5" * 5000, "nan"])
def test_a_strangers_branches_are_bounded(text):
    for picks, length in parse(text, 11, LIMITS):
        assert 0 < length <= LIMITS.most and all(0 < depth <= length and token < 11 for depth, token in picks)


def test_branches_and_the_tree_are_bounded():
    subject = reader()
    browser = Browser(subject, Limits(20, 20))
    for token in [*range(11)] * 3:
        browser.ask("pick", after=browser.asks % 7, token=token)
    assert len(browser.session.tree) <= browser.limits.tree + 20 and len(browser.told["leaves"]) <= BRANCHES
    assert "delete" in browser.told["said"] or any(end[1] == "full" for end in browser.told["ends"].values())
    many = Browser(subject, Limits(3, 400))
    for depth in range(3):
        for token in range(11):
            many.ask("pick", after=None if depth == 0 else depth - 1, token=token)
    assert len(many.told["leaves"]) == BRANCHES and "24 branches" in many.told["said"]


def test_a_link_brings_the_tree_back():
    browser = Browser(reader())
    for after, token in ((5, 0), (5, 7), (20, 4)):
        browser.ask("pick", after=after, token=token)
    browser.ask("look", at=14)
    branches, place, out = link(browser.session)
    other = Browser(reader(), LIMITS, branches, place)
    while other.told["todo"] and other.asks < 10:
        other.ask("more")
    assert link(other.session) == (branches, place, out) and out == 0 and other.told["at"] == 14
    texts = [{s.tree.tokens(leaf) for leaf in s.tree.leaves()} for s in (browser.session, other.session)]
    assert texts[0] == texts[1] and other.path() == browser.path()


def test_a_long_link_leaves_branches_out_and_says_so():
    tree, subject = Tree((1,)), reader()
    from studies.generation.branches import pick

    for first in range(11):
        place = None
        for _ in range(30):
            token = (first + (0 if place is None else 1)) % 11
            tree, place = pick(tree, subject.model, WARM, place, token)
    session = Session("n", tree, [b""] * 11, leaf=tree.leaves()[-1], at=4)
    branches, place_, out = link(session)
    assert len(branches) <= LINK and out > 0 and place_.endswith(".4")
    kept = parse(branches, 11, Limits(30, 400))
    assert kept[int(place_.split(".")[0])][0] == tree.picks(session.leaf)
    assert len(kept) + out == len(tree.leaves())
    assert str(out) in generation.TEXT("left out", count=out)


def test_a_text_stops_after_a_string_and_goes_on_when_it_is_taken_away():
    browser = Browser(reader())
    text = "".join(browser.subject.vocabulary[t] for t in browser.path())
    stop = text[7:9]
    where, path = text.index(stop) + 2, browser.session.tree.path(browser.session.leaf)
    assert reason(path, browser.session.parts, Limits(100, 400, stop)) == (where, "stop")
    assert reason(path, browser.session.parts, Limits(4, 400, stop)) == (4, "length")
    browser.limits = Limits(100, 400, stop)
    told = browser.ask("more")
    assert told["ends"][str(told["leaf"])] == [where, "stop"] and len(browser.nodes) == BATCH
    shown = resting(browser.session, browser.limits, False)[0]
    assert [node.token for node in shown] == browser.path()[:where]
    browser.limits = LIMITS
    assert len(json.loads(browser.ask("more")["nodes"])) == BATCH


def test_what_is_said_is_about_the_tokens_that_the_player_shows():
    browser = Browser(reader())
    assert resting(browser.session, LIMITS, False)[1] == BATCH, "nothing is shown yet: of all that is there"
    browser.ask("more", at=20)
    assert resting(browser.session, LIMITS, True)[1] == BATCH, "it plays: as it was said before"
    browser.ask("look", at=46)
    assert resting(browser.session, LIMITS, False)[1] == 46


def test_the_page_writes_the_first_tokens_and_says_what_they_cost(drawn):
    page = opened(generation_view="tokens")
    session, said, figure = session_of(page), sentences(page), drawn["generation_surprise"]
    path = session.tree.path(session.leaf)
    found = surprise(path, 65)
    first = sum(node.token == node.alternatives[0][0] for node in path)
    assert len(session.tree) == BATCH and first and "You picked" not in said
    assert not lacking(
        said,
        f"The **first {BATCH} tokens** average {found.mean[-1]:.2f} nats each: perplexity",
        f"**{math.exp(found.mean[-1]):.1f}**, out of 65 possible tokens",
        f"token at {first / BATCH:.0%} of the positions; the least expected was “",
        f"”, token {found.worst + 1}, with p = {found.p[found.worst]:.2%}",
    )
    assert figure.traces[0]["y"] == pytest.approx(found.nats.tolist(), abs=1e-4)
    assert figure.traces[1]["y"] == pytest.approx(found.mean.tolist(), abs=1e-4)
    assert figure.table["p"] == pytest.approx(found.p.tolist(), abs=1e-4)
    assert figure.table["q_with_settings"] == [node.q for node in path]
    assert figure.table["id"] == [node.token for node in path] == figure.table["drawn_id"]


def test_a_tree_written_again_has_a_name_of_its_own():
    one, two = (session_of(opened(generation_tree=tree)).name for tree in ("40", "20_40-3.5"))
    assert one != two and one.partition(".")[0] == two.partition(".")[0]


def test_settings_put_back_bring_the_tree_back(monkeypatch: pytest.MonkeyPatch):
    page = opened()
    first = session_of(page)
    monkeypatch.setattr(generation, "_asked", lambda: PICK | {"session": first.name})
    ran(page)
    assert len(first.tree.leaves()) == 2 and "-6.7" in str(page.query_params["generation_tree"])
    chosen(page, "generation_temperature", 1.5)
    assert session_of(page) is not first and len(session_of(page).tree.leaves()) == 1
    assert "generation_tree" not in page.query_params
    chosen(page, "generation_temperature", 0.8)
    assert session_of(page) is first and "-6.7" in str(page.query_params["generation_tree"])


@pytest.mark.parametrize("length, words", [("-5", "nothing is written"), ("1000000", "at most 1,000")])
def test_lengths_are_bounded_and_named(length, words):
    page = opened(generation_length=length)
    assert words in sentences(page) and len(session_of(page).tree) <= BATCH
    assert length != "-5" or not session_of(page).tree.nodes


def test_the_settings_are_those_of_the_writing():
    session = session_of(opened(generation_temperature="1.5", generation_top_k="7", generation_seed="5"))
    config, prompt = SampleConfig(temperature=1.5, top_k=7, top_p=0.95, seed=5), session.tree.prompt
    wrote = session.tree.tokens(session.leaf)[len(prompt) :]
    assert wrote == tuple(generate(shipped().model, prompt, BATCH, config))


def entries(page: AppTest):
    return page.dataframe[0].value


def found_by(depth: int, width: int, stop: str = "", penalty: float = 1.0):
    """What the engine finds where the page looks: (model, beam, rivals)."""
    kept = shipped()
    ids, ends = tuple(kept.tokenizer.encode(KING)), ending_with(kept.tokenizer, stop, 65)
    found = finish(
        beam_search(kept.model, ids, depth, width, length_penalty=penalty, stop=ends, shown=width + 2)
    )
    return kept, found, rivals(kept.model, ids, found, depth, ends, 0)


def beside(**query: str) -> AppTest:
    """The part once both texts are written: until then a bar stands in their place."""
    page = opened(generation_view="beam", beam_part="sample", **query)
    for _ in range(300):
        if len(page.code) >= 2:
            return page
        time.sleep(0.1)
        page.run()
    raise AssertionError("the texts were never written")


def test_a_beam_that_runs_in_circles_stands_beside_a_sample_and_the_author(drawn, shakespeare):
    prompt = beside_a_sample.LOOPS
    page = beside(text=prompt, beam_width="8")
    kept = shipped()
    ids = kept.tokenizer.encode(prompt)
    after = shakespeare.text.split(prompt)[1][:108]
    assert prompt not in kept.tokenizer.decode(shakespeare.train.tolist())
    beam = finish(beam_search(kept.model, ids, 108, 8))
    texts = [kept.tokenizer.decode(list(beam.path(beam.winner))), None, after]
    shown = [each.value for each in page.code[:3]]
    assert shown[0] == texts[0].strip("\n") and shown[2] == after.strip("\n")
    nats = pd.DataFrame(drawn["beam_beside"].table)
    assert nats["beam"].sum() == pytest.approx(-beam.nodes[beam.winner].total, rel=1e-4)
    with torch.inference_mode():
        read = kept.model(torch.tensor([kept.tokenizer.encode(prompt + after)]))[0].double().log_softmax(-1)
    wanted = [-read[len(ids) - 1 + i, token].item() for i, token in enumerate(kept.tokenizer.encode(after))]
    assert nats["author"].tolist() == pytest.approx(wanted, abs=1e-4)

    def circles(text: str) -> float:
        runs = [text[at : at + 8] for at in range(len(text) - 7)]
        return sum(run in runs[:at] for at, run in enumerate(runs)) / len(runs)

    assert circles(texts[0]) > 0.2 > circles(after)
    said = f"**{percent(circles(texts[0]), 1)}** repeats what it has just written, of the author's"
    assert f"{said} **{percent(circles(after), 1)}**." in sentences(page)


@pytest.mark.parametrize("name", beside_a_sample.LOOPING)
def test_the_text_that_is_offered_makes_its_models_loop(name, shakespeare):
    kept = checkpoints.load(ROOT / "checkpoints" / name)
    ids = kept.tokenizer.encode(beside_a_sample.LOOPS)
    length = min(108, kept.model.config.context - len(ids))
    both = finish(degeneration.compare(kept.model, kept.tokenizer, ids, length, beside_a_sample.WIDE, 0))
    assert both.beam.repeats > 0.2 > both.sample.repeats + 0.1


def test_a_small_difference_is_called_none_and_width_one_greedy():
    alike = degeneration.Continuation("abcdefgh ijklmnop", np.ones(3))
    loop = degeneration.Continuation("well my lord " * 4, np.ones(3))
    said = beside_a_sample.answer(degeneration.Compared(alike, alike, None), 4)
    assert "hardly repeats itself" in said
    said = beside_a_sample.answer(degeneration.Compared(loop, alike, None), 1)
    assert "of the greedy text" in said and "of this sample **0%**" in said


def test_a_prompt_of_nobody_has_no_author_and_a_full_context_no_room():
    assert len(beside(text="xyzzy").code) == 2
    assert "leaves no room" in sentences(opened(generation_view="beam", beam_part="sample", text="ab " * 60))


def test_a_wider_beam_is_more_probable_and_the_seed_moves_the_sample(drawn):
    page = opened(generation_view="beam", beam_width="8", beam_depth="16")
    found, said = entries(page), sentences(page)
    kept, beam, three = found_by(16, 8)
    texts = (three.winner, three.greedy, three.sample)
    for shown, text in zip(found.to_dict("records"), texts, strict=True):
        assert (shown["log-probability"], shown["tokens"]) == (text.total, 16)
        assert (shown["per token"], shown["probability"]) == (text.per_token, text.probability)
        assert shown["text"] == show_token(kept.tokenizer.decode(list(text.tokens)))
    assert list(found["method"]) == ["beam, width 8", "greedy (width 1)", "a sample, temperature 1, seed 0"]
    better, rarer = (three.winner.times(other) for other in texts[1:])
    assert not lacking(
        said,
        f"**Not always: the beam's text is {better:,.1f} times as probable as the greedy one.** At some step",
        f"is {rarer:,.0f} times less probable than the winner",
    )
    table = drawn["beam_figure"].table
    for column in ("total", "score", "log_probability"):
        assert table[column] == [getattr(node, column) for node in beam.nodes]
    assert table["kept"] == [str(node.in_beam) for node in beam.nodes]
    chosen(page, "beam_seed", 3)
    assert entries(page)["text"][2] != found["text"][2]


@pytest.mark.parametrize(
    ("stop", "sign", "said"),
    [
        ("space", "␣", "and shorter**: 2 tokens against 5. Each further token"),
        ("line", "⏎", "**Width 4 finds the same text as greedy decoding**"),
    ],
)
def test_every_stop(stop: str, sign: str, said: str, drawn):
    page = opened(generation_view="beam", beam_stop=stop, beam_penalty="0", beam_width="4", beam_depth="8")
    found, three = entries(page), found_by(8, 4, beam_view.STOPS[stop], 0.0)[2]
    assert said in sentences(page)
    texts = (three.winner, three.greedy, three.sample)
    assert list(found["tokens"]) == [len(t.tokens) for t in texts]
    assert found["log-probability"].tolist() == [t.total for t in texts]
    if stop == "space":  # at penalty 0 a finished short word beats what goes on
        assert found["text"][0].endswith("␣")
    assert sign not in found["text"][1][:-1]
    traces = drawn["beam_figure"].traces
    gaps = [t for t in traces if t["mode"] == "lines" and t["line"]["width"] == 11]
    scores = [t for t in traces if t["mode"] == "text"]
    assert scores
    for gap, score in zip(gaps, scores, strict=True):  # no edge strikes a number through
        assert np.add(gap["x"][::3], gap["x"][1::3]) / 2 == pytest.approx(score["x"])
        assert gap["y"][::3] == gap["y"][1::3] == score["y"]


def test_a_long_text_says_what_is_dropped():
    said = sentences(opened(generation_view="beam", text="ab " * 60, beam_depth="20"))
    assert "context of 128: the first 19 tokens of the text are dropped" in said


def small(monkeypatch: pytest.MonkeyPatch, **fields) -> None:
    sizes = {"n_layers": 1, "d_model": 16, "n_heads": 4, "d_ff": 32}
    classic = presets.PRESETS["classic"]
    config = replace(classic, model=ModelConfig(**classic.model.to_dict() | sizes | fields))
    monkeypatch.setitem(presets.PRESETS, "classic", config)


def test_both_write_the_same_and_the_bytes_agree(drawn):
    page = opened(generation_view="cache", kv_length="12", kv_part="steps")
    said, figure, known = sentences(page), drawn["kv_flops"], shipped()
    pairs = compare(known.model, known.tokenizer.encode(KING), 12, SampleConfig(temperature=0.0))
    cached, uncached = [p.flops for p in pairs], [p.flops_without for p in pairs]
    assert [trace["y"] for trace in figure.traces] == [uncached, cached]
    assert figure.table["total_with_cache"] == [sum(cached[: i + 1]) for i in range(12)]
    assert figure.table["computed"] == [17] + [1] * 11
    assert figure.table["computed_without"] == list(range(17, 29))
    total = f"{flop(sum(cached))} with the cache, {flop(sum(uncached))} without"
    last = f"{flop(cached[-1])} with the cache and {flop(uncached[-1])} without"
    assert "✗" not in said and "was full" not in said
    assert not lacking(
        said,
        "✓ **12 of 12 tokens are identical.**",
        "✓ **Bytes agree.**",
        "17 tokens the formula gives 69,632 bytes",  # 4 · 2 · 4 · 32 · 17 · 4
        "and the filled part of the cache's tensor has 69,632",
        f"is larger, {4 * 2 * 4 * 32 * 64 * 4:,} bytes in all",  # of 64 positions
        "one position is computed instead of 28",
        f"**In total {total}: {sum(uncached) / sum(cached):.1f} times as much.**",
        f"The last one costs {last}, {uncached[-1] / cached[-1]:.0f} times as much",
        f"at most {scientific(max(p.difference for p in pairs))}:",
    )


def test_what_does_not_agree_is_said_not_to(monkeypatch: pytest.MonkeyPatch):
    """The page's own checks compare two things."""
    monkeypatch.setattr(step_by_step, "filled_bytes", lambda *_: (69_631, 70_000))
    real = step_by_step.totals
    monkeypatch.setattr(step_by_step, "totals", lambda pairs: replace(real(pairs), same=3))
    said = sentences(opened(generation_view="cache", kv_length="4"))
    assert not lacking(said, "✗ **Bytes differ.**", "✗ **3 of 4 tokens are identical.**", "rounding decided")


def test_past_the_context_the_page_says_what_happens(monkeypatch: pytest.MonkeyPatch):
    small(monkeypatch, context=20)
    settings = {"kv_length": "16", "kv_temperature": "1.5", "kv_seed": "3"}
    said = sentences(opened(generation_view="cache", model="untrained-classic", **settings))
    # 17 tokens are given; the 4th written one fills the context, and the last 10 of 21 stay.
    full = "Before step 4 the context of 20 tokens was full"
    assert not lacking(said, full, "the token at position 11 is now at 0", "✓ **16 of 16 tokens")


@pytest.mark.parametrize(
    ("dtype", "number", "heads"), [("float32", 4, 4), ("bfloat16", 2, 1), ("float8", 1, 2)]
)
def test_bytes_for_every_number_of_heads_and_kind_of_number(dtype: str, number: int, heads: int, drawn):
    sizes = {"kv_dtype": dtype, "kv_heads": str(heads), "kv_tokens": "1024"}
    said = sentences(opened(generation_view="cache", kv_part="bytes", **sizes))
    size = 4 * 2 * heads * 32 * 1024 * number
    assert not lacking(
        said,
        f"= 4 · 2 · {heads} · 32 · 1,024 · {number} = **{size:,} bytes = {gigabytes(size)}**",
        f"in {dtype}: {size:,} bytes",
        "✓",
        f"has the shape 4 × 2 × 1 × {heads} × 1,024 × 32",
        f"**With {heads} of 4 key-value heads the cache of 1,024 tokens takes {gigabytes(size)}",
        "70B: 80 blocks, 8 of 64",
    )
    assert "✗" not in said and ("times less" in said) == (heads != 4)
    assert heads == 4 or f", {4 // heads} times less than with multi-head attention.**" in said
    own, published = drawn["kv_heads_figure"], drawn["kv_published"]
    assert own.traces[0]["x"] == [4 * 2 * n * 32 * 1024 * number for n in (4, 2, 1)]
    layers, widths, shared = (32, 80, 32, 32), (32, 64, 32, 32), (8, 8, 8, 8)
    for trace, ways in zip(published.traces, (widths, shared, (1, 1, 1, 1)), strict=True):
        expected = [n * 2 * heads * 128 * 1024 * number for n, heads in zip(layers, ways, strict=True)]
        assert trace["x"] == published.table[f"{trace['name']}_bytes"] == expected
    assert published.table["has"] == ["MHA", "GQA", "GQA", "GQA"]


def test_the_answer_is_how_far_a_model_without_the_mask_moves_them(drawn):
    """The same weights in a model of another configuration: nothing is edited."""
    page = opened(generation_view="cache", kv_part="why", text="ROMEO:\nWhat")
    on, off = (float(m.value) for m in page.metric)
    table, traces = drawn["kv_changes"].table, drawn["kv_changes"].traces
    columns = ("key_mask_on", "value_mask_on", "key_mask_off", "value_mask_off")
    assert [table[name] for name in columns] == [trace["y"] for trace in traces]
    assert on < 1e-4 and off == float(f"{max(table['key_mask_off'] + table['value_mask_off']):.2g}")
    assert table["key_mask_off"][0] < 1e-5 < 0.1 < min(table["key_mask_off"][1:])  # layer 0 has mixed nothing
    found = shipped()
    blind = build(replace(found.model.config, causal=False), 0).eval()
    blind.load_state_dict(found.model.state_dict())
    ids = found.tokenizer.encode("ROMEO:\nWhat")
    with torch.inference_mode():
        ids = [*ids, int(found.model(torch.tensor([ids]))[0, -1].argmax())]

    def moved(model) -> np.ndarray:  # (layer,)
        before, after = record(model, ids[:-1]), record(model, ids)
        pairs = [[f"blocks.{layer}.{name}" for name in ("k", "v")] for layer in range(4)]
        return np.array([max(np.abs(after[n][:, :-1] - before[n]).max() for n in names) for names in pairs])

    kept, lost = moved(found.model), moved(blind)
    assert kept.max() < 1e-5 and lost[1:].min() > 0.1
    told = re.search(
        r"values by \*\*(\S+)\*\*, at most rounding.* they change by \*\*(\S+)\*\*, so no cache .* the same \((\S+)\)",
        sentences(page),
    )
    assert told is not None and float(told[1]) < 1e-5 and float(told[3]) < 1e-5
    assert float(told[2]) == pytest.approx(lost.max(), rel=0.05)
    assert f"any key or value of the first {len(ids) - 1} tokens when one more is read" in sentences(page)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"causal": False}, "later tokens change earlier keys"),
        ({"mixer": "none", "ffn": "gelu"}, "or it has no mixer"),
    ],
)
def test_a_model_that_can_keep_nothing_gets_a_sentence(fields, said: str, monkeypatch: pytest.MonkeyPatch):
    small(monkeypatch, **fields)
    page = opened(generation_view="cache", model="untrained-classic")
    assert said in sentences(page) and not page.metric


def test_the_speed_is_measured_once_for_a_model_until_asked_again(monkeypatch: pytest.MonkeyPatch):
    asked = []

    def speed(*_: Any) -> Speed:
        asked.append(1)
        return Speed(7, 2, 1000.0, 250.0 - len(asked), 4.0, 9.0)

    monkeypatch.setattr(step_by_step, "speed", speed)
    page = opened(generation_view="cache", kv_length="8")
    chosen(page, "kv_length", 9)
    assert len(asked) == 1 and page.metric[1].value == "249"
    assert not lacking(sentences(page), "2 blocks of 7 tokens", "speed-up would be 9.0")
    clicked(page, "kv_again")
    assert len(asked) == 2 and page.metric[1].value == "248"
