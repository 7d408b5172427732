"""The embeddings' page alone: the numbers of every view against the model."""

import math
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine.checkpoints import Checkpoint
from engine.config import ModelConfig, TrainConfig
from engine.data.tokenizers import bpe, token_bytes
from engine.model import build
from pages.input.embeddings import analogies, vocabulary
from runs.state import RunSpec
from studies.embeddings.analogies import Analogy, analogy, directions_of
from studies.embeddings.separation import case_cosines, separation
from studies.embeddings.table import random_shares, readout
from studies.embeddings.token_classes import token_classes
from studies.embeddings.token_map import frequency_links, nearest, token_map
from tests.pages.helpers import lacking, opened, ran, said, sent
from tests.pages.inside.models import SMALL as SMALL_MODEL
from tests.pages.inside.models import shipped
from tests.pages.stage import LETTERS, StageManager, view_of
from ui import memo, session
from ui.fit_text import FIRST_TEXT
from ui.text.numbers import minus

SMALL = {"d_model": 16, "n_layers": 1, "n_heads": 2, "context": 32}
TEXT = "First Citizen:\nBefore we proceed any further, hear me speak.\nAll:\nSpeak, SPEAK! 3 Queens & $Xz?;'-jvk\n"


@pytest.fixture
def manager(monkeypatch: pytest.MonkeyPatch) -> StageManager:
    """The tokens are counted in a text that is on every machine."""
    stage = StageManager()
    monkeypatch.setattr(session, "manager", lambda: stage)
    monkeypatch.setattr(vocabulary, "_text", lambda corpus: TEXT)
    memo.clear()
    return stage


CLASSIC = shipped()  # the model that the page opens with


def embeddings(**query: str) -> AppTest:
    return opened("input/embeddings", **{"measure": "true", **query})


def rows_of(model: Checkpoint) -> np.ndarray:
    return model.model.embedding.detach().numpy().astype(np.float64)


def counts_of(model: Checkpoint) -> np.ndarray:
    """How often each token of a model of letters occurs in the text."""
    return np.array([TEXT.count(model.tokenizer.decode([i])) for i in range(model.config.vocab_size)])


def with_run(manager: StageManager) -> str:
    spec = RunSpec(ModelConfig(30, **SMALL), TrainConfig(steps=40), corpus="python", name="mine")
    manager.views["r"] = view_of(spec, "r", "done", snapshots=(0, 20, 40))
    return "run-r"


def test_the_lookup_shows_the_rows_of_the_model(manager, drawn):
    page = embeddings(embed_view="lookup", embed_position="4", text=FIRST_TEXT, hand="true")
    matrix, told = rows_of(CLASSIC), said(page)
    ids = CLASSIC.tokenizer.encode(page.text_area(key="text").value)
    figure = drawn["embed_lookup"]
    assert np.allclose(figure.traces[0]["z"], matrix) and np.allclose(figure.traces[1]["z"], matrix[ids])
    boxes = [(shape["y0"], shape["y1"]) for shape in figure.layout["shapes"]]
    assert boxes == [(57.5, 58.5), (3.5, 4.5)]  # row 58 of E is “t”, and goes to position 4
    inside = np.quantile(np.abs(matrix), 0.995)
    assert f"the scale ends at ±{inside:.3f}" in told and figure.traces[0]["zmax"] == pytest.approx(inside)
    place = CLASSIC.model.positions.weight.detach().numpy().astype(np.float64)
    numbers = page.dataframe[0].value
    wanted = [matrix[58], place[4], matrix[58] + place[4]]
    assert list(numbers.index) == ["E[58]", "+ position 4", "= input to block 0"]
    assert np.allclose(numbers.to_numpy()[:, :6], [row[:6] for row in wanted], atol=1e-6)
    assert np.allclose(numbers["norm"], [np.sqrt((row**2).sum()) for row in wanted], atol=1e-5)
    assert "**“t” is id 58, so the model reads row 58 of the table $E$: 128 learned numbers.**" in told
    assert f"It occurs {FIRST_TEXT.count('t')} times in this text" in told
    assert page.metric[0].value == "0" and page.metric[1].value == f"{61 * 65 * 128:,}"
    back = readout(matrix, place[: len(ids)].astype(np.float32))
    assert f"Of all {65 * 61:,} sums" in told and f"recovers the token in **{back.tokens:.0%}**" in told
    row, position = (np.sqrt((table**2).sum(1)).mean() for table in (matrix[ids], place[: len(ids)]))
    assert f"**{65 * 128:,} parameters**" in told and f"61 rows, {len(set(ids))} of them distinct" in told
    assert (
        f"mean norm is {row:.2f} for token vectors, {position:.2f} for positions" in told and "*tied*" in told
    )


def test_the_map_is_that_of_the_model(manager, drawn):
    page = embeddings(embed_view="map", embed_token="T", embed_colour="frequency")
    counts, every = counts_of(CLASSIC), rows_of(CLASSIC)
    met, token = np.flatnonzero(counts), CLASSIC.tokenizer.encode("T")[0]
    assert 20 < len(met) < 65 and not counts[token], "it never occurs, and has its place all the same"
    found, told, figure = token_map(every, met), said(page), drawn["embed_map"]
    dots = {
        i: (x, y, colour, trace["name"])
        for trace in figure.traces[1:-1]
        for i, x, y, colour in zip(
            trace["customdata"], trace["x"], trace["y"], trace["marker"]["color"], strict=True
        )
    }
    assert set(dots) == {*met.tolist(), token}
    assert np.allclose([dots[i][:2] for i in (*met, token)], found.scores[[*met, token], :2], atol=1e-4)
    assert np.allclose([dots[i][2] for i in met], np.log10(1 + counts[met]), atol=1e-5)
    assert dots[CLASSIC.tokenizer.encode("e")[0]][3] == "vowels"
    assert [figure.layout[f"{a}axis"]["title"]["text"] for a in "xy"] == [
        f"component {i + 1} ({found.variance_shares[i]:.1%} of the variance)" for i in (0, 1)
    ]
    best, cosine = nearest(every, token, met, 10)
    near, lines = drawn["embed_near"], figure.traces[0]["x"]
    assert near.traces[0]["customdata"] == best.tolist()
    assert np.allclose(near.traces[0]["x"], cosine, atol=1e-5)
    assert np.allclose(lines[1::3], found.scores[best[:6], 0], atol=1e-4) and len(lines) == 18
    assert figure.traces[-1]["x"] == [pytest.approx(dots[token][0])] == [pytest.approx(lines[0])]
    names, classes = token_classes(token_bytes(CLASSIC.tokenizer))
    kin = sum(classes[i] == names.index("capitals") for i in best[:6])
    by_chance = 6 * (classes[met] == names.index("capitals")).mean()
    assert f"**{kin}** share its class (capitals); {by_chance:.1f} expected by chance" in told
    assert f"{found.hits(token, best[:6], met, 2)} are among the 6 nearest dots" in told
    kept, random = found.share(2), random_shares(len(met), every.shape[1])
    assert f"keeps {kept:.1%} of the variance and loses the other {1 - kept:.1%}" in told
    assert f"A random matrix of this shape would keep {random[:2].sum():.1%} in its first 2" in told
    bars, dotted = drawn["embed_shares"].traces
    assert np.allclose(bars["y"], found.principal.shares[:10], atol=1e-5)
    assert np.allclose(dotted["y"], random[:10], atol=1e-5)
    links = frequency_links(every, found.scores, np.log10(1 + counts), met)
    linked = ", ".join(f"component {i + 1}: {r:+.2f}" for i, r in enumerate(links.components))
    assert minus(f"{linked}; row norm: {links.lengths:+.2f}") in told
    assert f"**Component {links.best + 1} against frequency**" in told
    plotted = drawn["embed_frequency"].table
    assert np.allclose(np.array(plotted["score"])[met], found.scores[met, links.best], atol=1e-4)
    assert plotted["count"] == counts.tolist() and "It occurs 0 times in the text" in told
    assert f"{65 - len(met)} tokens that never occur in the training text are left out" in told


def test_a_cloud_holds_three_components_and_colours(manager):
    page = embeddings(embed_view="map", embed_picture="3-D", embed_colour="frequency", embed_token="e")
    counts, message = counts_of(CLASSIC), sent(page, "cloud")
    met = np.flatnonzero(counts)
    found = token_map(rows_of(CLASSIC), met)
    scores = found.scores[met]
    points = np.array(message["points"]).reshape(-1, 3)
    assert message["ids"] == met.tolist()
    assert np.allclose(points, scores / np.sqrt((scores**2).sum(1)).max(), atol=1e-3)
    assert message["words"][message["chosen"]] == "e" and len(message["near"]) == 6
    top = np.log10(1 + counts.max())
    assert message["shade"] == np.round(100 * np.log10(1 + counts[met]) / top).astype(int).tolist()
    assert message["names"][message["classes"][message["chosen"]]] == "vowels"
    assert f"keeps {found.share(3):.1%} of the variance" in said(page)


def test_a_click_chooses_a_token(manager):
    for figure in (vocabulary.MAP, vocabulary.NEAR, vocabulary.CLOUD):
        for clicked, word in (("44", "f"), ("900", "e")):
            picture = "3-D" if figure == vocabulary.CLOUD else "2-D"
            held = {figure: {"clicked": clicked}}
            page = opened("input/embeddings", held, embed_view="map", embed_picture=picture)
            assert page.selectbox(key="embed_token").value == word, (figure, clicked)


def test_the_classes_of_the_model_and_what_chance_gives(manager, drawn):
    page = embeddings(embed_view="map")
    counts, every = counts_of(CLASSIC), rows_of(CLASSIC)
    names, classes = token_classes(token_bytes(CLASSIC.tokenizer))
    met = np.flatnonzero(counts)
    found = separation(every, names, classes, counts=counts)
    within, across = found.within, found.across
    told = said(page)
    assert (
        f"**Same-class pairs are more similar than others, by {within - across:+.3f} in mean cosine;**"
        in told
    )
    assert f"${within:+.4f}$" in told and minus(f"${across:+.4f}$") in told
    free, like, truth = drawn["embed_null"].traces
    assert truth["x"] == [pytest.approx(within - across, abs=1e-5)]
    assert len(free["x"]) == len(like["x"]) == 100
    for row, dots in enumerate((free, like, truth)):  # beside its own name, not half way to another
        assert np.abs(np.array(dots["y"]) - row).max() <= 0.25
    chance, matched = np.array(free["x"]), np.array(like["x"])
    assert (chance < within - across).all() and "none of 100 shuffles reaches that" in told
    assert f"(the highest: {chance.max():+.3f})" in told
    assert f"score {matched.mean():+.3f} on average (highest {matched.max():+.3f})" in told
    verdict = "not the rest" if (matched < within - across).all() else "frequency alone can explain it"
    assert verdict in told
    fresh = separation(
        build(CLASSIC.config).embedding.detach().numpy(), names, classes, counts=counts, shuffles=100
    )
    assert minus(f"An untrained model of this shape scores {fresh.difference:+.3f}") in told
    by_class = page.dataframe[0].value.set_index("class")
    row, vowels = by_class.loc["vowels"], found.by_class["vowels"]
    assert row["tokens"] == vowels.tokens and row["its tokens"].split()[0] == "e"
    assert [row["within"], row["across classes"], row["difference"]] == [
        minus(f"{v:+.3f}") for v in (vowels.within, vowels.across, vowels.difference)
    ]
    assert found.most is not None and f"**{found.most[0]}**, {found.most[1]:+.3f}" in told
    heat = drawn["embed_cosines"]
    order = np.lexsort((met, classes[met]))
    z = np.array([[np.nan if v is None else v for v in row] for row in heat.traces[0]["z"]])
    off = ~np.eye(len(met), dtype=bool)
    centred = every[met] - every[met].mean(0)
    unit = centred / np.sqrt((centred**2).sum(1))[:, None]
    assert np.allclose(z[off], (unit @ unit.T)[order][:, order][off], atol=1e-5) and np.isnan(z[~off]).all()
    assert heat.table is not None and heat.table["token"][0] == "a"  # the vowels come first
    for note in heat.layout["annotations"]:  # a class's name stands over the middle of its columns
        assert note["x"] == np.flatnonzero(classes[met][order] == names.index(note["text"])).mean()
    borders = [line["x0"] for line in heat.layout["shapes"] if line["x0"] == line["x1"]]
    assert borders == (np.flatnonzero(np.diff(classes[met][order])) + 0.5).tolist()
    decoded = [CLASSIC.tokenizer.decode([i]) for i in met]
    pairs = [
        (met[i], met[decoded.index(c.upper())])
        for i, c in enumerate(decoded)
        if c.islower() and c.upper() in decoded
    ]
    cases, others = case_cosines(centred, np.searchsorted(met, pairs))
    wanted = f"mean cosine {cases:+.3f} over {len(pairs)} pairs; with another letter's capital: {others:+.3f}"
    assert minus(wanted) in minus(told)


@pytest.mark.usefixtures("measured_anew")
def test_the_course_over_a_run_is_measured(manager, drawn):
    page = embeddings(model=with_run(manager), step="20")
    assert "do not stand out" in said(page)  # the stage's models are random
    config, counts = ModelConfig(30, **SMALL), np.array([TEXT.count(c) for c in LETTERS[:30]])
    names, classes = token_classes([c.encode() for c in LETTERS[:30]], 30)
    tables = [build(config, seed=step).embedding.detach().numpy() for step in (0, 20, 40)]
    wanted = [separation(table, names, classes, counts=counts) for table in tables]
    free, like, line = drawn["embed_course"].traces
    assert line["x"] == [0, 20, 40] and np.allclose(line["y"], [one.difference for one in wanted], atol=1e-6)
    for values, share, kind in (
        (free["y"][:3], 0.025, "chance"),
        (free["y"][:2:-1], 0.975, "chance"),
        (like["y"][:3], 0.025, "matched"),
    ):
        assert np.allclose(values, [np.quantile(getattr(one, kind), share) for one in wanted])
    assert drawn["embed_course"].layout["shapes"][0]["x0"] == 20


def test_a_model_that_went_astray_is_told_in_a_sentence(manager):
    name = with_run(manager)
    manager.scale = lambda step: 1.0 if step == 0 else math.nan
    page = embeddings(embed_view="map", model=name)
    assert "training diverged" in said(page) and not page.error
    page = embeddings(embed_view="map", model=name, step="0")  # only the newest step went astray
    assert "This projection keeps" in said(page)


def test_two_tokens_that_look_alike_are_told_apart():
    tokenizer = bpe.train("a b a b", 257)
    words = vocabulary.words_of(tokenizer, 259)
    assert len(set(words)) == 259 and words[-2:] == ("[mask]", "[mask] #258")


def test_letters_as_they_come_out(manager: StageManager, drawn: Any) -> None:
    page = opened("input/embeddings", embed_view="analogies", model=SMALL_MODEL)
    a, b, c, d = (CLASSIC.tokenizer.encode(letter)[0] for letter in ("a", "A", "e", "E"))
    true = analogy(directions_of(CLASSIC.model.embedding.detach().numpy()), (a, b, c), d)
    assert drawn["embed_analogy_bars"].table["id"] == true.ids.tolist()
    assert f"“E” ranks **{analogies.ordinal(true.rank)}**" in said(page)
    page.pills(key=analogies.EXAMPLE).set_value("S − s + t").run()
    assert [page.text_input(key=box).value for box in analogies.BOXES] == ["s", "S", "t", "T"]
    page.text_input(key="embed_d").input("s").run()
    assert "one of the three" in said(page) and not page.exception
    for box, typed in zip(analogies.BOXES, ("", "🙂", "ab", "x" * 900), strict=True):
        page.text_input(key=box).input(typed)
    assert not lacking(said(ran(page)), "not a token", "2 tokens here")


def test_a_rerun_goes_through_the_vocabulary_for_no_analogy_that_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page = opened("input/embeddings", embed_view="analogies", model=SMALL_MODEL)
    computed: list[Any] = []
    monkeypatch.setattr(analogies, "analogy", lambda *of: computed.append(of) or analogy(*of))
    monkeypatch.setattr(vocabulary.np, "isfinite", lambda matrix: computed.append(matrix) or np.array(True))
    page.run()
    assert not computed


@pytest.mark.parametrize(
    ("rank", "near_c", "verdict"),
    [(2, 9, "so the arithmetic helps"), (3, 3, "not needed"), (7, 4, "so the arithmetic hurts")],
)
def test_an_analogy_is_told_with_both_places(rank: int, near_c: int, verdict: str) -> None:
    found = Analogy((0, 1, 2), 3, np.array([1, 4, 3]), np.array([0.9, 0.5, 0.4]), rank, near_c)
    assert not lacking(
        analogies.answer(found, ["man", "king", "woman", "queen"], ["king", "prince", "queen"]),
        "**“king” − “man” + “woman” is nearest to “king”, one of its own inputs.** Excluding",
        f"“queen” ranks **{analogies.ordinal(rank)}**; among the neighbours of “woman” it ranks",
        f"it ranks {analogies.ordinal(near_c)}, ",
        verdict,
    )
