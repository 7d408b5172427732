"""The ladder's rungs: one idea each, the lecture's counts, what its page says; and the races that come with the app."""

from __future__ import annotations

import ast
import inspect
import json
import math
import sys
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from types import FrameType
from typing import Any

import numpy as np
import pytest
import torch

from engine.config import ModelConfig, TrainConfig
from engine.data.corpora import from_text
from engine.errors import CheckpointError, ConfigError
from engine.model import build, count_parameters
from engine.parts.registry import parts_of
from runs.state import Status
from studies.costs.ledger import ledger
from studies.experiments import bigram_expectations, lab_races, ladder
from studies.experiments.lab_races import RUNGS, SEEDS, rung_losses, seeds_of, shipped, specs_of
from studies.experiments.ladder import Climbed
from studies.experiments.ladder_gains import CLEAR, Finish, Idea, finish, idea, separate
from studies.experiments.race_recipes import NORM_DEPTHS, QUESTIONS
from studies.experiments.race_table import Standing
from studies.lab.faults import PARTS
from studies.tasks.ladder import KINDS, LINES, lines, self_term
from studies.tasks.rungs import DEPTHS, FIRST_FOUR, LADDER, LECTURE, LECTURE_TRAINING, Published
from studies.tasks.text_statistics import counted, expected
from studies.tokens import published
from tests.engine.cases import for_each
from tests.engine.saved_for_backward import kept

CORPUS = from_text("the quick brown fox jumps over the lazy dog. " * 60)
LOOKS = {"eval_every": 2, "eval_tokens": 128, "snapshot_every": 2, "sample_every": 3}
SHORT = replace(LECTURE_TRAINING, steps=6, batch_size=2, **LOOKS)
TEXT = from_text("she saw the ship that the others wished she had not shown them " * 40)
IDS = (3, 1, 4, 1, 5, 9, 2, 6)
LINES_OF = {"unigram": 3.35, "bigram": 2.48}
STORED = [name for name in QUESTIONS if (lab_races.SHIPPED / f"{name}.json").exists()]


def test_the_lecture_s_counts_of_parameters() -> None:
    """V 65, d 256: 2 V d = 33,280 for the two tables; a matrix of attention d^2 = 65,536; a layer with its
    network 11 d^2.
    """
    by_hand = {
        **dict.fromkeys(("last", "mean", "similarity"), 33_280),
        **{"shared": 33_280 + 2 * 65_536, "values": 33_280 + 3 * 65_536},
        **{f"attention-{n}": 33_280 + 3 * n * 65_536 for n in (1, 2, 4, 8)},
        **{f"block-{n}": 33_280 + 11 * n * 65_536 for n in (1, 2, 4, 8)},
        "block-4-sinusoidal": 33_280 + 44 * 65_536,
    }
    found = {name: count_parameters(p.rung.model, parts_of(p.rung.parts)) for name, p in LECTURE.items()}
    assert found == by_hand
    said = {name: p.parameters for name, p in LECTURE.items() if p.parameters}
    assert said == {name: found[name] for name in said}
    assert set(said.values()) == {33_280, 164_352, 229_888, 426_496, 819_712, 1_606_144}


@for_each("name", LADDER)
def test_a_rung_is_the_one_below_and_one_idea(name: str) -> None:
    rung = LADDER[name]
    rung.model.validate()
    if rung.below is None:
        assert name == "last"
        return
    below = LADDER[rung.below]
    differ = dict(rung.model.to_dict().items() - below.model.to_dict().items())
    assert differ == dict(rung.changes)
    assert differ or rung.parts != below.parts
    assert len(differ) <= 1 or name in ("modern", "experts")


def test_the_mixture_on_top_computes_what_the_rung_below_does_with_twice_the_parameters() -> None:
    below, above = LADDER["modern"].model, LADDER["experts"].model
    assert count_parameters(above) > 2 * count_parameters(below)
    assert ledger(above).flops().forward == pytest.approx(ledger(below).flops().forward, rel=0.02)
    said = idea("experts", rung_losses())
    assert said and said.verdict == "alike" and said.seeds == 3


RAW: list[dict[str, Any]] = [
    {}, {"output_projection": False}, {"position": "rope"}, {"qk_norm": True},
    {"qk_norm": True, "qk_gain": True, "position": "rope"},
    {"norm": "none", "wiring": "none", "n_heads": 1, "output_projection": False, "ffn": "none"},
]  # fmt: skip


@for_each("mixer", ["shared_qk", "attention"])
@for_each("given", RAW, ids=str)
def test_attention_without_values_costs_what_it_says(mixer: str, given: dict[str, Any]) -> None:
    parts = PARTS["raw_values"]
    shape = {"vocab_size": 61, "context": 48, "d_model": 48, "n_layers": 3, "n_heads": 4, "mixer": mixer}
    config = ModelConfig(**(shape | given))
    assert ledger(config, parts=parts).total == count_parameters(config, parts)
    for batch, dtype in ((1, "float32"), (2, "float32"), (2, "bfloat16")):
        said = ledger(config, parts=parts).memory(dtype, batch=batch).activations
        assert kept(config, batch, 48, dtype, parts) == pytest.approx(said, rel=0.01)


def test_attention_without_values_needs_heads_that_are_slices_of_the_stream() -> None:
    for wrong in ({"n_kv_heads": 1}, {"d_head": 8}):
        with pytest.raises(ConfigError, match="slices of the stream"):
            build(ModelConfig(vocab_size=9, d_model=64, n_heads=4, **wrong), parts=PARTS["raw_values"])


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> dict[str, Published]:
    two = {name: LECTURE[name] for name in ("last", "values")}
    found = {name: replace(p, rung=replace(p.rung, model=p.rung.at(65, 16, 8))) for name, p in two.items()}
    monkeypatch.setattr(ladder, "LECTURE", found)
    return found


def climbed(name: str, work: Path, config: TrainConfig = SHORT) -> dict[str, Any]:
    ladder.train_rung(name, CORPUS, work, config)
    return json.loads((work / f"{name}.json").read_text())


def test_a_rung_that_was_broken_off_goes_on_to_the_same_end(
    small: dict[str, Published], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "whole").mkdir()
    whole = climbed("values", tmp_path / "whole")
    assert [point[0] for point in whole["curve"]] == [0, 2, 4, 6] and whole["of"] == 6

    real = ladder.train

    def broken(*args: Any, **more: Any) -> Any:
        for record in real(*args, **more):
            if getattr(record, "step", 0) == 5:
                raise KeyboardInterrupt
            yield record

    monkeypatch.setattr(ladder, "train", broken)
    with pytest.raises(KeyboardInterrupt):
        climbed("values", tmp_path)
    found = ladder.collect(tmp_path, tmp_path, CORPUS, SHORT)
    half = found.rungs["values"]
    assert half.steps == (0, 2, 4) and not half.finished and half.whole is None
    assert half.off is None and half.agrees is None and found.missing == ("last",)
    monkeypatch.setattr(ladder, "train", real)
    again = climbed("values", tmp_path)
    for key in ("curve", "whole", "text", "parameters"):
        assert again[key] == whole[key]


def test_what_the_app_reads_is_what_was_trained(small: dict[str, Published], tmp_path: Path) -> None:
    story = climbed("last", tmp_path)
    found = ladder.collect(tmp_path, tmp_path, CORPUS, SHORT).rungs["last"]
    assert found.finished and found.whole == story["whole"]
    again = ladder.collect(tmp_path / "nothing", tmp_path, CORPUS, SHORT)
    assert again.rungs["last"] == found, "what was stored and is not in the work folder stays"
    points = zip(found.steps, found.train, found.validation, strict=True)
    assert list(map(list, points)) == story["curve"]
    assert found.off == pytest.approx(found.train[-1] - 2.45)
    assert found.agrees is (abs(found.train[-1] - 2.45) <= 0.05)
    lowest = min(found.validation)
    assert found.best == (found.steps[found.validation.index(lowest)], lowest)
    with pytest.raises(CheckpointError, match=r"studies\.experiments ladder"):
        ladder.shipped(tmp_path / "no.json")


def climb(name: str, losses: list[float], **about: Any) -> Climbed:
    steps = tuple(range(0, 10 * len(losses), 10))
    return Climbed(name, 1, steps, tuple(losses), tuple(losses), about.pop("of", steps[-1]), 1.0, **about)


def test_the_rung_that_stands_for_its_seeds_is_the_median_of_those_that_held() -> None:
    held = [climb("block-2", [4, end], init="torch", seed=seed) for seed, end in enumerate((1.7, 1.5, 1.6))]
    runs = (
        climb("block-2", [4, 1.0]),  # the text's weights give way to the code's
        *held,
        climb("block-2", [4, 1.2, 9.0], init="torch", seed=3),
        climb("block-2", [4, 0.5], init="torch", biases=True),
        climb("attention-8", [4, 2.0, 1.8, 7.0, 5.0]),
        climb("attention-8", [4, 2.0], seed=1, of=40, overflow=15),
        climb("block-8", [100], of=40, overflow=7),
        climb("block-1", [4, 2.5], of=40),  # broken off
    )
    found = ladder.Experiment(runs, 100, {})
    assert found.rungs["block-2"] == held[2] and found.rungs["block-2"].agrees
    assert [each.diverged for each in runs] == [None] * 4 + [20, None, 30, 15, 7, None]
    assert found.rungs["attention-8"] is runs[6] and found.lost == ("attention-8", "block-8")
    assert not found.rungs["block-1"].finished and found.compared == ("block-2",)


def test_a_training_whose_gradient_overflows_says_where(small: dict[str, Published], tmp_path: Path) -> None:
    story = climbed("values", tmp_path, replace(SHORT, learning_rate=1e6))
    assert 0 < story["overflow"] < 6 and "whole" not in story
    assert ladder.collect(tmp_path, tmp_path, CORPUS, SHORT).rungs["values"].diverged is not None


def test_a_corpus_in_gpt2_s_tokens_has_the_same_two_parts() -> None:
    if not published.here("gpt2"):
        pytest.skip("gpt2's tokens are not on this machine")
    corpus = ladder.in_gpt2_tokens(TEXT)
    for part, ids in (
        (corpus.text[: len(TEXT.train)], corpus.train),
        (corpus.text[len(TEXT.train) :], corpus.validation),
    ):
        assert corpus.tokenizer.decode(ids.tolist()) == part
        assert int(corpus.token_characters[ids.numpy()].sum()) == len(part)
    assert corpus.vocab_size == 50_257


@for_each("d_model", [16, 256])
@for_each("seed", [0, 1])
def test_a_vector_scores_the_root_of_its_width_with_itself(d_model: int, seed: int) -> None:
    """By hand, from the same first weights: E E^T / sqrt(d), mask, softmax."""
    rung = LADDER["similarity"]
    table = build(rung.at(10, len(IDS), d_model), seed, init="normal").embedding.detach().double().numpy()
    x = table[list(IDS)]
    scores = x @ x.T / math.sqrt(d_model)
    below = np.tril(np.ones((8, 8), bool))
    weights = torch.from_numpy(np.where(below, scores, -np.inf)).softmax(1).numpy()
    same = np.equal.outer(IDS, IDS)
    found = self_term("similarity", d_model, IDS, seed)
    np.testing.assert_allclose(found.scores, scores, rtol=1e-4, atol=1e-4)
    assert found.self_score == pytest.approx(np.trace(scores) / 8, rel=1e-4)
    assert found.other_score == pytest.approx(math.sqrt((scores[~same] ** 2).mean()), rel=1e-4)
    assert found.self_weight == pytest.approx((weights * same)[1:].sum() / 7, rel=1e-4)
    assert found.root == math.sqrt(d_model)


@for_each("seed", range(3))
def test_one_matrix_keeps_the_trouble_and_two_take_it_away(seed: int) -> None:
    """The lecture's numbers at d = 256: about 16 with itself, O(1) with others, everything on the diagonal."""
    raw, one, two = (self_term(kind, 256, IDS, seed) for kind in KINDS)
    for found in (raw, one):
        assert 13 < found.self_score < 19 and 0.7 < found.other_score < 2 and found.self_weight > 0.99
    assert abs(two.self_score) < 2 and 0.7 < two.other_score < 2 and two.self_weight < 0.6


@for_each("given", ["h", "sh", "th"])
def test_what_follows_is_counted(given: str) -> None:
    text = TEXT.tokenizer.decode(TEXT.train.tolist())
    after = Counter(text[i + len(given)] for i in range(len(text) - len(given)) if text.startswith(given, i))
    found = counted(TEXT, given)
    for token in range(TEXT.vocab_size):
        letter = TEXT.tokenizer.decode([token])
        assert found[token] == pytest.approx(after[letter] / after.total())


@for_each("rung", ["last", "positions"])
def test_what_a_model_expects_is_its_mean_probability_there(rung: str) -> None:
    model = build(LADDER[rung].at(TEXT.vocab_size, 16, 8), init="normal").eval()
    tokens = TEXT.validation.tolist()
    text = TEXT.tokenizer.decode(tokens)
    windows = [tokens[end - 16 : end] for end in range(16, len(text)) if text[end - 2 : end] == "th"]
    assert len(windows) > 5
    with torch.inference_mode():
        found = model(torch.tensor(windows))[:, -1].double().softmax(-1).mean(0)
    np.testing.assert_allclose(expected(model, TEXT, "th"), found, atol=1e-6)
    assert not expected(model, TEXT, "dd").any()


def test_a_table_of_pairs_gives_one_answer_and_positions_two() -> None:
    """What the page says of th and sh, on what is shipped."""
    found = bigram_expectations.shipped()
    assert found.apart("last") == pytest.approx(0, abs=1e-9)
    assert found.apart("attention-1") < 0.05 < 0.15 < found.apart("positions") < 1
    for source in ("text", "positions"):
        assert found.of(source, "th", "e") > 1.3 * found.of(source, "sh", "e")
    for given in bigram_expectations.SINGLE:  # the table learned the text's own shares
        for letter in found.top(given, 5):
            assert found.of("last", given, letter) == pytest.approx(found.of("text", given, letter), abs=0.03)
    one, other = (np.asarray(found.text[given]) for given in bigram_expectations.DOUBLE)
    assert found.apart("text") == pytest.approx(np.maximum(one - other, 0).sum(), abs=1e-3)


def test_pairs_are_measured_and_stored_as_they_are(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    short = replace(bigram_expectations.TRAINING, steps=3, batch_size=2, eval_tokens=64)
    monkeypatch.setattr(bigram_expectations, "TRAINING", short)
    monkeypatch.setattr(bigram_expectations, "SINGLE", ("t", "e"))
    monkeypatch.setattr("engine.data.corpora.load", lambda name: TEXT)
    bigram_expectations.main(["--into", str(tmp_path)])
    found = bigram_expectations.shipped(tmp_path / "races" / "pairs.json")
    assert "".join(found.letters) == TEXT.tokenizer.decode([*range(TEXT.vocab_size)])
    np.testing.assert_allclose(found.text["th"], counted(TEXT, "th"), atol=1e-5)
    table = bigram_expectations.measured("last", TEXT)
    np.testing.assert_allclose(found.rungs["last"]["sh"], table.shares["sh"], atol=1e-5)
    assert found.losses["last"] == pytest.approx(table.loss, abs=1e-4) and found.top("th", 1) == ("e",)


def ran(name: str) -> set[tuple[str, str]]:
    rung, found = LADDER[name], set()
    model = build(rung.at(9, 6, 16), parts=parts_of(rung.parts)).eval()

    def note(frame: FrameType, event: str, _: Any) -> None:
        found.add((frame.f_code.co_filename, frame.f_code.co_qualname))

    sys.setprofile(note)
    try:
        model(torch.tensor([[1, 2, 3]]))
    finally:
        sys.setprofile(None)
    return found


@for_each("name", LADDER)
def test_the_lines_of_a_rung_run_in_it_and_not_below(name: str) -> None:
    rung = LADDER[name]
    key = "block-1" if name.startswith("block-") else name
    sources = map(inspect.unwrap, LINES.get(key, ()))
    shown = {(inspect.getsourcefile(each), each.__qualname__) for each in sources}
    here = ran(name)
    assert shown <= here
    if rung.below is None:
        return
    new = shown - ran(rung.below)
    if name != "output":  # whose one line asks whether there is a matrix
        assert new == shown
    source = lines(name)
    assert bool(source) == bool(shown) and '"""' not in source
    assert bool(source) != (bool(rung.changes) and set(rung.changes) <= {"n_layers", "n_heads"})
    ast.parse(source)


def line(
    name: str, loss: float, step: int = 300, bits: float = math.nan, status: Status = "finished"
) -> Standing:
    return Standing(name, name, status, step, 300, loss, loss, True, bits, 1, 1, 1, 1.0, step)


def test_an_idea_is_what_it_saves() -> None:
    """A verdict needs ranges that do not overlap; of a single seed, CLEAR."""
    over = {
        "last": (2.5, 2.51, 2.49), "mean": (3.2, 3.1, 3.3), "similarity": (2.5, 2.6, 2.4),
        "one-matrix": (2.45, 2.41, 2.5), "two-matrices": (9.0, 2.0, 8.0),
    }  # fmt: skip
    bought = idea("similarity", over)
    assert bought == Idea("similarity", (3.2, 3.1, 3.3), (2.5, 2.6, 2.4))
    assert (bought.before, bought.after, bought.seeds) == (3.2, 2.5, 3)
    verdicts = {name: idea(name, over).verdict for name in over if name != "last"}  # type: ignore[union-attr]
    assert verdicts == {
        "mean": "worse", "similarity": "better", "one-matrix": "alike", "two-matrices": "exploded",
    }  # fmt: skip
    assert idea("last", over) is None and idea("values", over) is None
    assert Idea("x", (2.0,), (2.0 + CLEAR / 2,)).verdict == "alike"
    assert Idea("x", (2.0,), (2.0 + CLEAR * 2,)).verdict == "worse"


def test_a_race_is_ranked() -> None:
    found = finish([line("a", 2.6), line("b", 2.3), line("c", 3.4), line("d", math.nan)], "nats", LINES_OF)
    assert isinstance(found, Finish)
    assert [each.name for each in found.order] == ["b", "a", "c"]
    assert found.best.name == "b" and found.worst.name == "c" and found.apart == pytest.approx(1.1)
    assert found.clear and found.complete
    assert [each.name for each in found.below_bigram] == ["b"]
    assert found.stalled == {"c": 1} and found.seeds == 1
    counted = LINES_OF["unigram"]
    around = [line("near", counted - 0.1), line("below", counted - 0.2), line("lost", counted + 1.1)]
    edges = finish(around, "nats", LINES_OF)
    assert edges is not None and edges.stalled == {"near": 1}
    going = line("b", 2.61, step=150, status="running")
    half = finish([line("a", 2.6), going, line("c", 99.0)], "nats", LINES_OF)
    assert half is not None and not half.complete and half.stalled == {} and half.early == ()
    stopped = finish([line("a", 2.6), line("b", 2.61, step=150, status="stopped")])
    assert stopped is not None and stopped.complete and [each.name for each in stopped.early] == ["b"]
    close = finish([line("a", 2.6), line("b", 2.61)])
    assert close is not None and not close.clear and close.below_bigram == () and close.stalled == {}
    assert finish([line("a", 2.6)]) is None
    assert finish([line("a", 2.6), line("b", 4.2, step=0)]) is None, "nobody is ahead before learning"
    bits = finish([line("a", 2.0, bits=3.0), line("b", 4.0, bits=2.9)], "bits")
    assert bits is not None and bits.best.name == "b" and bits.apart == pytest.approx(0.1)


def test_other_seeds_decide_the_order_and_the_claim() -> None:
    """A run counts by the median over its seeds; two are apart where their ranges are."""
    race = [line("lucky", 2.3), line("steady", 2.4)]
    repeats = [line("lucky", 3.4), line("steady", 2.41), line("lucky", 3.4), line("steady", 2.39)]
    found = finish(race, "nats", LINES_OF, repeats)
    assert found is not None and found.seeds == 3
    assert [each.name for each in found.order] == ["steady", "lucky"]
    assert (found.loss(found.best), found.loss(found.worst)) == (2.4, 3.4)
    assert found.over(race[0]) == (2.3, 3.4, 3.4) and found.stalled == {"lucky": 2}
    assert not found.clear, "their ranges overlap"
    apart = finish(race, "nats", LINES_OF, [line("lucky", 2.31), line("steady", 2.39)])
    assert apart is not None and apart.clear


def test_losses_of_rungs_are_those_of_the_race_by_seed() -> None:
    found, race = rung_losses(), shipped("ladder")
    assert list(found) == list(LADDER)
    views = [view for view in (*race.runs, *race.repeats) if view.name == "Positions"]
    ends = [view.history.evaluations[-1].validation_loss for view in views]
    assert found["positions"] == tuple(ends) and len(ends) == len(SEEDS)


@for_each("name", [RUNGS, *STORED])
def test_what_is_shipped_is_what_the_button_starts(name: str) -> None:
    found = shipped(name)
    specs = specs_of(name)
    assert len(found.runs) == len(specs) and "studies.experiments races" in found.made
    for view, spec in zip(found.runs, specs, strict=True):
        assert view.spec.same_recipe(spec) and view.name == spec.name
        assert view.status in ("finished", "failed")
        if view.status == "finished":
            last = view.history.evaluations[-1]
            assert last.step == spec.train.steps and last.complete


def test_a_stored_race_is_left_as_it_is_and_the_log_says_so(tmp_path, caplog) -> None:
    file = tmp_path / "heads.json"
    file.write_bytes((lab_races.SHIPPED / "heads.json").read_bytes())
    with caplog.at_level("INFO", logger="glassformer.races"):
        lab_races.train_race("heads", tmp_path)
    assert caplog.messages == [f"heads: {file} holds this recipe, left as it is; delete it to train again"]
    assert file.read_bytes() == (lab_races.SHIPPED / "heads.json").read_bytes()


def test_the_first_race_has_an_order_that_holds_over_seeds() -> None:
    """average > bigram > full block > positions, each by more than the seeds differ."""
    assert FIRST_FOUR == ("mean", "last", "block-4", "positions")
    over = rung_losses()
    for above, below in pairwise(FIRST_FOUR):
        assert min(over[above]) - max(over[below]) > 0.05
    bigram = 2.482
    assert max(over["block-4"]) < bigram < min(over["last"])


@for_each("name", [RUNGS, *STORED])
def test_a_shipped_race_has_all_its_seeds(name: str) -> None:
    race, seeds = shipped(name), seeds_of(name)
    assert len(seeds) >= 3
    for view in race.runs:
        over = race.over_seeds(view.name)
        assert [each.spec.train.seed for each in over] == list(seeds)
        for each in over[1:]:
            spec = each.spec
            quiet = replace(view.spec.train, seed=spec.train.seed, sample_every=0, snapshot_every=0)
            assert spec.same_recipe(replace(view.spec, train=quiet))
            assert each.history.evaluations[-1].complete


# What the page says of a rung against the one below it (pages/lab/ladder/rungs.md).
BETTER = (
    *("similarity", "one-matrix", "values", "attention-1", "block-1", "block-2", "block-4", "block-8"),
    *("output", "positions", "modern"),
)
WORSE = ("mean", "heads", "norm")


@for_each("name", [name for name in LADDER if name != "last"])
def test_a_rung_beats_the_one_that_the_page_says_it_beats(name: str) -> None:
    found = idea(name, rung_losses())
    assert found is not None and found.seeds == len(SEEDS)
    assert found.verdict == ("better" if name in BETTER else "worse" if name in WORSE else "alike")


def test_depth_pays_with_feed_forward_networks_alone() -> None:
    """What the page and the course say of attention ×1 to ×8 and of full blocks ×1 to ×8."""
    over = rung_losses()
    attention, blocks = ([over[f"{kind}-{depth}"] for depth in DEPTHS] for kind in ("attention", "block"))
    bigram = over["last"]
    assert all(abs(median(losses) - median(bigram)) < 0.03 for losses in attention)
    for fewer, more in pairwise(blocks):
        assert separate(fewer, more) and median(more) < median(fewer)
    doubled = median(over["block-4"]) - median(over["block-8"])
    placed = median(over["output"]) - median(over["positions"])
    assert placed == pytest.approx(doubled, abs=0.03), "about as much as twice the blocks"


def test_contestants_differ_in_what_is_asked_alone() -> None:
    def differ(name: str) -> set[str]:
        made = [one.model.to_dict() | one.train.to_dict() for one in QUESTIONS[name].contestants]
        return {key for key, value in made[0].items() if any(each[key] != value for each in made)}

    fields = {"heads": {"n_heads"}, "widths": {"d_ff"}, "shapes": {"n_layers", "d_model"}, "inits": {"init"}}
    fields |= {"cuts": {"vocab_size", "tokenizer"}, "parts": {"position", "norm", "ffn", "qk_norm"}}
    fields |= {f"norms-{depth}": {"wiring", "warmup_steps"} for depth in NORM_DEPTHS}
    assert {name: differ(name) for name in fields} == fields
    for depth in NORM_DEPTHS:
        assert {each.model.n_layers for each in QUESTIONS[f"norms-{depth}"].contestants} == {depth}


def test_deep_or_wide_has_as_many_parameters_in_its_blocks() -> None:
    """12 L d^2 in attention and networks: 196,608."""
    shapes = QUESTIONS["shapes"].contestants
    assert [each.title for each in shapes] == ["1 block, 128 wide", "4 blocks, 64 wide", "16 blocks, 32 wide"]
    for each in shapes:
        found = ledger(each.model)
        norms = 2 * each.model.n_layers * each.model.d_model
        assert found.in_blocks - norms == 12 * each.model.n_layers * each.model.d_model**2 == 196_608
