"""The one family of errors. Every message says what was wrong and what would be right."""

from __future__ import annotations

import difflib
import re
import reprlib
from collections.abc import Iterable

_SHORT = reprlib.Repr()  # of a value that a stranger's file may hold
_SHORT.maxstring = _SHORT.maxother = 500
_SHORT.maxlong = 60
_PATH = re.compile(r"(?<![\w/\\])(?:[A-Za-z]:)?[/\\](?:[^\s/\\'\":,;()]+[/\\])+([^\s/\\'\":,;()]*)")
MAX_MESSAGE = 1_000  # characters; a file's own names and values may be of any length


class GlassformerError(Exception):
    """Base of every error that a person using the engine can act on."""

    def __str__(self) -> str:
        """Returns the message, shortened in the middle where it is longer than MAX_MESSAGE characters."""
        message, half = Exception.__str__(self), MAX_MESSAGE // 2  # a KeyError would quote it
        return message if len(message) <= MAX_MESSAGE else f"{message[:half]} … {message[-half:]}"


class ConfigError(GlassformerError):
    """A configuration that cannot be built. Names the field, its value and what is allowed."""

    def __init__(self, field: str, value: object, allowed: str) -> None:
        self.field, self.value, self.allowed = field, value, allowed
        super().__init__(f"{field} = {_SHORT.repr(value)}: {allowed}")

    def __reduce__(self) -> tuple[type[ConfigError], tuple[str, object, str]]:
        """It may be told by another process."""
        return type(self), (self.field, self.value, self.allowed)


class UnknownNameError(GlassformerError, KeyError):
    """A name that nothing has: of an activation, a preset. Names the nearest ones that there are.

    >>> str(UnknownNameError("activation", "patern", ["pattern", "z"]))
    "no activation is called 'patern'; did you mean 'pattern'?"
    """

    def __init__(self, kind: str, name: object, known: Iterable[str]) -> None:
        self.kind, self.name, self.known = kind, name, tuple(known)
        scoped = [each for each in self.known if each.endswith(f".{name}")]
        near = difflib.get_close_matches(str(name), self.known, n=3, cutoff=0.6) or scoped[:3]
        named = ", ".join(map(repr, near or self.known[:12]))
        more = ", ..." if not near and len(self.known) > 12 else ""
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are {named}{more}"
        super().__init__(f"no {kind} is called {_SHORT.repr(name)}; {hint}")

    def __reduce__(self) -> tuple[type[UnknownNameError], tuple[str, object, tuple[str, ...]]]:
        return type(self), (self.kind, self.name, self.known)


class CorpusError(GlassformerError):
    """A text that cannot be had, or cannot be trained on."""


class TaskError(GlassformerError):
    """A question that a synthetic task does not have."""


class TokenizerError(GlassformerError):
    """Text outside a tokenizer's alphabet, or ids outside its vocabulary."""


class ShapeError(GlassformerError):
    """A tensor whose shape is not the one its place in the model calls for."""


class CheckpointError(GlassformerError):
    """A checkpoint that is missing, damaged, or of another shape than its config says."""


class PretrainedError(GlassformerError):
    """A file of a published model that is damaged, of a kind that is not known, or not what it says."""


class RunError(GlassformerError):
    """Something asked of a training run that it cannot do."""


class HeadError(GlassformerError):
    """The model has no output head, or not the one that was requested."""


class ExerciseError(GlassformerError):
    """An answer that cannot be read, or an exercise that there is not."""


def without_paths(text: str) -> str:
    """Returns a sentence with names in place of absolute paths, which are no stranger's to know.

    >>> without_paths("No such file: '/home/anna/run 1/step.safetensors' (and/or 3/4 of it)")
    "No such file: '…/run 1/step.safetensors' (and/or 3/4 of it)"
    >>> without_paths("/usr/lib/python3/site-packages/torch/nn.py:12: out of memory")
    '…/nn.py:12: out of memory'
    """
    return _PATH.sub(r"…/\1", text)
