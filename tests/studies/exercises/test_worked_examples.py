"""Worked examples that fade: each number worked out in another way, each mistake really made, what is blank at each level,
and the hints.
"""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from random import Random

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from engine.config import GATED, ModelConfig
from engine.data.progress import finish
from engine.model import Transformer, build
from engine.probe import identity
from studies.costs.lecture_models import LECTURE_MODELS
from studies.costs.ledger import ledger, ledger_of
from studies.costs.presets import PRESETS
from studies.costs.published_models import ENCODER_DECODERS
from studies.exercises import reading
from studies.exercises.catalogue import make
from studies.exercises.exercise import check, distinct, mistakes
from studies.exercises.forms import Numbers
from studies.exercises.worked import attention, backward_step, bpe, parameters, perplexity
from studies.exercises.worked_example import LEVELS, Cell, Given, WorkedExample
from studies.shapes.attention_by_hand import multi_head
from studies.shapes.backward import EPSILON
from studies.shapes.optimiser_step import WeightStep, weight_step
from tests.engine.cases import for_each
from tests.engine.helpers import loud, tiny
from tests.studies.exercises.answers import joined, learned, soft

SEEDS = range(25)
ALL = PRESETS | LECTURE_MODELS | ENCODER_DECODERS
IDS = (3, 1, 4, 1, 5, 9, 2, 6)
ROWS = ([1, 2, 3, 4], [5, 6, 7, 8], [9, 0, 1, 2], [1, 0, 0, 1], [0, 1, 1, 0])  # of the view


def heads_of(q, k1, k2, v1, v2, heads: int = 2, hidden: tuple[int, ...] = ()) -> WorkedExample:
    return attention.two_heads(multi_head([q], [k1, k2], [v1, v2], heads, hidden))


def small_step(rank: int = 0, scale: float = 1.0) -> tuple[Transformer, WeightStep]:
    model = loud(tiny(), factor=4.0).requires_grad_(False)
    return model, finish(weight_step(model, IDS, "1.W_out", rank, scale))


def step_example(rank: int = 0, scale: float = 1.0) -> WorkedExample:
    example = backward_step.single_weight(small_step(rank, scale)[1], "block 1 · W_out")
    assert example is not None
    return example


def tokens_of(seed: int) -> tuple[list[float], WorkedExample]:
    rng = Random(seed)
    p = [rng.choice([0.02, 0.1, 0.2371, 0.5, 0.654321, 0.9]) for _ in range(12)]
    example = perplexity.few_tokens([f"t{at}" for at in range(12)], p, seed)
    assert example is not None
    return p, example


def every() -> Iterator[tuple[str, WorkedExample]]:
    """Some examples of all five, by name."""
    for seed in SEEDS:
        rows = attention.draw(Random(seed)).values()
        yield f"attention {seed}", heads_of(*rows, hidden=((), (0,), (1,))[seed % 3])
        yield f"bpe {seed}", bpe.two_merges(seed)
        yield f"perplexity {seed}", tokens_of(seed)[1]
        yield f"parameters {seed}", parameters.count_of(ledger(PRESETS["gpt2"].model), seed)
    yield "attention", heads_of(*ROWS)
    yield "one head", heads_of(*ROWS, heads=1)
    yield "four heads", heads_of(*ROWS, heads=4)
    for name in sorted(set(ALL) - OTHER_KINDS - {"nanogpt-192", "lab"}):  # two of the same sizes
        yield name, parameters.count(ledger_of(ALL[name]))
    for rank in (0, 7):
        yield f"step {rank}", step_example(rank, (1.0, 8.0)[rank % 2])


# What all of them hold --------------------------------------------------------------------------


def test_right_answers_as_they_are_shown_are_right_and_each_mistake_gets_its_hint() -> None:
    for name, example in every():
        for id_, cell in example.cells.items():
            assert check(cell, cell.text.strip("`")).right, (name, id_, cell.text)
            assert all(text and not text.endswith(" ") for text in cell.hints) and len(set(cell.hints)) == 3
            for mistake in cell.mistakes:
                assert not cell.form.near(mistake.value, cell.answer), (name, id_, mistake)
                typed = cell.form.text(mistake.value).strip("`")
                if isinstance(cell.form, Numbers) and any(number % 1 for number in mistake.value):
                    typed = " ".join(f"{number:.{cell.form.decimals or 2}f}" for number in mistake.value)
                verdict = check(cell, typed)
                assert (verdict.right, verdict.hint) == (False, mistake.hint), (name, id_, mistake)


def test_the_last_hint_shows_the_number_and_the_first_does_not() -> None:
    for name, example in every():
        for id_, cell in example.cells.items():
            shown = [text.replace(" nats", "").strip("`") for text in (cell.text,)]
            nudge, _, way = cell.hints
            if isinstance(cell.form, Numbers):
                number = Numbers(cell.form.count, cell.form.decimals).text(cell.answer)
                wanted = {number, number.rstrip("0").rstrip(".") if "." in number else number}
                assert any(each in way for each in wanted) or "0" in wanted, (name, id_, way, wanted)
            else:
                assert shown[0] in way, (name, id_, way)
            assert shown[0] not in nudge.split(), (name, id_, nudge)


def evaluated(side: str) -> float:
    """The value of one side of an equation as it is printed."""
    text = re.sub(r"\\frac\{((?:[^{}]|\{[^{}]*\})*)\}\{((?:[^{}]|\{[^{}]*\})*)\}", r"(\1) / (\2)", side)
    text = re.sub(r"e\^\{([^{}]*)\}", r"math.exp(\1)", text)
    text = re.sub(r"\\sqrt\{([^{}]*)\}", r"math.sqrt(\1)", text)
    text = re.sub(r"\\ln ([\d.]+)", r"math.log(\1)", text)
    text = text.replace("\\cdot", "*").replace("·", "*").replace("²", "**2").replace(",", "")
    assert re.fullmatch(r"(?:[\d.e+*/() -]|math\.(?:exp|sqrt|log))+", text), text
    return float(eval(text.replace("$", "")))


def equations() -> Iterator[tuple[str, str]]:
    for name, example in (*every(), *more()):
        for cell in example.cells.values():
            way = cell.hints[2].replace("$", "")
            if isinstance(cell.form, Numbers) and "=" in way and "infty" not in way:
                yield name, way


def more() -> Iterator[tuple[str, WorkedExample]]:
    """More numbers, since rounding goes wrong for few of them."""
    for seed in range(300):
        rng = Random(seed)
        names, p = list("abcdefgh"), [rng.uniform(0.02, 1) for _ in range(8)]
        if (example := perplexity.few_tokens(names, p, seed)) is not None:
            yield f"p {seed}", example
        rows = attention.draw(rng).values()
        yield f"drawn {seed}", heads_of(*rows)
        yield f"fine {seed}", heads_of(*([x + round(rng.random(), 4) for x in row] for row in rows))
    for rank in range(0, 60, 4):
        for scale in (0.125, 1.0, 8.0):
            yield f"step {rank} {scale}", step_example(rank, scale)


def test_every_printed_equation_is_true_as_it_is_printed() -> None:
    count = 0
    for name, way in equations():
        left, right = way.rsplit(" = ", 1)
        places = len(right.partition(".")[2])
        off = abs(evaluated(left) - evaluated(right))
        assert off <= 0.5 * 10**-places + 1e-9, (name, way, evaluated(left))
        count += 1
    assert count > 10_000


def test_levels_leave_nothing_then_a_number_then_a_row_then_all_to_the_reader() -> None:
    for name, example in every():
        blanks = {level: list(example.blanks(level)) for level in LEVELS}
        assert blanks["nothing"] == [] and blanks["number"] == [example.number], name
        row = [id_ for id_ in example.cells if id_.split("-")[0] == str(example.row)]
        assert blanks["row"] == row and len(row) >= (1 if "one head" in name else 2), name
        places = [(r, c) for r, each in enumerate(example.rows) for c in range(len(each.cells))]
        whole = [f"{r}-{c}" for r, c in places if isinstance(example.rows[r].cells[c], Cell)]
        assert blanks["all"] == whole, name


def test_what_follows_from_a_blank_is_shown_once_it_is_right() -> None:
    example = heads_of(*ROWS)
    assert len(example.shown("nothing", False)) == len(example.shown("all", False)) == len(example.rows) == 5
    assert (
        example.shown("number", False) == example.rows[:2] and example.shown("row", False) == example.rows[:3]
    )
    assert example.shown("row", True) == example.rows


def test_answers_are_judged_in_their_order_and_empty_ones_are_none() -> None:
    example = heads_of(*ROWS)
    ids = list(example.blanks("row"))
    texts = {id_: example.cells[id_].text for id_ in ids}
    nothing = example.judge("row", {})
    assert (nothing.right, nothing.first_wrong, nothing.at, nothing.complete) == (0, None, ids[0], False)
    blank = example.judge("row", texts | {ids[0]: "  ", ids[2]: "9"})
    assert (blank.right, blank.first_wrong, blank.at) == (2, ids[2], ids[0])
    done = example.judge("row", texts | {"0-0": "wrong, and not asked for"})
    assert done.complete and done.at is None and done.first_wrong is None and done.right == 4
    forged = example.judge("row", {ids[0]: ["1"], ids[1]: 7, ids[2]: "9" * 5000})
    assert forged.right == 0 and len(forged.verdicts) == 3


def test_other_numbers_are_another_example() -> None:
    digests = [example.digest for _, example in every()]
    assert len(set(digests)) == len(digests)
    assert heads_of(*ROWS).digest == heads_of(*ROWS).digest


def test_mistakes_that_cannot_be_told_apart_name_none_that_may_be_wrong() -> None:
    form = Numbers(1, 2)
    rows = mistakes(((1.0,), "right itself"), ((2.0,), "first"), ((2.001,), "second"), ((3.0,), "third"))
    assert [mistake.hint for mistake in distinct(form, (1.0,), rows)] == ["first", "third"]


@for_each("text, number", [("0.74", 0.74), (",74", 0.74), ("-,5", -0.5), ("37/50", 0.74), (".74", 0.74)])
def test_numbers_are_read_as_people_write_them(text: str, number: float) -> None:
    assert reading.numbers(text, 1, whole=False) == (number,)


def test_a_comma_in_front_is_a_decimal_point_for_exercises_too() -> None:
    exercise = make("top-k", 1)
    assert check(exercise, f"{exercise.answer[0]:.3f}".replace("0.", ",")).right


# Attention --------------------------------------------------------------------------------------


def values(example: WorkedExample, row: int) -> list[float]:
    return [x for cell in example.rows[row].cells if isinstance(cell, Cell) for x in cell.answer]


@for_each("hidden", [(), (0,), (1,)])
def test_two_heads_are_those_of_torch(hidden: tuple[int, ...]) -> None:
    for seed in SEEDS:
        q, k1, k2, v1, v2 = (
            torch.tensor(row, dtype=torch.float64) for row in attention.draw(Random(seed)).values()
        )
        example = heads_of(q.tolist(), k1.tolist(), k2.tolist(), v1.tolist(), v2.tolist(), hidden=hidden)
        queries, keys, inside = (
            torch.stack(rows).view(-1, 2, 2).swapaxes(0, 1) for rows in ([q], [k1, k2], [v1, v2])
        )
        seen = torch.tensor([key not in hidden for key in range(2)])
        z = F.scaled_dot_product_attention(queries, keys, inside, attn_mask=seen[None].expand(2, 1, 2))
        raw = torch.einsum("hqd,hkd->hk", queries, keys)
        weights = (raw / 2**0.5).masked_fill(~seen, -torch.inf).softmax(-1)
        for row, wanted in enumerate((raw, raw / math.sqrt(2), weights, z, z)):
            assert np.allclose(values(example, row), wanted.flatten(), rtol=0, atol=1e-12), (seed, row)


def hint_of(example: WorkedExample, id_: str, value: object, text: str = "") -> str:
    cell = example.cells[id_]
    typed = text or (f"{value:.{cell.form.decimals}f}" if isinstance(value, float) else str(value))
    verdict = check(cell, typed)
    assert not verdict.right, (id_, typed, cell.answer)
    return verdict.hint


def test_mistakes_of_two_heads_are_named() -> None:
    q, k, v = [2, -1, 0, 1], [[1, 1, 2, 0], [0, 2, 1, 2]], [[1, 2, 3, 4], [3, 0, -1, 2]]
    example, masked = (heads_of(q, *k, *v, hidden=hidden) for hidden in ((), (1,)))
    raw = [sum(q[i] * row[i] for i in (0, 1)) for row in k]  # of head 1: 1 and -2
    scores = [x / math.sqrt(2) for x in raw]
    right = soft(scores)
    whole = sum(a * b for a, b in zip(q, k[0], strict=True))
    assert "all $d$ numbers" in hint_of(heads_of(*ROWS), "0-0", 70) and whole == raw[0]
    assert "contiguous" in hint_of(example, "0-0", q[0] * k[0][0] + q[2] * k[0][2])
    assert "bare dot product" in hint_of(example, "1-1", float(raw[1]))
    assert "$d_k$ itself" in hint_of(example, "1-1", raw[1] / 2)
    assert "multiplied" in hint_of(example, "1-1", raw[1] * math.sqrt(2))
    assert "forgot to divide the scores" in hint_of(example, "2-0", float(soft(raw)[0]))
    assert "scores themselves" in hint_of(example, "2-0", scores[0] / sum(scores))
    assert "alone" in hint_of(example, "2-0", math.exp(scores[0]))
    assert "other key" in hint_of(example, "2-0", float(right[1]))
    assert "masked after" in hint_of(masked, "2-0", float(right[0]))
    assert "mask is missing" in hint_of(masked, "2-1", float(right[1]))
    assert "with 0 instead" in hint_of(masked, "2-0", float(soft([scores[0], 0.0])[0]))
    assert "plain mean" in hint_of(example, "3-0", (v[0][0] + v[1][0]) / 2)
    assert "added the values" in hint_of(example, "3-1", float(v[0][1] + v[1][1]))
    assert "averaged the keys" in hint_of(example, "3-0", float(right[0] * k[0][0] + right[1] * k[1][0]))
    assert "other key's weight" in hint_of(example, "3-0", float(right[1] * v[0][0] + right[0] * v[1][0]))
    assert "masked after" in hint_of(masked, "3-1", float(right[0] * v[0][1]))
    z = np.reshape(values(example, 3), (2, 2))
    assert "added the heads" in hint_of(example, "4-0", None, " ".join(f"{x:.2f}" for x in z.sum(0)))
    assert "took turns" in hint_of(example, "4-0", None, " ".join(f"{x:.2f}" for x in z.T.ravel()))
    assert "wrong order" in hint_of(example, "4-0", None, " ".join(f"{x:.2f}" for x in z[::-1].ravel()))


def test_drawn_numbers_have_weights_that_can_be_worked_out() -> None:
    for seed in range(200):
        weights = values(heads_of(*attention.draw(Random(seed)).values()), 2)
        assert min(weights) > 0.04 and max(weights) < 0.96
        assert all(abs(a - b) > 0.1 for a, b in zip(weights[::2], weights[1::2], strict=True))


def test_a_right_number_in_too_few_decimals_is_no_mistake() -> None:
    cell = heads_of(*ROWS).cells["2-0"]  # 0.9965; without the division it is 0.9997
    for text in ("1", "1.0", "1.00", " 1. "):
        assert (
            check(cell, text).hint
            == "That is right as far as it goes; write one number, to 3 decimal places."
        )
    for text in ("1.000", "0.9997", "3/3.001"):
        assert "forgot to divide" in check(cell, text).hint
    assert check(cell, "0.997").right and "as far as it goes" not in check(cell, "0.9").hint


def test_huge_scores_overflow_nothing() -> None:
    example = heads_of([1000, 1], [1000, 0], [-1000, 0], [1, 0], [0, 1], heads=1)
    assert values(example, 2) == [1.0, 0.0] and all(math.isfinite(x) for x in values(example, 1))


# BPE --------------------------------------------------------------------------------------------


def words_of(example: WorkedExample) -> dict[str, int]:
    parts = example.given.partition(": ")[2].partition(". ")[0].split(", ")
    return {part.split("`")[1]: int(part.rstrip("×").split()[-1]) for part in parts}


def test_merges_are_those_of_rewriting_the_text() -> None:
    for seed in SEEDS:
        example = bpe.two_merges(seed)
        counts = words_of(example)
        first, second = learned(counts, 2)
        corpus = [word for word, times in counts.items() for _ in range(times)]
        for cell in example.rows[0].cells:
            assert isinstance(cell, Cell)
            pair = cell.label.strip("`").replace(" ", "")
            found = sum(word[at : at + 2] == pair for word in corpus for at in range(len(word)))
            assert cell.answer == (found,), (seed, cell.label)
        once = {word: joined(list(word), first) for word in counts}
        twice = {word: joined(parts, second) for word, parts in once.items()}
        pair, often = example.rows[3].cells
        assert isinstance(pair, Cell) and isinstance(often, Cell)
        assert (example.cells["1-0"].answer, pair.answer) == (first, second)
        assert often.answer == (sum(counts[w] * (len(once[w]) - len(twice[w])) for w in counts),)
        for row, cut in ((2, once), (4, twice)):
            assert [cell.answer for cell in example.rows[row].cells] == [tuple(cut[word]) for word in counts]


def test_mistakes_of_bpe_are_named() -> None:
    example = bpe.two_merges(0)
    counts = words_of(example)
    assert counts == {"lower": 9, "newer": 1, "tower": 7, "low": 3}
    assert "each word once" in hint_of(example, "0-0", 3)  # lower, newer, tower
    assert "number of words" in hint_of(example, "0-0", sum(counts.values()))
    assert "occurs 17 times" in hint_of(example, "1-0", "w e")
    assert "a space between" in hint_of(example, "1-0", "ow")
    assert "merge is missing" in hint_of(example, "2-0", "l o w e r")
    assert "not the whole word" in hint_of(example, "2-0", "lower")
    assert "must spell" in hint_of(example, "2-0", "l ow e")
    assert "Count again" in hint_of(example, "3-0", "w e")
    assert "merged" in hint_of(example, "3-0", "o w")
    assert "earlier merges stay" in hint_of(example, "4-0", "l o w e r")
    turned = [  # the pair merged the other way round, in words that have it so
        (other, f"2-{at}", " ".join(joined(list(word), other.cells["1-0"].answer[::-1])))
        for other in map(bpe.two_merges, range(40))
        for at, word in enumerate(words_of(other))
        if "".join(other.cells["1-0"].answer[::-1]) in word
    ]
    assert turned and all("an order" in hint_of(*each[:2], None, each[2]) for each in turned)


# Perplexity -------------------------------------------------------------------------------------


def test_perplexity_is_the_inverse_geometric_mean_of_what_is_shown() -> None:
    for seed in SEEDS:
        example = tokens_of(seed)[1]
        shown = np.array([float(cell.text) for cell in example.rows[0].cells if isinstance(cell, Given)])
        assert len(shown) == 4
        assert np.allclose(values(example, 1), np.log(1 / shown), rtol=0, atol=1e-12)
        total, mean, choices = values(example, 2)
        assert math.isclose(total, -np.log(shown.prod())) and math.isclose(mean, total / 4)
        assert math.isclose(choices, shown.prod() ** -0.25) and 1.1 <= choices <= 20


def test_a_seed_chooses_tokens_in_a_row_and_probabilities_stand_as_they_are_counted() -> None:
    names, p = [f"t{at}" for at in range(9)], [0.123456, 0.5, 0.25, 0.9, 0.3, 0.2, 0.7, 0.1, 0.4]
    for seed in range(12):
        example = perplexity.few_tokens(names, p, seed)
        assert example is not None
        start = int(example.rows[0].labels[0][1:])
        assert example.rows[0].labels == tuple(names[start : start + 4])
        assert [cell.text for cell in example.rows[0].cells if isinstance(cell, Given)] == [
            f"{x:.3g}" for x in p[start : start + 4]
        ]
    assert perplexity.few_tokens(names, [1e-9] * 9, 0) is None, "too surprising for rounded numbers"
    assert perplexity.few_tokens(names, [0.0] * 9, 0) is None
    short = perplexity.few_tokens(["a"], [0.5], 3)
    assert short is not None and len(short.rows[0].cells) == 1


def test_mistakes_of_perplexity_are_named() -> None:
    p = [0.5, 0.2, 0.1, 0.8]
    example = perplexity.few_tokens(list("abcd"), p, 0)
    assert example is not None
    logs = [math.log(x) for x in p]
    mean = -sum(logs) / 4
    assert "log_2" in hint_of(example, "1-1", -math.log2(p[1]))
    assert "log_{10}" in hint_of(example, "1-1", -math.log10(p[1]))
    assert "*minus*" in hint_of(example, "1-1", logs[1])
    assert "all other tokens" in hint_of(example, "1-2", 1 - p[2])
    assert "product" in hint_of(example, "2-0", 0.5 * 0.2 * 0.1 * 0.8)
    assert "mean already" in hint_of(example, "2-0", mean)
    assert "That is the sum" in hint_of(example, "2-1", mean * 4)
    assert "bits" in hint_of(example, "2-1", mean / math.log(2))
    assert "averaged the probabilities" in hint_of(example, "2-1", -math.log(sum(p) / 4))
    assert "not 5" in hint_of(example, "2-1", mean * 4 / 5)
    assert "mean loss" in hint_of(example, "2-2", mean)
    assert "forgot to divide" in hint_of(example, "2-2", math.exp(4 * mean))
    assert "averaged $1/p$" in hint_of(example, "2-2", sum(1 / x for x in p) / 4)
    other = perplexity.few_tokens(list("abcd"), (q := [0.1, 0.02, 0.1, 0.9]), 0)
    assert other is not None
    assert "raised 2" in hint_of(other, "2-2", 2.0 ** (-sum(map(math.log, q)) / 4))
    assert "averaged the probabilities" in hint_of(other, "2-2", 4 / sum(q))


# Parameters -------------------------------------------------------------------------------------


def built(config: ModelConfig) -> dict[str, torch.Size]:
    return {name: p.shape for name, p in build(config, device="meta").named_parameters()}


def sizes(shapes: Mapping[str, torch.Size], wanted: Callable[[str], bool]) -> int:
    return sum(shape.numel() for name, shape in shapes.items() if wanted(name))


def counted_models() -> Iterator[tuple[str, ModelConfig, WorkedExample]]:
    """Each model that is counted: every preset that is a plain stack, in its sizes and in drawn ones; drawn models."""
    for name in ALL:
        model = ledger_of(ALL[name])
        if name in OTHER_KINDS:
            continue
        yield name, ALL[name].model, parameters.count(model)
        for seed in range(4):
            yield f"{name} {seed}", parameters.like(model, seed).config, parameters.count_of(model, seed)
    for seed in range(8):
        other = ledger_of(ALL["bert-base"])
        yield f"drawn {seed}", parameters.like(other, seed).config, parameters.count_of(other, seed)


OTHER_KINDS = {"experts", "bert-base", "t5-base", "transformer-base"}


def test_counts_and_what_is_said_before_them_are_those_of_the_model_that_is_built() -> None:
    for name, config, example in counted_models():
        shapes, c = built(config), config.resolved()
        cells = {
            (row.title, cell.label): cell.answer[0]
            for row in example.rows
            for cell in row.cells
            if isinstance(cell, Cell)
        }
        block = {
            each.removeprefix("blocks.0."): shape
            for each, shape in shapes.items()
            if each.startswith("blocks.0.")
        }
        wanted = {
            ("Tables", "tokens"): sizes(shapes, lambda each: each == "embedding"),
            ("Tables", "positions"): sizes(shapes, lambda each: each.startswith("positions.")),
            ("Tables", "unembedding"): sizes(shapes, lambda each: each == "unembedding"),
            ("Norms", "in a block"): sizes(block, lambda each: each.startswith("norm")),
            ("Norms", "after the last block"): sizes(shapes, lambda each: each.startswith("norm_final")),
            ("Together", "all blocks"): sizes(shapes, lambda each: each.startswith("blocks.")),
            ("Together", "the whole model"): sizes(shapes, lambda _: True),
        }
        for part, title in (("mixer.", "Attention"), ("ffn.", "Feed-forward")):
            for label, end in (("matrices", ".weight"), ("biases", ".bias"), ("gains", "_gain")):
                wanted[title, label] = sum(
                    s.numel() for n, s in block.items() if n.startswith(part) and n.endswith(end)
                )
            wanted[title, "in all blocks"] = c.n_layers * sum(
                s.numel() for n, s in block.items() if n.startswith(part)
            )
        assert cells == {key: count for key, count in wanted.items() if count}, name
        numbers, _, facts = example.given.partition(". ")
        said = dict(re.findall(r"\$(\S+)\$ = ([\d,]+)", numbers))
        stated = {
            "V": c.vocab_size, "d": c.d_model, "d_{ff}": c.d_ff, "L": c.n_layers, "H": c.n_heads,
            "T": c.context, "H_{kv}": c.n_kv_heads, "d_{head}": c.d_head,
        }  # fmt: skip
        assert {letter: int(number.replace(",", "")) for letter, number in said.items()} == {
            letter: stated[letter] for letter in said
        }
        biased = ["W_Q", "W_K", "W_V"] * ("mixer.w_qkv.bias" in block) + ["W_O"] * ("mixer.w_o.bias" in block)
        assert set(facts.rstrip(".").lower().split("; ")) == {
            "no matrix has a bias"
            if not biased and "ffn.w_in.bias" not in block
            else "each matrix of a block has biases"
            if "W_O" in biased and "ffn.w_in.bias" in block
            else "of a block's matrices only $w_q$, $w_k$ and $w_v$ have biases",
            "the unembedding is a table of its own"
            if "unembedding" in shapes
            else "embedding and unembedding are one table",
            *["queries and keys are normalised in each head, each with a gain, the same in all heads"]
            * ("mixer.q_gain" in block),
            *["positions are a learned table"] * any(each.startswith("positions.") for each in shapes),
            *["a norm has a gain and a bias"] * ("norm1.bias" in block),
            *["a norm has a gain"] * ("norm1.gain" in block and "norm1.bias" not in block),
            *["the network is gated"] * (c.ffn in GATED),
        }, (name, facts)


def test_no_hint_of_a_count_speaks_of_what_the_model_does_not_have() -> None:
    for name, config, example in counted_models():
        block = [each for each in built(config) if each.startswith("blocks.0.")]
        hints = [
            (row.title, text)
            for row in example.rows
            for cell in row.cells
            if isinstance(cell, Cell)
            for text in (*(mistake.hint for mistake in cell.mistakes), *cell.hints)
        ]
        for title, text in hints:
            where = (name, title, text)
            part = {"Attention": ".mixer.", "Feed-forward": ".ffn."}.get(title, "")
            biased = any(part in each and each.endswith(".bias") and ".norm" not in each for each in block)
            if "biases" in text:
                assert ("have none" not in text) if biased else ("have none" in text), where
            if "gains" in text and title in ("Attention", "Feed-forward", "Together"):
                assert any(part in each and each.endswith("_gain") for each in block), where
            if "each matrix" in text.lower() and title in ("Attention", "Feed-forward"):
                matrices = sum(part in each and each.endswith(".weight") for each in block)
                biases = sum(part in each and each.endswith(".bias") for each in block)
                assert matrices == biases or "Each matrix holds" in text, where
            if "norm" in text and "normalised" not in text:
                assert any(".norm" in each for each in block), where
            if "W_O" in text:
                assert any(".w_o." in each for each in block) != ("There is no" in text), where


def test_what_usual_mistakes_of_qk_norm_and_partial_biases_are_called() -> None:
    fast, qwen = (parameters.count(ledger_of(ALL[name])) for name in ("fast", "qwen2.5-0.5b"))
    assert fast.cells["1-1"].answer == (96,) and qwen.cells["1-1"].answer == (1_152,)
    assert "Queries have one, and keys another" in hint_of(fast, "1-1", 48)
    assert "All heads share" in hint_of(fast, "1-1", 192)
    assert "That is with the gains" in hint_of(fast, "1-0", 4 * 96**2 + 96)
    assert "gains of queries and keys are missing" in hint_of(
        fast, "4-1", fast.cells["4-1"].answer[0] - 4 * 96
    )
    assert "Not every matrix" in hint_of(qwen, "1-1", 2_048)
    assert "One is missing" in hint_of(qwen, "1-1", 1_024)
    assert "network's matrices have none" in hint_of(qwen, "2-0", 3 * 896 * 4864 + 2 * 4864 + 896)


def test_a_count_that_is_left_to_the_reader_is_of_no_model_that_is_shown() -> None:
    for name in ALL:
        model = ledger_of(ALL[name])
        shown = {*model.components.values(), model.in_blocks, model.total}
        for seed in range(10):
            example = parameters.count_of(model, seed)
            totals = ("tokens", "positions", "unembedding", "in all blocks", "all blocks", "the whole model")
            answers = {cell.answer[0] for cell in example.cells.values() if cell.label in totals}
            assert len(answers) >= 4
            assert not shown & answers, (name, seed)


def test_mistakes_of_a_count_are_named() -> None:
    d, ff, vocab, layers = 768, 3072, 50_257, 12
    gpt2 = parameters.count(ledger(PRESETS["gpt2"].model))
    total = 124_439_808
    assert gpt2.cells["4-1"].answer == (total,)
    assert "$W_O$" in hint_of(gpt2, "1-0", 3 * d * d)
    assert "number of heads" in hint_of(gpt2, "1-0", 12 * 4 * d * d)
    assert "with the biases" in hint_of(gpt2, "1-0", 4 * d * d + 4 * d)
    assert "biases twice" in hint_of(gpt2, "1-1", 8 * d)
    assert "One is missing. Each matrix" in hint_of(gpt2, "1-1", 3 * d)
    assert "one block" in hint_of(gpt2, "1-2", 4 * d * d + 4 * d)
    assert "biases are missing" in hint_of(gpt2, "1-2", layers * 4 * d * d)
    assert "biases twice" in hint_of(gpt2, "1-2", layers * (4 * d * d + 8 * d))
    assert "two matrices" in hint_of(gpt2, "2-0", d * ff)
    assert "wide inside" in hint_of(gpt2, "2-0", 2 * d * d)
    assert "two norms" in hint_of(gpt2, "3-0", 2 * d)
    assert "biases twice" in hint_of(gpt2, "4-0", layers * (12 * d * d + 13 * d + 9 * d))
    assert "tied" in hint_of(gpt2, "4-1", total + vocab * d)
    assert "position table" in hint_of(gpt2, "4-1", total - 1024 * d)
    assert "last block" in hint_of(gpt2, "4-1", total - 2 * d)
    assert "biases twice" in hint_of(gpt2, "4-1", total + layers * 9 * d)
    assert "biases of the matrices are missing" in hint_of(gpt2, "4-1", total - layers * 9 * d)
    bare = parameters.count(ledger(replace(PRESETS["gpt2"].model, attention_bias=False, output_bias=False)))
    assert "have none" in hint_of(bare, "1-0", 4 * d * d + 4 * d)


def test_a_model_that_is_no_plain_stack_gives_one_like_gpt2() -> None:
    for name in OTHER_KINDS:
        config = parameters.like(ledger_of(ALL[name]), 0).config
        gpt2 = PRESETS["gpt2"].model
        assert (config.norm, config.ffn, config.wiring) == (gpt2.norm, gpt2.ffn, gpt2.wiring)
        assert list(parameters.count_of(ledger_of(ALL[name]), 0).cells.values())[-1].answer == (
            ledger(config).total,
        )


def test_a_model_whose_sizes_cannot_be_drawn_gives_one_like_gpt2() -> None:
    third = replace(PRESETS["modern"].model, rope_fraction=0.3125, d_head=32)
    assert parameters.count_of(ledger(third), 0).given.startswith("A small model like GPT-2: ")


def test_a_block_without_tables_gives_a_model_that_has_some() -> None:
    config = parameters.like(ledger_of(ALL["block-512"]), 0).config
    assert min(config.vocab_size, config.context) > 64 and config.n_layers > 1


# One backward step ------------------------------------------------------------------------------


def exact_loss(model: Transformer) -> torch.Tensor:
    logits = model(torch.tensor([IDS]), identity)[0, :-1]
    return F.cross_entropy(logits, torch.tensor(IDS[1:]))


@for_each("rank, scale", [(0, 1.0), (3, 8.0)])
def test_a_step_is_that_of_torchs_optimisers_on_this_weight(rank: int, scale: float) -> None:
    model, step = small_step(rank, scale)
    exact = copy.deepcopy(model).double().requires_grad_(True)
    exact_loss(exact).backward()
    name, (row, column) = step.matrix.name, step.entry
    found = dict(exact.named_parameters())[name].grad
    assert found is not None
    part = found[step.matrix.start : step.matrix.stop]
    order = part.abs().flatten().sort(descending=True).indices
    assert divmod(int(order[rank]), part.shape[1]) == (row, column)
    assert math.isclose(step.gradient, float(part[row, column]), rel_tol=1e-12)
    example = backward_step.single_weight(step, "W")
    assert example is not None
    g = example.cells["0-0"].answer[0]
    assert math.isclose(g, step.gradient, rel_tol=5e-3)
    for at, (rule, kind) in enumerate((("sgd", torch.optim.SGD), ("adamw", torch.optim.AdamW))):
        weight = torch.tensor([step.weight], dtype=torch.float64, requires_grad=True)
        weight.grad = torch.tensor([g], dtype=torch.float64)
        rate = {"sgd": 0.01, "adamw": 1e-3}[rule] * scale
        kind([weight], rate, weight_decay=0.0).step()
        moved = weight.item() - step.weight
        assert math.isclose(example.cells[f"1-{at}"].answer[0], moved, rel_tol=1e-4), rule
        assert math.isclose(example.cells[f"2-{at}"].answer[0], weight.item(), abs_tol=1e-5)
        twin = copy.deepcopy(model).double()
        with torch.no_grad():
            twin.get_parameter(name)[step.matrix.start + row, column] += step.steps[rule]
            after = float(exact_loss(twin))
        assert math.isclose(step.after[rule], after, rel_tol=1e-12)
        predicted = example.cells[f"3-{at}"].answer[0]
        assert abs(predicted - after) < 0.25 * abs(step.loss - after) + 1e-6, "to first order"
        shown = float(example.result.partition(("SGD ", "AdamW ")[at])[2].partition(",")[0].rstrip("."))
        assert math.isclose(shown, after, abs_tol=1e-5)


def test_mistakes_of_a_step_are_named() -> None:
    _, step = small_step()
    example = step_example()
    g, w = example.cells["0-0"].answer[0], round(step.weight, example.cells["2-0"].form.decimals)
    rate, adamw = step.rates["sgd"], step.rates["adamw"]
    assert "other way round" in hint_of(example, "0-0", -g)
    assert f"{2 * EPSILON:g} apart" in hint_of(example, "0-0", 2 * g)
    assert "uphill" in hint_of(example, "1-0", rate * g)
    assert "learning rate" in hint_of(example, "1-0", -g)
    assert "divided by the learning rate" in hint_of(example, "1-0", -g / rate)
    assert "uphill" in hint_of(example, "1-1", math.copysign(adamw, g))
    assert "bias correction" in hint_of(example, "1-1", -math.copysign(adamw, g) * 0.1 / math.sqrt(0.001))
    assert "uphill" in hint_of(example, "2-0", w + rate * g)
    assert "Add it to the weight" in hint_of(example, "2-0", -rate * g)
    loss = round(step.loss, example.cells["3-0"].form.decimals)
    assert "opposite signs" in hint_of(example, "3-0", loss + rate * g * g)
    assert "Add it to the loss" in hint_of(example, "3-0", -rate * g * g)
    assert "Multiply it by the gradient" in hint_of(example, "3-0", loss - rate * g)


def test_a_weight_without_a_gradient_is_no_example() -> None:
    _, step = small_step()
    assert backward_step.single_weight(replace(step, gradient=0.0), "W") is None


def test_measuring_a_step_leaves_the_model_as_it_is() -> None:
    model = loud(tiny(), factor=4.0).requires_grad_(False)
    before = {name: p.clone() for name, p in model.named_parameters()}
    finish(weight_step(model, IDS, "1.W_out", 0, 1.0))
    assert all(torch.equal(before[name], p) for name, p in model.named_parameters())
    with pytest.raises(Exception, match="is not a matrix"):
        finish(weight_step(model, IDS, "7.W_out", 0, 1.0))
