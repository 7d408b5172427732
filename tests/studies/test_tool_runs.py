"""Calls of a calculator: who writes what, and what stored models do when nobody runs their calls."""

from __future__ import annotations

from collections.abc import Callable

import torch

from engine.data import corpora
from engine.data.progress import finish
from studies.experiments import tool_runs
from studies.experiments.thinking_aloud import recipe
from studies.experiments.tool_runs import RAN, SEEDS, calculator, questions, shipped, write
from studies.tasks.carries import CALLING
from tests.engine.cases import for_each

LETTERS = corpora.load(CALLING.name).tokenizer
QUESTION = "285071+640398="
CALL = "[285071+640398]"


class Scripted:
    """In a model's place: it writes a text, whatever it reads, as far as its own characters go."""

    def __init__(self, continues: Callable[[str], str]) -> None:
        self.continues = continues

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        logits = torch.zeros(*rows.shape, LETTERS.vocab_size)
        for logit, row in zip(logits, rows.tolist(), strict=True):
            logit[-1, LETTERS.encode(self.continues(LETTERS.decode(row)))] = 1.0
        return logits


def script(text: str) -> Scripted:
    return Scripted(lambda read: text[len(read) - 1 - len(QUESTION)])  # a line break stands first


def test_the_harness_stops_the_model_where_its_call_ends_and_writes_the_result():
    text = f"{CALL}?????????0925469".replace("?", "7")
    (stream,) = write(script(text), LETTERS, [QUESTION], calculator())  # type: ignore[arg-type]
    assert stream.pieces == (CALL, "(0925469)", "0925469")
    assert stream.by_model == f"{CALL}0925469" and stream.by_harness == "(0925469)"
    assert stream.result == stream.sum == "0925469" and CALLING.right(stream.line)
    (stream,) = write(script(text), LETTERS, [QUESTION], calculator(off=1))  # type: ignore[arg-type]
    assert stream.pieces == (CALL, "(0925470)", "0925469") and stream.sum != stream.result


def test_nobody_stops_a_model_whose_call_nobody_runs():
    text = f"{CALL}(0000000)0000000"
    (stream,) = write(script(text), LETTERS, [QUESTION], tool_runs.HARNESSES["nobody"])  # type: ignore[arg-type]
    assert stream.pieces == (text,) and stream.result == stream.sum == "0000000"
    assert not CALLING.right(stream.line)


def test_a_call_that_is_none_is_not_run():
    text = CALL.replace("+", "=") + "(0000000)0925469"
    (stream,) = write(script(text), LETTERS, [QUESTION], calculator())  # type: ignore[arg-type]
    assert stream.pieces == (text,)


def test_texts_whose_calls_end_at_different_places_are_written_as_if_alone():
    """The question's first digit says how late the scripted model calls."""
    model = Scripted(lambda read: f"{'9' * int(read[1])}[1+2]".ljust(40, "7")[len(read) - 1 - len(QUESTION)])
    asked = [f"{digit}85071+640398=" for digit in "052"]
    together = write(model, LETTERS, asked, calculator())  # type: ignore[arg-type]
    assert [stream.pieces[0] for stream in together] == ["[1+2]", "99999[1+2]", "99[1+2]"]
    assert {stream.pieces[1] for stream in together} == {"(0000003)"}
    assert all(len(stream.line) == CALLING.length - 1 for stream in together)
    assert together == tuple(write(model, LETTERS, [each], calculator())[0] for each in asked)  # type: ignore[arg-type]


def test_questions_are_held_out_and_always_the_same():
    asked = questions(20)
    assert asked == questions(20) and len(set(asked)) == 20
    assert all(CALLING.for_validation(question) for question in asked)


def test_a_line_holds_its_call_and_its_result():
    assert CALLING.answer is not None
    assert CALLING.answer(QUESTION) == f"{CALL}(0925469)0925469"
    assert CALLING.length == len(QUESTION) + len(CALLING.answer(QUESTION)) + 1


def test_a_short_training_yields_its_looks_and_keeps_the_last_texts():
    looks = []
    run = finish(tool_runs.learn(0, 2), lambda progress: looks.append(progress.so_far))
    assert run.plan == 0 and [look.step for look in run.looks] == [0, 2] and looks[-1] == run.looks
    assert not run.looks[0].streams and len(run.looks[-1].streams) == len(RAN)
    assert 0 <= run.looks[-1].copied <= 1


@for_each("seed", SEEDS)
def test_stored_models_add_only_where_somebody_runs_their_calls(seed: int):
    run = {each.plan: each for each in shipped()}[seed]
    last = run.looks[-1]
    assert last.step == recipe(CALLING)[1].steps and "studies.experiments tools" in run.made
    right, repeated = dict(zip(RAN, last.right, strict=True)), dict(zip(RAN, last.repeated, strict=True))
    assert last.copied >= 0.95 and right["run"] >= 0.95 and repeated["broken"] >= 0.95
    assert right["nobody"] < right["run"] and right["broken"] == 0 and last.made_up >= 0.95
    for ran, streams in zip(RAN, last.streams, strict=True):
        for stream, question in zip(streams, questions(tool_runs.SHOWN), strict=True):
            assert stream.question == question and len(stream.line) == CALLING.length - 1
            assert bool(stream.by_harness) == (ran != "nobody")


def test_some_seeds_learn_to_add_beside_their_calls_and_some_do_not():
    shares = [run.looks[-1].right[RAN.index("nobody")] for run in shipped()]
    assert min(shares) <= 0.05 and max(shares) >= 0.5
