"""What is packed comes back equal bit by bit, types included; what has no name of the libraries is refused."""

from __future__ import annotations

import io
import math
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from engine.config import ModelConfig
from engine.data.tokenizers.char import CharTokenizer
from engine.parts.registry import HEALTHY
from runs.packing import Unsendable, name_of, named, pack, receive, send, unpack
from studies.circuits import in_context
from studies.circuits.patching import Patching, patch
from studies.circuits.prompt_pairs import Contrast
from studies.experiments import preference_runs, reward_runs, scaling
from studies.lab.doctor import story
from tests.engine.cases import for_each
from tests.runs.packed import same

VALUES: dict[str, Any] = {
    "plain": (None, True, 1, 2**70, -0.0, math.inf, "a\n\ud800é", b"\x00\xff"),
    "containers": ([1, (2, [3.5])], {(1, 2): {"a": []}, None: ()}, {1, 2}, frozenset({"x"})),
    "numbers": (np.float32(1 / 3), np.int64(-5), np.bool_(True)),
    "arrays": [
        np.arange(6.0).reshape(2, 3).T,
        np.zeros((0, 4), np.int32),
        np.array(["ab", "c"]),
        np.array(True),
    ],
    "tensors": [
        torch.arange(4).bfloat16().reshape(2, 2),
        torch.zeros(0, 3),
        torch.tensor(1.5),
        torch.tensor([True]),
    ],
    "records": (
        CharTokenizer("ab"),
        ModelConfig(d_model=32),
        Patching("z", np.ones((1, 2)), Contrast(1.0, -1.0, (0, 1))),
    ),
    "results": [shipped()[0] for shipped in (reward_runs.shipped, preference_runs.shipped, scaling.shipped)],
    "named results": [story.shipped(), list(in_context.learn(in_context.Regression(d=2, steps=2, seeds=2)))],
    "names": (patch, HEALTHY, ModelConfig),
}


@for_each("name", list(VALUES))
def test_a_value_comes_back_as_it_was(name: str) -> None:
    assert same(unpack(pack(VALUES[name])), VALUES[name])


def test_nan_stays_nan_and_an_array_that_nobody_may_write_into_stays_one() -> None:
    array = np.full(3, np.nan, np.float32)
    array.flags.writeable = False
    back = unpack(pack((array, math.nan)))
    assert not back[0].flags.writeable and back[0].tobytes() == array.tobytes() and math.isnan(back[1])
    assert unpack(pack(np.ones(2))).flags.writeable


def test_what_is_held_travels_as_a_number() -> None:
    model = object()
    data = pack([model, (model, 3)], lambda value: 7 if value is model else None)
    assert unpack(data, {7: "there"}) == ["there", ("there", 3)]
    with pytest.raises(KeyError):
        unpack(data)


@for_each(
    "value",
    [
        object(),
        partial(patch),
        lambda: 1,
        VALUES.get,
        pytest.fixture,
        np.array([object()]),
        test_nan_stays_nan_and_an_array_that_nobody_may_write_into_stays_one,
    ],
)
def test_what_is_none_of_the_libraries_does_not_travel(value: Any) -> None:
    with pytest.raises(Unsendable):
        pack(value)


@for_each(
    "name", ["os:system", "studies.circuits.patching:os", "studies.nothing:x", "engine.config:nothing", ":"]
)
def test_no_other_name_is_looked_up(name: str) -> None:
    with pytest.raises(Unsendable):
        named(name)
    forged = pack(patch).replace(name_of(patch).encode(), name.ljust(len(name_of(patch))).encode())
    with pytest.raises(Unsendable):
        unpack(forged)


def test_a_message_that_was_cut_short_is_none() -> None:
    file = io.BytesIO()
    for data in (b"abc", b""):
        send(file, data)
    whole = file.getvalue()
    file.seek(0)
    assert [receive(file), receive(file), receive(file)] == [b"abc", b"", None]
    assert receive(io.BytesIO(whole[:9])) is None
