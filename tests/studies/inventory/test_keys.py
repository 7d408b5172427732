"""Each question's right option in each of its cases, worked out a second time: by hand, from the stored files, or by another
way through the model.
"""

from __future__ import annotations

import hashlib
import json
import math
from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch

from engine import checkpoints
from engine.data import corpora
from engine.data.tokenizers import bpe
from engine.errors import ExerciseError
from engine.model import build
from engine.sample import complete
from studies.experiments import no_causal_mask, scaling
from studies.inventory import measures
from studies.inventory.measures import HELD_OUT, READ, VOCABULARY
from studies.inventory.questions import TABLE, Question, measure, question
from studies.lab.reference.second import forward
from studies.tasks.all import TASKS

SHIPPED = Path(__file__).parents[3] / "checkpoints"
CASES = [(name, case) for name, row in TABLE.items() for case in range(len(row["cases"]))]


@cache
def made(name: str, case: int) -> Question:
    return question(name, case, measure(name, case), Random(f"{name}{case}"), case % 4)


def given(name: str) -> list[dict[str, Any]]:
    return list(TABLE[name]["cases"])


def key(name: str, case: int) -> str:
    item = made(name, case)
    return item.options[item.right].name


def keys(name: str) -> list[str]:
    return [key(name, case) for case in range(len(given(name)))]


def shipped(name: str) -> checkpoints.Checkpoint:
    return checkpoints.load(SHIPPED / name)


@torch.inference_mode()
def logits(loaded: checkpoints.Checkpoint, text: str) -> torch.Tensor:
    """(position, vocab), by the second implementation."""
    weights = {name: p.detach() for name, p in loaded.model.named_parameters()}
    ids = torch.tensor(loaded.tokenizer.encode(text))
    return forward(loaded.model.config, weights, ids)["logits"].double()


def test_an_untrained_model_writes_at_random_and_yet_something() -> None:
    for case in given("untrained"):
        loaded = shipped("shakespeare-classic")
        model = build(loaded.model.config, case["seed"])
        written = complete(model, loaded.tokenizer, case["prompt"], 300, 1.0, seed=0)
        assert len(written) >= 300
        counts = np.unique(list(written[-300:]), return_counts=True)[1]
        assert len(counts) > 45 and counts.max() < 20, "of 65 characters, none rare and none frequent"
    assert set(keys("untrained")) == {"random"}


def test_an_unknown_name_is_continued_as_a_known_one() -> None:
    for at, case in enumerate(given("facts")):
        loaded = shipped(case["model"])
        rows = [logits(loaded, f"{name}:\n")[-1].log_softmax(-1) for name in (case["name"], "ROMEO")]
        unknown, known = (float(torch.exp(-(row.exp() * row).sum())) for row in rows)
        assert unknown < 22 and abs(unknown - known) < 3, "of 65 characters, and much as for a known name"
        assert f"among {unknown:.0f} equally" in made("facts", at).reason
        assert f"among {known:.0f}." in made("facts", at).reason
        assert len(complete(loaded.model, loaded.tokenizer, f"{case['name']}:\n", 80, 0.8, seed=1)) >= 80
    assert set(keys("facts")) == {"continues"}


@pytest.mark.skipif(corpora.shakespeare_path() is None, reason="Tiny Shakespeare is not here")
def test_no_unknown_name_is_in_the_plays() -> None:
    text = corpora.load("shakespeare").text.lower()
    assert not [case["name"] for case in given("facts") if case["name"].lower() in text]
    assert HELD_OUT.lower() in text[int(len(text) * 0.9) :], "of the tenth that no model was trained on"


def digest(loaded: checkpoints.Checkpoint) -> str:
    return hashlib.sha256(
        b"".join(p.detach().numpy().tobytes() for p in loaded.model.parameters())
    ).hexdigest()


def test_reading_and_writing_change_no_weight() -> None:
    for case in given("memory"):
        used, fresh = shipped(case["model"]), shipped(case["model"])
        before = digest(used)
        complete(used.model, used.tokenizer, case["statement"], 30, 1.0, seed=3)
        assert digest(used) == before == digest(fresh)
        assert case["prompt"].strip() in case["statement"]
        assert case["statement"].removeprefix(case["prompt"]).startswith(case["letter"])
        assert torch.equal(logits(used, case["prompt"]), logits(fresh, case["prompt"]))
    assert set(keys("memory")) == {"same"}


def test_an_invented_word_is_cut_into_tokens_of_the_vocabulary() -> None:
    cutter = bpe.train(corpora.load("python").text[:READ], VOCABULARY)
    for at, case in enumerate(given("tokens")):
        symbols = [bytes([b]) for b in case["word"].encode()]
        for merge in cutter.merges:  # each in its turn, as it was learned
            a, b = (cutter.tokens[i] for i in merge.pair)
            i = 0
            while i < len(symbols) - 1:
                if (symbols[i], symbols[i + 1]) == (a, b):
                    symbols[i : i + 2] = [a + b]
                i += 1
        pieces = [symbol.decode() for symbol in symbols]
        assert len(pieces) > 1 and "".join(pieces) == case["word"] and all(s in cutter.ranks for s in symbols)
        assert case["syllables"].replace("-", "") == case["word"] and "-".join(pieces) != case["syllables"]
        assert " + ".join(f"“{piece}”" for piece in pieces) in made("tokens", at).reason
        assert cutter.vocab_size == VOCABULARY
    assert set(keys("tokens")) == {"pieces"}


def test_a_temperature_keeps_the_order_and_draws_probabilities_together() -> None:
    for at, case in enumerate(given("temperature")):
        row = logits(shipped(case["model"]), case["text"])[-1]
        cold, warm = row.softmax(-1), (row / case["hot"]).softmax(-1)
        assert torch.equal(cold.argsort(stable=True), warm.argsort(stable=True)) and cold.min() > 0
        assert warm.max() < cold.max() and warm.min() > cold.min() and case["hot"] > 1
        text, reason = made("temperature", at).text, made("temperature", at).reason
        first, second = cold.topk(2).values.tolist()
        assert f"{first:.0%} and the second {second:.0%}" in text and f"{warm.max():.0%} now" in reason
        assert first - second > 0.05, "one of them is seen to be the first"
    assert set(keys("temperature")) == {"order"}


def _hits(loaded: checkpoints.Checkpoint, text: str) -> tuple[int, int, float]:
    """(right, all, sum of the probabilities) of guesses above 80%, a window at a time."""
    right, sure, total, width = 0, 0, 0.0, loaded.model.config.context
    for part in (text[i : i + width] for i in range(0, len(text), width)):
        for row, letter in zip(logits(loaded, part)[:-1], part[1:], strict=True):
            share, guess = row.softmax(-1).max(-1)
            if share > 0.8:
                sure, total = sure + 1, total + float(share)
                right += loaded.tokenizer.decode([int(guess)]) == letter
    return right, sure, total


def _at(item: Question, name: str) -> int:
    return [option.name for option in item.options].index(name)


def test_sure_guesses_on_another_language_are_mostly_wrong() -> None:
    for at, case in enumerate(given("confidence")):
        right, sure, total = _hits(shipped(case["model"]), case["text"])
        item = made("confidence", at)
        assert f"{right} of {sure} are right" in item.reason and f"At {sure} positions" in item.text
        assert f"on average {total / sure:.0%}" in item.text
        assert 0 < right < sure / 2 < total - 5, "far from what the probabilities promise"
        assert f"About {round(total)}, as" in item.options[_at(item, "expected")].text
    home = [_hits(shipped(name), HELD_OUT) for name in ("shakespeare-modern", "shakespeare-classic")]
    for right, sure, total in home:
        assert sure > 90 and abs(right - total) / sure < 0.05, "at home they are what they promise"
    assert set(keys("confidence")) == {"fewer"}


@torch.inference_mode()
def test_a_second_program_makes_the_same_mistakes() -> None:
    """Written out digit by digit by the second program, not read over the first one's shoulder."""
    loaded, task = shipped("tasks/addition"), TASKS["addition"]
    for at, case in enumerate(given("errors")):
        draws = Random(f"sums/{case['seed']}")
        lines = [task.draw(draws, i) for i in range(case["count"])]
        wrong = []
        for line in lines:
            if not _answers(loaded, line, task.given):
                wrong.append(line)
        item = made("errors", at)
        assert f"{len(wrong)} of {case['count']} sums come out wrong" in item.text and len(wrong) > 1
        a, b = wrong[-1][: task.given].rstrip("=").split("+")
        assert f"{int(a)} + {int(b)} = " in item.text
        said = int(item.text.partition(f"{int(a)} + {int(b)} = ")[2].partition(".")[0])
        assert said != int(a) + int(b)
    assert set(keys("errors")) == {"same"}


def _answers(loaded: checkpoints.Checkpoint, line: str, begin: int) -> bool:
    """True if the second program, given the question, would write the right sum."""
    rows = logits(loaded, f"\n{line}").argmax(-1).tolist()
    ids = loaded.tokenizer.encode(f"\n{line}")
    return rows[begin:-1] == ids[begin + 1 :]  # up to its first mistake both read the same


def test_of_one_budget_the_loss_falls_and_rises_again() -> None:
    runs = json.loads((SHIPPED / "scaling.json").read_text())
    for at, case in enumerate(given("scaling")):
        losses: dict[int, list[float]] = {}
        for run in runs:
            if run["plan"]["budget"] == case["budget"]:
                losses.setdefault(run["parameters"], []).append(run["loss"])
                assert run["flops"] == pytest.approx(case["budget"], rel=0.1), "the same work for all of them"
        sizes = sorted(losses)
        means = [sum(losses[size]) / len(losses[size]) for size in sizes]
        signs = [after > before for before, after in pairwise(means)]
        assert signs == sorted(signs) and not signs[0] and signs[-1], "down, then up"
        least = min(means)
        item = made("scaling", at)
        assert f"from {sizes[0]:,} to {sizes[-1]:,} parameters" in item.text
        assert f"from {means[0]:.2f} to {least:.2f} nats" in item.reason
        assert f"{sizes[means.index(least)]:,} parameters, and rises to {means[-1]:.2f}" in item.reason
        spread = max(max(each) - min(each) for each in losses.values())
        assert min(means[0], means[-1]) - least > max(0.1, spread / 2), "more than the seeds differ"
        assert all(len(each) == 3 for each in losses.values()) and "means of 3 seeds" in item.reason
    assert set(keys("scaling")) == {"valley"}


@torch.inference_mode()
def test_of_two_heads_with_one_sharp_weight_one_is_needed_and_one_is_not() -> None:
    """A head is switched off in the weights here: its columns of the output matrix are zero."""
    for at, case in enumerate(given("attention")):
        loaded = shipped(case["model"])
        config, item = loaded.model.config, made("attention", at)
        ids = loaded.tokenizer.encode(case["text"])
        weights = {name: p.detach() for name, p in loaded.model.named_parameters()}
        out = forward(config, weights, torch.tensor(ids))
        before = out["logits"][-1].softmax(-1)
        guess, width, changes = int(before.argmax()), config.d_head, {}
        for layer in range(config.n_layers):
            name = next(n for n in weights if n.startswith(f"blocks.{layer}.") and n.endswith("w_o.weight"))
            for head in range(config.n_heads):
                weight = float(out[f"blocks.{layer}.pattern"][head, -1].max())
                if weight > 0.85:
                    without = weights[name].clone()
                    without[:, head * width : (head + 1) * width] = 0
                    after = forward(config, weights | {name: without}, torch.tensor(ids))["logits"][-1]
                    changes[f"{layer}.{head}"] = (float(after.softmax(-1)[guess]), weight)
        idle = item.query["attention_off"]
        needed = min(changes, key=lambda each: changes[each][0])
        assert abs(changes[idle][0] - float(before[guess])) < 0.1
        assert float(before[guess]) - changes[needed][0] > 0.2
        for number in (before[guess], changes[idle][0], changes[needed][0], changes[needed][1]):
            assert f"{float(number):.0%}" in item.reason
        assert f"{changes[idle][1]:.0%} of its attention" in item.text
    assert set(keys("attention")) == {"reads"}


@torch.inference_mode()
def test_each_head_weighs_every_character() -> None:
    for at, case in enumerate(given("heads")):
        loaded = shipped(case["model"])
        weights = {name: p.detach() for name, p in loaded.model.named_parameters()}
        out = forward(loaded.model.config, weights, torch.tensor(loaded.tokenizer.encode(case["text"])))
        length, n_heads = len(case["text"]), loaded.model.config.n_heads
        for layer in range(loaded.model.config.n_layers):
            last = out[f"blocks.{layer}.pattern"][:, -1]
            assert ((last > 0).sum(-1) == length).all() and len(last) == n_heads
        named = {option.name: option.text for option in made("heads", at).options}
        assert named["all"].startswith(f"From all {length},") and length % n_heads == 0
        assert named["shared"].startswith(f"From {length // n_heads},")
    assert set(keys("heads")) == {"all"}


def test_attention_without_positions_is_blind_to_order() -> None:
    for at, case in enumerate(given("positions")):
        words = case["first"].split()
        random = np.random.default_rng(at)
        table = {word: random.normal(size=8) for word in sorted(words)}
        q, k, v = random.normal(size=(3, 8, 8))

        def read(sentence: list[str]) -> dict[str, np.ndarray]:
            x = np.stack([table[word] for word in sentence])  # noqa: B023
            scores = (x @ q) @ (x @ k).T / math.sqrt(8)  # noqa: B023
            weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
            return dict(zip(sentence, weights @ (x @ v), strict=True))  # noqa: B023

        word, second = case["word"], " ".join(reversed(words))
        assert np.allclose(read(words)[word], read(second.split())[word])
        assert f"“{second}”" in made("positions", at).text
        assert words.index(word) != second.split().index(word), "the word is somewhere else"
        other = second.split()[words.index(word)]
        assert not np.allclose(read(words)[other], read(second.split())[word]), "nor the other word's"
        assert words[second.split().index(word)] == other
        assert (
            f"the vector that “{other}” had before"
            in made("positions", at).options[_at(made("positions", at), "swapped")].text
        )
    assert set(keys("positions")) == {"same"}


def test_without_the_mask_the_loss_falls_and_the_text_is_none() -> None:
    stored = json.loads((SHIPPED / "unmasked.json").read_text())
    for at, case in enumerate(given("mask")):
        place = stored["masked"]["steps"].index(case["steps"])
        masked, unmasked = (stored[name]["losses"][place] for name in ("masked", "unmasked"))
        item = made("mask", at)
        assert unmasked < 0.1 < 1 < masked
        assert f"{masked:.2f}" in item.text and f"{unmasked:.2f}" in item.reason
        written = stored["unmasked"]["texts"][place]
        again = [a == b for a, b in pairwise(written)]
        assert sum(again) / len(again) > 0.7, "it repeats one character over and over"
    whole, ends = (no_causal_mask.square("unmasked").metrics[n] for n in ("validation_loss", "end_loss"))
    assert whole < 0.1 and ends > 2, "where nothing lies ahead it knows nothing"
    assert set(keys("mask")) == {"leaks"}


@torch.inference_mode()
def test_the_stream_is_the_embedding_and_all_that_was_added() -> None:
    for at, case in enumerate(given("residual")):
        loaded = shipped(case["model"])
        weights = {name: p.detach() for name, p in loaded.model.named_parameters()}
        out = forward(loaded.model.config, weights, torch.tensor(loaded.tokenizer.encode(case["text"])))
        begin, end = out["blocks.0.resid_pre"][-1].double(), out["blocks.3.resid_post"][-1].double()
        added = sum(
            out[f"blocks.{i}.{name}"][-1].double() for i in range(4) for name in ("attn_out", "ffn_out")
        )
        assert torch.allclose(begin + added, end, atol=1e-4)
        share = float(begin @ end / (end @ end))
        assert abs(share) < 0.05 and f"the embedding is {share:.1%} of it" in made("residual", at).reason
        last = out["blocks.3.attn_out"][-1] + out["blocks.3.ffn_out"][-1]
        assert float((last - end).abs().max()) > 0.1 * float(end.abs().max())
    assert set(keys("residual")) == {"sum"}


def test_perplexities_compare_over_the_same_characters() -> None:
    for at, case in enumerate(given("perplexity")):
        characters = 8400
        fine = characters * math.log(case["letters"])
        coarse = characters / case["length"] * math.log(case["tokens"])
        assert coarse < fine and case["tokens"] > case["letters"], "the larger perplexity is the better model"
        assert case["tokens"] % case["length"] == 0 and case["tokens"] / case["length"] > case["letters"]
        item = made("perplexity", at)
        power = " · ".join([str(case["letters"])] * case["length"])
        assert (
            item.options[item.right].text
            == f"Model {case['coarse']}, as {case['tokens']} is less than {power}"
        )
        assert f"= {case['letters'] ** case['length']}, and a token is only as hard as" in item.reason
        assert {case["fine"], case["coarse"]} == {"A", "B"}
    assert set(keys("perplexity")) == {"coarse"}
    assert len({case["coarse"] for case in given("perplexity")}) == 2, "either letter may be right"


@pytest.mark.parametrize(("name", "case"), CASES)
def test_one_option_is_right_and_each_other_has_its_misconception(name: str, case: int) -> None:
    item = made(name, case)
    texts = [option.text for option in item.options]
    assert len(set(texts)) == len(texts) == 4 and item.right == case % 4
    beliefs = [option.misconception for option in item.options]
    assert [i for i, belief in enumerate(beliefs) if not belief] == [item.right]
    assert TABLE[name]["options"][item.options[item.right].name][1] == "", "the table expects no other"
    assert "{" not in item.text + item.reason + "".join(texts)
    assert len(item.text.split()) <= 60 and all(len(text.split()) <= 16 for text in texts)


def test_a_measurement_that_no_option_says_is_refused() -> None:
    fields = measure("perplexity", 1).fields
    with pytest.raises(ExerciseError, match="no option"):
        question("perplexity", 1, measures.Key("other", fields), Random(0), 0)


def test_where_a_measurement_comes_out_otherwise_another_option_is_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The key follows the numbers: it is not written down."""
    assert measures.perplexity("A", "B", 3, 2, 30).right == "fine"
    english = measures.confidence("English", HELD_OUT, "shakespeare-modern")
    assert english.right == "expected" and english.fields["right"] > 0.9 * english.fields["count"]
    runs = [run for run in scaling.shipped() if run.plan.budget == 3e9]
    for keep, right in (((664, 2096), "falls"), ((2096, 20776), "rises"), ((2096, 4296), "flat")):
        some = tuple(run for run in runs if run.parameters in keep)
        monkeypatch.setattr(scaling, "shipped", lambda some=some: some)
        assert measures.budget_of(3e9).right == right
