"""Table-driven tests: one test that goes through its cases, and says which of them failed."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Sequence
from random import Random
from typing import Any

import pytest

from tests.day import WEEK, of_today

Test = Callable[..., None]


def for_each(
    names: str | Sequence[str],
    values: Iterable[Any],
    ids: Any = None,
    fast: int | Collection[Any] = (),
    without: str = "",
) -> Callable[[Test], Test]:
    """Like `pytest.mark.parametrize`, but all the cases are one test: the first that fails is named in a note.

    For cases that need nothing of their own from a fixture, but for a folder: each has its own `tmp_path`.
    Decorators may be stacked: then every combination is tried. With `fast`, the fast tier takes these cases, or so
    many of them, drawn by the test's name (other tests of the same table draw others); the exhaustive tier takes all,
    or those of the day where the fast ones are drawn from more than WEEK times as many.
    `without` says why there may be no case on a machine: there the test is skipped.
    """
    wanted = [one.strip() for one in names.split(",")] if isinstance(names, str) else list(names)
    cases = list(values)
    assert cases or without, f"no case of {', '.join(wanted)}"
    labels = [ids(case) for case in cases] if callable(ids) else list(ids or map(repr, cases))

    def decorate(test: Test) -> Test:
        drawn = _drawn(cases, fast, test.__name__)
        many = isinstance(fast, int) and 0 < fast * WEEK < len(cases)

        @functools.wraps(test)
        def through(tier: str = "exhaustive", **fixtures: Any) -> None:
            if not cases:
                pytest.skip(without)
            folder = fixtures.get("tmp_path")
            for place, (case, label) in enumerate(zip(cases, labels, strict=True)):
                if place not in drawn if tier == "fast" else many and not of_today(place):
                    continue
                if folder is not None:
                    fixtures["tmp_path"] = folder / str(place)
                    fixtures["tmp_path"].mkdir()
                try:
                    test(**fixtures, **dict(zip(wanted, [case] if len(wanted) == 1 else case, strict=True)))
                except BaseException as error:
                    error.add_note(f"case {', '.join(wanted)} = {label}"[:400])
                    raise

        signature = inspect.signature(test)
        kept = [one for name, one in signature.parameters.items() if name not in wanted]
        assert len(kept) == len(signature.parameters) - len(wanted), f"{test.__name__} lacks some of {wanted}"
        if fast:
            kept.append(inspect.Parameter("tier", inspect.Parameter.KEYWORD_ONLY))
        through.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        if not fast:
            return through
        tiers = ["fast", pytest.param("exhaustive", marks=pytest.mark.exhaustive)]
        return pytest.mark.parametrize("tier", tiers)(through)

    return decorate


def _drawn(cases: list[Any], fast: int | Collection[Any], name: str) -> set[int]:
    """The places of the cases that the fast tier takes."""
    if isinstance(fast, int):
        return set(Random(name).sample(range(len(cases)), min(fast, len(cases))))
    drawn = {place for place, case in enumerate(cases) if case in fast}
    assert len(drawn) == len(fast), "a case of the fast tier is none of the cases"
    return drawn
