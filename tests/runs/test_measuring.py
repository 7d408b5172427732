"""What is measured in another process is what is measured here, bit by bit; the process never outlives its use."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest
import torch

from engine.config import SampleConfig, TrainConfig
from engine.data.corpora import from_text
from engine.data.corpus import Corpus
from engine.data.progress import Progress, Steps, finish, single_piece
from engine.data.tokenizers import bpe
from engine.data.tokenizers.char import CharTokenizer
from engine.model import Transformer, build
from engine.parts.registry import HEALTHY, swapped
from engine.recording import on_recording
from runs import measuring
from runs.measure_worker import WAITED_FOR_SECONDS
from runs.measuring import MeasureError, MeasureFault, Measurer, Measurers, travels
from runs.packing import Unsendable, pack
from runs.process_guards import FIRST
from studies.after.finetune import FinetuneRecipe, Lesson
from studies.after.new_fact import Question, ask, teach
from studies.after.new_text import split, teach_text
from studies.attention.ablation import each_head_off
from studies.circuits.examples_in_prompt import measure as few_shot
from studies.circuits.induction import read_twice, repeated
from studies.circuits.knockout import knock_out
from studies.circuits.patching import patch
from studies.circuits.prompt_pairs import Prompts
from studies.circuits.quantisation import losses
from studies.circuits.sinks import measure as sinks
from studies.circuits.steering import continued, cost_on, direction
from studies.experiments.no_residual import compare
from studies.feedforward.dropout import passes
from studies.feedforward.neurons import activations_near, scan
from studies.generation.beam import beam_search
from studies.generation.decoding_comparison import rivals, write_each
from studies.generation.kv_cache import comparing
from studies.lab.doctor.case import Case
from studies.lab.doctor.checks import examine
from studies.lab.doctor.parts_swap import grafted
from studies.lab.doctor.story import play_named
from studies.residual.gradient_by_depth import Plan
from studies.residual.gradient_by_depth import measuring as profiles
from studies.residual.lens import lens_steps
from studies.shapes.backward import backward, nudges
from studies.shapes.optimiser_step import single_step, spectra, weight_step
from studies.weights.pretrained import library
from tests.engine.helpers import loud, tiny
from tests.runs.packed import same
from tests.runs.running import freeze, lives, wait
from tests.studies.pretrained.gguf_files import WORDS as WORDS_OF_GGUF
from tests.studies.pretrained.gguf_files import llama_file

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="these tests look at processes through /proc"
)
ROOT = Path(__file__).resolve().parents[2]
TEXT = "the sea and the shells; " * 40
IDS = tuple(CharTokenizer.train(TEXT).encode(TEXT[:12]))


@pytest.fixture(scope="module")
def measurers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Measurers]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        made = Measurers(1)
        warm(made)
        yield made
    pids = made.pids()
    made.close()
    assert pids and not any(map(lives, pids)) and made.pids() == []


def warm(measurers: Measurers) -> Measurer:
    """The process, once it waits for work."""
    assert finish(measurers.steps(partial(single_piece, max, 1, 2))) == 2, (
        "the first is measured here meanwhile"
    )
    return wait(lambda: next((w for w in measurers._workers if w.ready and not w.ended and not w.busy), None))


def model() -> Transformer:
    return loud(tiny(vocab_size=CharTokenizer.train(TEXT).vocab_size, context=16, n_layers=2, n_heads=2))


def corpus() -> Corpus:
    return from_text(TEXT)


MODEL, CORPUS = model(), corpus()
TOKENIZER = CharTokenizer.train(TEXT)
PROMPTS = Prompts(IDS[:6], (*IDS[:2], IDS[3], *IDS[3:6]), (1, 2))
SAMPLING = SampleConfig(temperature=0.8, top_p=0.9, seed=3)
ADDED = direction(MODEL, TOKENIZER, "the", "sea", 1, "every")
LONG = np.tile(np.array(TOKENIZER.encode(TEXT)), 3)
BEAM = finish(beam_search(MODEL, IDS[:4], 3, 2))
PREDICTED = backward(MODEL, IDS, 5)
MATRIX = next(iter(PREDICTED.gradients))
ENTRY = next((i, j) for i in range(9) for j in range(9) if PREDICTED.gradients[MATRIX].has((i, j)))
PAIRS = [(a + b, b + b + a) for a in "thesa" for b in "lands"]
WORDS = bpe.train(" ".join(word for pair in PAIRS for word in pair) * 4, 400)
MEASURES: dict[str, partial[Steps[Any]]] = {
    "patching": partial(patch, MODEL, PROMPTS, "resid_pre"),
    "patching heads": partial(patch, MODEL, PROMPTS, "z"),
    "steering": partial(continued, MODEL, ADDED, 1.5, IDS[:4], 6, SAMPLING, (1, 2)),
    "steering cost": partial(cost_on, MODEL, ADDED, (-1.0, 0.0, 1.0), LONG.tolist(), (), 8, 3),
    "sinks": partial(sinks, MODEL, IDS, 3),
    "induction": partial(knock_out, MODEL, read_twice(MODEL, IDS[:8])),
    "repeated": partial(repeated, MODEL, sequences=1, pool=np.arange(9), count=7),
    "quantisation": partial(losses, MODEL, IDS, ("blocks.0.ffn.w_in.weight",), True),
    "contexts": partial(scan, MODEL, LONG[:64], window=16, batch=2),
    "contexts near": partial(activations_near, MODEL, LONG, 0, 2, (0, 16), 16, batch=1),
    "dropout": partial(on_recording, passes, MODEL, IDS, 4, 0.1, 5),
    "lens": partial(on_recording, lens_steps, MODEL, IDS),
    "each head off": partial(on_recording, each_head_off, MODEL, IDS, "zero"),
    "residuals": partial(compare, 2, "layernorm", CORPUS, 2),
    "wirings": partial(profiles, Plan(depths=(2,), seeds=1), CORPUS),
    "backward": partial(single_piece, backward, MODEL, IDS, 5),
    "single step": partial(single_step, MODEL, IDS),
    "spectra": partial(spectra, MODEL, IDS, MATRIX),
    "weight step": partial(weight_step, MODEL, IDS, MATRIX, 2, 0.5),
    "nudges": partial(nudges, MODEL, PREDICTED, MATRIX, ENTRY),
    "beam": partial(beam_search, MODEL, IDS[:4], 3, 2, length_penalty=0.7, stop=frozenset({1}), shown=4),
    "rivals": partial(single_piece, rivals, MODEL, IDS[:4], BEAM, 3, frozenset({1}), 0),
    "kv": partial(comparing, MODEL, IDS[:4], 5, SAMPLING),
    "temperatures": partial(write_each, MODEL, TOKENIZER, IDS[:4], 4, [SAMPLING], {1}),
    "few shot": partial(few_shot, loud(tiny(vocab_size=WORDS.vocab_size, context=256)), WORDS, PAIRS, 1),
    "asked": partial(ask, MODEL, TOKENIZER, (Question("the ", "sea"),), 2),
    "fine-tuning": partial(
        teach,
        MODEL,
        TOKENIZER,
        (Lesson("the sea"),),
        (Question("the", "s"),),
        FinetuneRecipe(steps=2, rank=1),
        2,
        TEXT[:9],
    ),
    "fine-tuning all": partial(
        teach, MODEL, TOKENIZER, (Lesson("sea"),), (Question("t", "h"),), FinetuneRecipe(steps=1, rank=0)
    ),
    "another text": partial(
        teach_text, MODEL, TOKENIZER, split(TEXT, TEXT[::-1], TOKENIZER), FinetuneRecipe(steps=2), True, "the"
    ),
}


@pytest.mark.parametrize("name", MEASURES)
def test_the_result_is_equal_bit_by_bit(name: str, measurers: Measurers) -> None:
    steps: list[Progress] = []
    worker = warm(measurers)
    there = finish(worker_steps(worker, MEASURES[name]), steps.append)
    assert same(there, finish(MEASURES[name]())) and not worker.ended
    assert all(step.share <= 1 for step in steps)


def test_what_the_doctor_finds_is_equal_but_for_the_seconds(measurers: Measurers) -> None:
    names, steps = ("future", "rows", "order", "cached"), list[Progress]()
    case = Case(grafted(MODEL, "leaky_mask"), train=TrainConfig(), corpus=CORPUS)
    there = finish(worker_steps(warm(measurers), partial(examine, case, names)), steps.append)
    here = finish(examine(case, names))
    assert same([replace(f, seconds=0.0) for f in there], [replace(f, seconds=0.0) for f in here])
    assert {f.verdict for f in there} >= {"pass", "fail"} and any(type(at.so_far) is tuple for at in steps)


def all_sent(worker: Measurer, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Every message that goes to a process from now on, as they go."""
    sent, send = list[bytes](), worker._send

    def listening(data: bytes) -> None:
        sent.append(data)
        send(data)

    monkeypatch.setattr(worker, "_send", listening)
    return sent


def worker_steps(worker: Measurer, measure: partial[Steps[Any]]) -> Steps[Any]:
    """Measures in this process and nowhere else."""
    worker.begin(measure)
    return (yield from worker.steps())


def test_a_model_is_sent_a_single_time_and_few_are_held(
    measurers: Measurers, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = warm(measurers)
    sent = all_sent(worker, monkeypatch)
    other = model()
    size = sum(p.nbytes for p in other.parameters())
    monkeypatch.setattr(worker, "_most", size)
    for each, new in ((other, True), (other, False), (MODEL, True), (other, True)):
        sent.clear()
        result = finish(worker_steps(worker, partial(sinks, each, IDS, 3)))
        assert (len(sent[0]) > size) == new and same(result, finish(sinks(each, IDS, 3)))
        assert sum(worker._held.values()) == size
    monkeypatch.setattr(worker, "_most", size - 1)
    with pytest.raises(Unsendable, match="bytes of models and texts"):
        worker.begin(partial(sinks, other, IDS, 3))
    assert same(finish(measurers.steps(partial(sinks, other, IDS, 3))), result), "then it is measured here"


SLOW = partial(scan, MODEL, np.tile(LONG, 2_000), window=16, batch=1)  # minutes


def begun(worker: Measurer, measure: partial[Steps[Any]] = SLOW) -> Steps[Any]:
    """A measurement that is on its way."""
    steps = worker_steps(worker, measure)
    assert any(next(steps).done for _ in range(500))
    return steps


def test_what_is_left_ends_with_its_step_and_the_process_goes_on(measurers: Measurers) -> None:
    worker = warm(measurers)
    begun(worker).close()
    assert not worker.ended and worker is warm(measurers)
    assert same(finish(worker_steps(worker, MEASURES["sinks"])), finish(MEASURES["sinks"]()))


def test_a_measurement_that_rests_leaves_its_process_to_the_next_and_goes_on(measurers: Measurers) -> None:
    worker, other = warm(measurers), model()
    long = measurers.steps(partial(scan, other, LONG, window=16, batch=1))
    assert any(next(long).done for _ in range(500))
    left = measurers.steps(SLOW)
    assert any(next(left).done for _ in range(500))
    for name in ("sinks", "patching"):
        assert same(finish(measurers.steps(MEASURES[name])), finish(MEASURES[name]()))
    with pytest.raises(MeasureError, match="give at least"):
        finish(measurers.steps(partial(sinks, other, (1,), 3)))
    assert worker.busy == 2 and worker._number - max(worker._messages) == 3, "in that one process"
    left.close()
    assert same(finish(long), finish(scan(other, LONG, window=16, batch=1)))
    assert worker is warm(measurers) and not worker._messages and not worker._needs
    assert same(finish(measurers.steps(MEASURES["sinks"])), finish(MEASURES["sinks"]()))


def test_what_rests_takes_no_more_of_its_process_than_there_may_be(
    measurers: Measurers, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, other = warm(measurers), model()
    resting = measurers.steps(SLOW)
    assert any(next(resting).done for _ in range(500))
    monkeypatch.setattr(worker, "_most", sum(sum(each.values()) for each in worker._needs.values()))
    assert worker.rests
    monkeypatch.setattr(measuring, "OPEN", 1)
    assert not worker.rests and not measurers.idle()
    monkeypatch.undo()
    monkeypatch.setattr(worker, "_most", sum(sum(each.values()) for each in worker._needs.values()))
    with pytest.raises(Unsendable, match="bytes of models and texts"):
        worker.begin(partial(sinks, other, IDS, 3))
    resting.close()
    assert same(finish(worker_steps(worker, partial(sinks, other, IDS, 3))), finish(sinks(other, IDS, 3)))
    assert measurers.idle()


def test_it_stands_still_while_nobody_waits(measurers: Measurers) -> None:
    worker = warm(measurers)
    steps = begun(worker)
    time.sleep(WAITED_FOR_SECONDS + 1.0)
    (messages,) = worker._messages.values()
    waiting = messages.qsize()
    time.sleep(1.0)
    assert waiting and messages.qsize() == waiting, "as a paused measurement does"
    at = next(steps).done
    assert any(next(steps).done > at for _ in range(waiting + 50))
    steps.close()


def test_a_killed_process_is_a_sentence_and_so_is_a_stopped_one_that_takes_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measurers = Measurers(1)
    try:
        first = warm(measurers)
        assert int(Path(f"/proc/{first.pid}/oom_score_adj").read_text()) >= FIRST
        assert os.getpriority(os.PRIO_PROCESS, first.pid) > os.getpriority(os.PRIO_PROCESS, os.getpid())
        steps = begun(first)
        os.kill(first.pid, signal.SIGKILL)
        with pytest.raises(MeasureError, match="ended from outside"):
            finish(steps)
        second = warm(measurers)
        assert measurers.pids() == [second.pid] != [first.pid]
        steps = begun(second)
        monkeypatch.setattr(measuring, "SILENT_SECONDS", 1.0)
        freeze(second.pid)
        with pytest.raises(MeasureError, match="ended from outside"):
            finish(steps)
        wait(lambda: not lives(second.pid))
    finally:
        measurers.close()


def test_a_refusal_is_its_sentence_and_a_fault_is_raised_with_its_trace(measurers: Measurers) -> None:
    worker = warm(measurers)
    with pytest.raises(MeasureError, match="give at least"):
        finish(worker_steps(worker, partial(sinks, MODEL, (1,), 3)))
    with pytest.raises(MeasureFault, match="KeyError") as fault:
        finish(worker_steps(worker, partial(play_named, "nothing", CORPUS)))
    assert "play_named" in fault.value.__notes__[0]


def test_a_model_that_came_with_a_refusal_is_there(
    measurers: Measurers, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, other = warm(measurers), model()
    sent, size = all_sent(worker, monkeypatch), sum(p.nbytes for p in other.parameters())
    for new in (True, False):
        sent.clear()
        with pytest.raises(MeasureError, match="give at least"):
            finish(worker_steps(worker, partial(sinks, other, (1,), 3)))
        assert (len(sent[0]) > size) == new
    assert same(finish(worker_steps(worker, partial(sinks, other, IDS, 3))), finish(sinks(other, IDS, 3)))


def test_a_model_whose_weights_have_become_nan_travels_as_it_is(measurers: Measurers) -> None:
    nan = model()
    with torch.no_grad():
        next(nan.parameters()).fill_(float("nan"))
    there = finish(worker_steps(warm(measurers), partial(sinks, nan, IDS, 3)))
    assert same(there, finish(sinks(nan, IDS, 3)))


def test_a_published_model_and_its_vocabulary_go_by_their_name(
    measurers: Measurers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    llama_file(tmp_path / "small.gguf", WORDS_OF_GGUF)
    found = library.load("small", 10**9, tmp_path / "small.gguf")
    worker = warm(measurers)
    sent = all_sent(worker, monkeypatch)
    measure = partial(write_each, found.model, found.tokenizer, (1, 2), 6, [SAMPLING])
    assert same(finish(worker_steps(worker, measure)), finish(measure()))
    assert len(sent[0]) < 2_000 < sum(p.nbytes for p in found.model.parameters())
    assert library.origin(found.model) == ("small", tmp_path / "small.gguf") and library.origin(MODEL) is None


def test_parts_that_have_no_name_are_measured_here(measurers: Measurers) -> None:
    sick = build(MODEL.config, parts=swapped(HEALTHY, "nameless"))
    worker = warm(measurers)
    for _ in range(2):
        with pytest.raises(Unsendable, match="Parts does not travel"):
            worker.begin(partial(sinks, sick, IDS, 3))
    assert same(finish(measurers.steps(partial(sinks, sick, IDS, 3))), finish(sinks(sick, IDS, 3)))


def test_no_function_but_of_the_libraries_is_called(measurers: Measurers) -> None:
    worker = warm(measurers)
    call = pack((sinks, (), {})).replace(b"studies.circuits.sinks:measure", b"os:system".ljust(30))
    worker._number += 1
    worker._messages[worker._number], worker._new[worker._number] = SimpleQueue(), ()
    worker._send(b"o" + pack((worker._number, (), pack({}), call)))
    with pytest.raises(MeasureFault, match="neither of engine nor of studies"):
        finish(worker.steps())
    assert not travels(partial(os.system, "true")) and not travels(lambda: sinks(MODEL, IDS, 3))


def test_the_process_ends_with_who_started_it() -> None:
    code = (
        "from tests.runs.test_measuring import *; from runs.measuring import Measurers\n"
        "measurers = Measurers(1); worker = warm(measurers); steps = begun(worker); print(worker.pid, flush=True); finish(steps)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.kill()
    parent.communicate()
    wait(lambda: not lives(child))


def test_without_processes_everything_is_measured_here() -> None:
    measurers = Measurers(0)
    assert (
        same(finish(measurers.steps(MEASURES["sinks"])), finish(MEASURES["sinks"]()))
        and not measurers._workers
    )
    measurers.close()
