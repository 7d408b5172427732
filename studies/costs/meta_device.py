"""Passes on PyTorch's meta device, which has shapes but no numbers, without PyTorch's compiler.

There PyTorch asks its compiler for each size whether it is symbolic, and so imports 800 modules at the first
operation: 1.1 s in which a server does nothing else, and 70 MB. Here every size is a number.
"""

from __future__ import annotations

import operator
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from importlib import import_module
from types import ModuleType
from typing import Any

SYMBOLS = "torch.fx.experimental.symbolic_shapes"
STOOD_IN = "sympy", SYMBOLS, "torch._dynamo"
_one_at_a_time, _making_way = threading.RLock(), threading.Lock()


def _itself(value: Any, *_: object, **__: object) -> Any:
    return value


def _all(first: Any, *others: Any) -> Any:
    return reduce(operator.and_, others, first)


def _any(first: Any, *others: Any) -> Any:
    return reduce(operator.or_, others, first)


# What PyTorch 2.13 asks on the way, and the answer for numbers.
ANSWERS: dict[str, Any] = {
    **dict.fromkeys(
        (
            "expect_true",
            "guard_or_false",
            "guard_or_true",
            "guard_size_oblivious",
            "guarding_hint_or_throw",
            "statically_known_true",
        ),
        _itself,
    ),
    "has_guarding_hint": lambda _: True,
    "is_nested_int": lambda _: False,
    "sym_and": _all,
    "sym_eq": operator.eq,
    "sym_or": _any,
}


class _StandIn(ModuleType):
    """A module in another one's place, with the few things that are asked of it. If another of its attributes
    is wanted, by any thread, all of them make way, and the module that is meant is imported. Its submodules
    cannot be imported meanwhile: nothing of ours imports one.
    """

    def __init__(self, name: str, has: dict[str, Any]) -> None:
        super().__init__(name)
        self.has = has

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        if sys.modules.get(self.__name__) is self and attribute in self.has:
            return self.has[attribute]
        _make_way()
        return getattr(import_module(self.__name__), attribute)


def _make_way() -> None:
    with _making_way:
        for name in STOOD_IN:
            if isinstance(sys.modules.get(name), _StandIn):
                del sys.modules[name]


@contextmanager
def plain_sizes() -> Iterator[None]:
    """Keeps PyTorch, within, from importing its compiler for a pass on the meta device. Where it has been
    imported, or this PyTorch asks for more than is known here, nothing is different.
    """
    asked: list[Any] = []

    def disable(function: Callable[..., Any], *_: object, **__: object) -> Callable[..., Any]:
        asked.append(function)
        return function

    answers: tuple[dict[str, Any], ...] = {"Basic": ()}, ANSWERS, {"disable": disable}
    with _one_at_a_time:
        if any(name in sys.modules for name in STOOD_IN):  # or are just being imported
            yield
            return
        sys.modules.update({name: _StandIn(name, has) for name, has in zip(STOOD_IN, answers, strict=True)})
        try:
            yield
        finally:
            _make_way()
            for function in asked:  # where PyTorch keeps the answer
                vars(function).pop("__dynamo_disable", None)
