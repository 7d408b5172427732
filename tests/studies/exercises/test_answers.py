"""Every answer a second time, the hint of every mistake, proofs as orders, and what strangers type."""

from __future__ import annotations

import functools
import itertools
import re
from random import Random

import numpy as np
import pytest

from studies.exercises import catalogue, reading
from studies.exercises.catalogue import SETS, TASKS
from studies.exercises.exercise import RIGHT, Exercise, check
from studies.exercises.forms import Choice, Numbers, Order, Pick
from studies.exercises.sets import bugs, families
from studies.exercises.sheet import block, chosen, sheet
from tests.engine.cases import for_each
from tests.studies.exercises.answers import ANSWERS

make = functools.cache(catalogue.make)
IN_WORDS = {*SETS["families"].tasks, *SETS["proofs"].tasks} - {"match"}
COUNTED = [task for task in TASKS if task not in IN_WORDS]
PROOFS = list(SETS["proofs"].tasks)
# published: Devlin 2019, Liu 2019; Radford 2019, Touvron 2023, Jiang 2023; Raffel 2020, Lewis 2020, Radford 2022, Vaswani 2017
ENCODERS, DECODERS = {"BERT", "RoBERTa"}, {"GPT-2", "LLaMA", "Mistral"}
BOTH = {"T5", "BART", "Whisper", "the original Transformer"}


@pytest.fixture(scope="session")
def seeds(request: pytest.FixtureRequest) -> range:
    return range(200 if request.config.getoption("exhaustive") else 50)


def given_for(exercise: Exercise, value) -> object:
    if isinstance(exercise.form, Choice | Pick):
        return value
    if isinstance(exercise.form, Order):
        return " ".join(exercise.form.letter(step) for step in value)
    return exercise.form.text(value).strip("`")


def agree(exercise: Exercise, ours, theirs) -> bool:
    if isinstance(exercise.form, Numbers):
        wanted = np.atleast_1d(np.asarray(theirs, dtype=float))
        return len(ours) == len(wanted) and np.allclose(ours, wanted, rtol=1e-12, atol=1e-12)
    return ours == theirs


@for_each("task", COUNTED)
def test_the_answer_is_worked_out_right(seeds: range, task: str) -> None:
    for seed in seeds:
        exercise = make(task, seed)
        assert agree(exercise, exercise.answer, ANSWERS[task](exercise.given)), (seed, exercise.statement)


@for_each("task", TASKS)
def test_every_known_mistake_gets_its_hint_and_the_answer_is_right(seeds: range, task: str) -> None:
    for seed in seeds:
        exercise = make(task, seed)
        right = check(exercise, given_for(exercise, exercise.answer))
        assert right.right and right.hint == RIGHT
        assert exercise.mistakes and len({one.hint for one in exercise.mistakes}) == len(exercise.mistakes)
        values = [exercise.answer, *(mistake.value for mistake in exercise.mistakes)]
        for value, other in itertools.combinations(values, 2):
            assert not exercise.form.near(other, value), seed  # else a hint may name the wrong mistake
        for mistake in exercise.mistakes:
            said = given_for(exercise, mistake.value)
            if isinstance(exercise.form, Numbers) and any(one % 1 for one in mistake.value):
                said = " ".join(f"{one:.{exercise.form.decimals or 2}f}" for one in mistake.value)
            verdict = check(exercise, said)
            assert (verdict.right, verdict.hint) == (False, mistake.hint), (seed, mistake)


@for_each("task", COUNTED)
def test_the_numbers_that_were_drawn_stand_in_the_statement(task: str) -> None:
    for seed in range(20):
        exercise = make(task, seed)
        text = re.sub(r"(?<=\d),(?=\d{3})", "", exercise.statement)
        for name, value in exercise.given.items():
            if name in DERIVED.get(task, ()) or name == "right":
                continue
            for number in numbers_of(value):
                assert any(abs(number - seen) < 1e-9 for seen in figures(text)), (task, seed, name, number)


# what a statement says in another way: [name] is not written as it was drawn
DERIVED = {
    "row": ("at",), "share": ("times",), "top-k": ("shares",), "top-p": ("shares", "p"), "alibi": ("power",),
    "vocabulary": ("special",), "grammar": ("shares", "allowed"), "soft-target": ("at",),
}  # fmt: skip


def numbers_of(value) -> list[float]:
    if isinstance(value, dict):
        return [float(one) for one in value.values()]
    if isinstance(value, list):
        return [number for one in value for number in numbers_of(one)]
    return [float(value)] if isinstance(value, int | float) else []


def figures(text: str) -> list[float]:
    return [float(one) for one in re.findall(r"-?\d+(?:\.\d+)?", text)]


def test_families_are_the_published_ones(seeds: range) -> None:
    published = {"Encoder only": ENCODERS, "Decoder only": DECODERS, "Encoder and decoder": BOTH}
    for seed in seeds:
        exercise = make("known", seed)
        assert exercise.answer == published[exercise.given["family"]] & set(exercise.form.options)
        assert len(exercise.answer) == 2 and len(exercise.form.options) == 6


def test_each_place_has_its_mask() -> None:
    """A hint about an answer that is right by half says which half."""
    for seed in range(40):
        exercise = make("masks", seed)
        causal = "decoder that" in exercise.given["place"]
        assert exercise.answer == ("Causal" if causal else "Padding of the source")
        for mistake in exercise.mistakes:
            if "padding" in mistake.value:
                assert mistake.hint.startswith("Causal is right." if causal else "Padding is right.")


def test_bugs_that_show_in_the_loss_are_not_those_that_look_healthy(seeds: range) -> None:
    for seed in seeds:
        exercise = make("healthy-looking", seed)
        assert len(exercise.answer) == 3 and exercise.answer <= set(bugs.FINE)
        for mistake in exercise.mistakes:
            (extra,) = mistake.value - exercise.answer
            assert bugs.BAD[extra] in mistake.hint


def test_the_tests_tell_the_bugs_apart_as_their_words_say(seeds: range) -> None:
    """Only a mask after the softmax, or a softmax over queries, breaks the sums of rows; targets have no mask."""
    findings = {bug: bugs.findings(bug).items() for bug in bugs.BUGS}
    fails = {bug: {test for test, each in tests if each.verdict == "fail"} for bug, tests in findings.items()}
    assert fails == {
        "no_mask": {"future"}, "leaky_mask": {"future"}, "mask_after_softmax": {"future", "rows"},
        "softmax_over_queries": {"future", "rows"}, "not_shifted": {"targets"},
    }  # fmt: skip
    for seed in seeds:
        asked = make("which-test", seed)
        one, other = asked.given["bugs"]
        assert {bugs.CHECKS[test].question for test in fails[one] ^ fails[other]} == {
            option.partition(": ")[2] for option in asked.answer
        }
        named = make("which-bug", seed)
        assert named.answer == bugs.BUGS[named.given["bug"]]
        results = [line.partition("? *")[2] for line in named.statement.split("\n- ")[1:]]
        failed = [test in fails[named.given["bug"]] for test in bugs.READ]
        assert [one.startswith("Yes") for one in results] == [failed[0], not failed[1], not failed[2]]


def test_an_objective_is_that_of_its_family(seeds: range) -> None:
    for seed in seeds:
        exercise = make("objective", seed)
        inputs, targets = (exercise.given[name] for name in ("inputs", "targets"))
        assert exercise.answer == families.OBJECTIVE[exercise.given["family"]]
        words, wanted = inputs[-1].split(), targets.split()
        assert len(words) == len(wanted)
        if "[MASK]" in words:
            assert exercise.answer.endswith(", encoder only")
            hidden = words.index("[MASK]")
            assert wanted[hidden] != "_" and set(wanted[:hidden] + wanted[hidden + 1 :]) == {"_"}
        else:
            assert words[1:] == wanted[:-1], "every target is the next token"
            assert exercise.answer.endswith("decoder only" if len(inputs) == 1 else "encoder and decoder")


@for_each("task, true, false", [
    ("decoders-won", families.WON, families.NOT_WON),
    ("transformer-won", families.REPLACED, families.NOT_REPLACED),
])  # fmt: skip
def test_reasons_are_three_true_ones(
    seeds: range, task: str, true: tuple[str, ...], false: dict[str, str]
) -> None:
    for seed in seeds:
        exercise = make(task, seed)
        assert len(exercise.answer) == 3 and exercise.answer <= set(true)
        assert set(exercise.form.options) - exercise.answer <= set(false)


@for_each("task", PROOFS)
def test_a_proof_is_right_in_every_order_that_its_steps_allow_and_in_no_other(task: str) -> None:
    exercise = make(task, 3)
    form = exercise.form
    assert isinstance(form, Order) and len(form.steps) == len(form.needs) + 2
    valid = 0
    for order in itertools.permutations(form.needs):
        pairs = [(before, step) for step in order for before in form.needs[step]]
        allowed = all(order.index(before) < order.index(step) for before, step in pairs)
        verdict = check(exercise, "".join(form.letter(step) for step in order))
        assert verdict.right is allowed and (allowed or "which comes later" in verdict.hint)
        valid += allowed
    assert 1 <= valid <= 12
    short = " ".join(form.letter(step) for step in exercise.answer[:-1])
    assert check(exercise, short).hint == "So far so good, but 1 step is missing."
    for step, why in form.wrong.items():
        assert why in check(exercise, f"{form.letter(step)} {short}").hint


HOSTILE = [
    *(None, 7, [], {"a": 1}, ["x"], "", "   ", "\x00", "nan", "inf", "1e999", "9" * 399, "x" * 10_000),
    *("😀", "<b>1</b>", "12 apples", "0,5", "1/0", "1//2", "٣", "½", "--1", "{}", "$\\sqrt{2}$", "%s"),
    *("'; DROP TABLE", "1 2 3 4 5 6 7 8 9"),
]


@for_each("task", TASKS)
def test_whatever_is_typed_gets_a_sentence(task: str) -> None:
    exercise = make(task, 5)
    for given in HOSTILE:
        verdict = check(exercise, given)
        first, *_, last = verdict.hint
        begins = first.isupper() or first in "“0123456789"
        assert not verdict.right and begins and last in ".?", (given, verdict)
        assert len(verdict.hint) < 300 and "<" not in verdict.hint


@for_each("text, count, numbers", [
    ("1 048 576", 1, (1_048_576,)), ("124439808.0", 1, (124_439_808,)), ("−0.5", 1, (-0.5,)), ("1/4", 1, (0.25,)),
    ("(2, 4, 8, 8)", None, (2, 4, 8, 8)), ("[[1, 2], [3, 4]]", 4, (1, 2, 3, 4)), ("0.1; 0.2", 2, (0.1, 0.2)),
    ("1\u202f048\u202f576", 1, (1_048_576,)), ("1'048'576", 1, (1_048_576,)), ("\u2248 2.5", 1, (2.5,)),
    ("2 × 3 X 4x5", None, (2, 3, 4, 5)),
])  # fmt: skip
def test_numbers_as_people_write_them(text: str, count: int | None, numbers: tuple[float, ...]) -> None:
    assert reading.numbers(text, count) == numbers


@for_each(
    ("task", "given", "point"),
    [("bits", "1,847", "1.847"), ("score", "2,68", "2.68"), ("row", "0,58 0,21 0,21 0,00", "0.58")],
)
def test_a_decimal_comma_is_neither_thousands_nor_two_numbers(task: str, given: str, point: str) -> None:
    verdict = check(make(task), given)
    assert verdict.hint == f"Write a decimal point instead of the comma: \u201c{point}\u201d."


def test_rounding_is_no_mistake_and_a_whole_number_is_exact() -> None:
    assert Numbers(1, 2).same((2.6833,), (2.68,)) and not Numbers(1, 2).same((2.66,), (2.6833,))
    assert not Numbers().same((100.005,), (100,)) and Numbers().same((8.49,), (8.4853,))
    assert not Numbers().same((1_048_577,), (1_048_576,)) and not Numbers().same((1.0, 2.0), (1.0,))


def test_what_is_no_known_mistake_says_as_much_as_it_may() -> None:
    split, causal, bits, known, left = map(make, ("split", "causal", "bits", "known", "top-p"))
    (first, second), (count,) = split.answer, causal.answer
    (one, other), wrong = sorted(known.answer), next(o for o in known.form.options if o not in known.answer)
    for exercise, given, hint in (
        (split, f"{first} {second + 1000}", "1 of 2 numbers are right."),
        (causal, str(count + 1), "The right number is smaller."),
        (causal, str(count - 1), "The right number is larger."),
        (bits, "1.8", "Close: to 3 decimal places it is larger."),  # 1.847 bits
        (bits, "1.9", "Close: to 3 decimal places it is smaller."),
        (bits, "1.7", "The right number is larger."),
        (known, [one], "What you chose is right, but 1 is missing."),
        # there a hint is about all that was chosen
        (left, [left.form.options[-1]], f"1 of them does not belong, and {len(left.answer)} are missing."),
    ):
        assert check(exercise, given).hint == hint
    assert check(known, [other, one]).right
    for given in ([one, wrong], [wrong], [one, other, wrong]):
        assert check(known, given).hint.startswith(f"{wrong} belongs to another family")


def test_pieces_that_are_none_are_told_from_other_pieces() -> None:
    for seed in range(30):
        first, after = make("merge", seed), make("after", seed)
        a, b = first.answer
        assert check(first, a + b).hint == "A pair is two pieces: write a space between them."
        assert not check(first, f"{b} {a}").right and "more frequent" in check(first, f"{b} {a}").hint
        word = after.given["word"]
        assert check(after, word[:-1]).hint == f"Joined together, the pieces must spell `{word}`."
        verdict = check(after, f"{word[:1]} {word[1:]}")
        known = {mistake.hint for mistake in after.mistakes}
        assert verdict.right or verdict.hint in known or verdict.hint.startswith("The pieces are different.")


def test_a_sheet_is_the_same_for_the_same_seed_and_holds_questions_and_answers() -> None:
    exercises = chosen(["attention", "cache"], 12, 4)
    assert exercises == chosen(["attention", "cache"], 12, 4) != chosen(["attention", "cache"], 12, 5)
    assert len(exercises) == 12 and len({(one.id, one.seed) for one in exercises}) == 12
    assert chosen([], 5, 1) == []
    page = sheet(exercises, "A <script> & title", 4)
    asked, told = page.split('<div class="answers">')
    assert "<script>" not in page and "A &lt;script&gt; &amp; title" in page
    assert "12 exercises, seed 4" in asked
    for place, one in enumerate(exercises, 1):
        answer = one.form.text(one.answer).strip("`")
        assert f"{place}. " in asked and answer not in asked.split("<section>")[place]
        assert answer in told.split("<section>")[place]


def test_all_that_is_said_can_be_printed(seeds: range) -> None:
    """No command of LaTeX that paper does not know, no Markdown left over."""
    for task in TASKS:
        for seed in Random(task).sample(seeds, len(seeds) // 10):
            exercise = make(task, seed)
            for text in (exercise.statement, *exercise.steps, *(one.hint for one in exercise.mistakes)):
                assert not re.search(r"\\|\$|\*\*", block(text)), text
