"""Results that are kept for everybody: once, shared, and within so many bytes."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from runs import profiles
from runs.profiles import PROFILES
from ui import background_jobs, memo

MB = 1 << 20


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(profiles.VARIABLE, "small")
    memo.clear()
    yield
    memo.clear()


def test_ever_new_texts_stay_within_the_bytes_of_the_profile() -> None:
    made = []

    @memo.measured()
    def measure(text: str) -> np.ndarray:
        made.append(text)
        return np.ones(MB // 8)

    for n in range(200):
        measure(str(n))
        assert memo.MEASURED.held.bytes <= PROFILES["small"].measured_bytes
    assert len(made) == 200
    measure("199"), measure("198")
    assert len(made) == 200, "the last ones are known"
    measure("0")
    assert len(made) == 201, "the first one is not"


def test_a_result_that_is_larger_than_all_is_given_and_not_kept() -> None:
    most = PROFILES["small"].measured_bytes

    @memo.measured()
    def measure(_n: int = 0) -> np.ndarray:
        return np.ones(most, np.uint8)

    @memo.loaded()
    def load(_n: int = 0) -> np.ndarray:
        return np.ones(PROFILES["small"].loaded_bytes, np.uint8)

    assert measure() is not measure() and memo.MEASURED.held.bytes == 0
    assert load() is load(), "a model is asked for at every step"


def test_a_result_is_made_once_however_many_ask_at_once() -> None:
    made, gate = [], threading.Barrier(8)

    @memo.measured()
    def measure(n: int) -> object:
        made.append(n)
        threading.Event().wait(0.05)
        return object()

    def ask(_: int) -> object:
        gate.wait()
        return measure(1)

    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(ask, range(8)))
    assert made == [1] and len(set(map(id, results))) == 1
    assert not memo.MEASURED._made


def test_a_result_that_fails_is_tried_again() -> None:
    tries = []

    @memo.measured()
    def measure(n: int) -> None:
        tries.append(n)
        if len(tries) == 1:
            raise ValueError
        return None

    with pytest.raises(ValueError):
        measure(1)
    assert measure(1) is None and measure(1) is None and tries == [1, 1], "None is a result, too"


def test_what_is_copied_may_be_changed_by_who_asked() -> None:
    @memo.measured(copied=True)
    def table() -> dict[str, list[int]]:
        return {"a": [1]}

    table()["a"].append(2)
    assert table() == {"a": [1]}


@dataclass(frozen=True)
class Fields:
    n: int
    text: str = "a"


@pytest.mark.parametrize(
    "other", [2, 1.0, True, "1", None, (1,), [1], {1: 1}, Fields(1), np.ones(1), np.ones(2), np.ones(1, int)]
)
def test_every_argument_names_its_own_result(other: Any) -> None:
    @memo.measured()
    def measure(value: Any, _rest: object = None) -> list[Any]:
        return [value]

    first, second = measure(1, object()), measure(other, object())
    assert first is not second
    assert measure(1, object()) is first and measure(other, object()) is second


def test_two_functions_of_one_argument_have_two_results() -> None:
    def one(n: int) -> int:
        return n

    def other(n: int) -> int:
        return -n

    assert (memo.measured()(one)(3), memo.measured()(other)(3)) == (3, -3)


class Slots:
    __slots__ = ("array",)

    def __init__(self) -> None:
        self.array = np.ones(MB, np.uint8)


def test_the_size_of_a_result_is_that_of_its_arrays() -> None:
    array, tensor = np.ones(MB, np.uint8), torch.ones(MB, dtype=torch.uint8)
    model = torch.nn.Linear(512, 512, bias=False)
    sizes = {
        "array": (array, 1), "view": (array[:5], 1), "twice": ([array, array[1:]], 1),
        "tensor": (tensor, 1), "tensor's view": (tensor[:5], 1), "dictionary": ({"a": array, 2: [tensor]}, 2),
        "model": (model, 1), "table": (pd.DataFrame({"a": np.ones(MB // 8)}), 1), "slots": (Slots(), 1),
        "text": ("x" * MB, 1), "bytes": (bytes(MB), 1), "numbers": (tuple(range(1000, 1000 + MB // 36)), 1),
        "function": (len, 0), "none": (None, 0),
    }  # fmt: skip
    found = {name: memo.size_of(value) / MB for name, (value, _) in sizes.items()}
    assert found == pytest.approx({name: size for name, (_, size) in sizes.items()}, abs=0.02)
    assert memo.size_of((model, array), [model]) / MB == pytest.approx(1, abs=0.01), "a model that was given"


def test_results_of_slow_measurements_are_few_bytes_too() -> None:
    jobs = background_jobs.Jobs()
    most = PROFILES["small"].measured_bytes

    def measure() -> Any:
        yield background_jobs.Progress(0, 1)
        return np.ones(most // 4, np.uint8)

    for n in range(12):
        key = ("large", n)
        assert jobs.of(key, measure).wait(30)
        assert (job := jobs.get(key)) is not None and job.result.nbytes == most // 4
        assert sum(each.bytes for each in jobs._jobs.values()) <= most
    assert jobs.get(("large", 0)) is None and jobs.get(("large", 11)) is not None
