"""A published model from its file or folder: configuration and weights, ready for `engine.model`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from engine.config import ModelConfig
from engine.errors import PretrainedError
from engine.model import Transformer, build
from studies.weights.pretrained import folder, gguf, vocabulary
from studies.weights.pretrained.families import GGUF, HUGGING_FACE
from studies.weights.pretrained.family import FACTORS, TENSORS, C, Family
from studies.weights.pretrained.vocabulary import PretrainedTokenizer
from studies.weights.pretrained.weights import Piece

M = TypeVar("M", bound=nn.Module)
Source = gguf.Gguf | folder.Folder


@dataclass(frozen=True, eq=False)
class OpenedFile(Generic[C, M]):
    """A model whose facts were read and whose numbers still lie on disk."""

    empty: ClassVar[Callable[..., Any]]  # builds a model of this kind

    source: Source
    family: Family[C]
    config: C
    facts: Mapping[str, Any] = field(repr=False)

    @property
    def names(self) -> set[str]:
        return set(self.family.pieces(self.config))

    @property
    def differs(self) -> dict[str, Any]:
        """The fields of its configuration that are not as they are where nothing is said."""
        raise NotImplementedError

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Yields every tensor of the model with its name, float32, one after the other. Raises
        PretrainedError, at the end where a copy of a tensor is another one.
        """
        c, there = self.config, set(self.source.shapes)
        copies = {name: ours for name, ours in self.family.copies(c).items() if name in there}
        copied: dict[str, Tensor] = {}
        pieces, ignored = self.family.pieces(c), self.family.ignored(c) | copies.keys()
        for name, tensor in assembled(type(self).empty(c, device="meta"), pieces, self.source, ignored):
            if name in copies.values():
                copied[name] = tensor
            yield name, tensor
        for name, ours in copies.items():
            if not np.array_equal(self.source.numbers(name), copied[ours].numpy()):
                raise PretrainedError(
                    f"{self.source.title}: {name} should be the {ours} once more, and is another matrix"
                )

    def weights(self) -> dict[str, Tensor]:
        return dict(self.tensors())

    def model(self, weights: Mapping[str, Tensor] | None = None) -> M:
        """Returns the model in evaluation mode, with kept `weights`, else those read now."""
        model: M = type(self).empty(self.config, device="meta").requires_grad_(False)
        model.load_state_dict(self.weights() if weights is None else weights, strict=True, assign=True)
        return model.eval()


class Opened(OpenedFile[ModelConfig, Transformer]):
    """A decoder or an encoder."""

    empty = staticmethod(build)

    @property
    def differs(self) -> dict[str, Any]:
        return differing(self.config)

    def vocabulary(self) -> PretrainedTokenizer:
        if isinstance(self.source, gguf.Gguf):
            result = vocabulary.from_gguf(self.facts)
        else:
            result = folder.vocabulary_of(self.source)
        return replace(result, rows=self.config.vocab_size)


def differing(config: ModelConfig) -> dict[str, Any]:
    """Returns the fields of a configuration that are not as they are where nothing is said."""
    plain = type(config)().to_dict()
    return {name: value for name, value in config.to_dict().items() if value != plain[name]}


def open_model(path: Path | str) -> Opened:
    """Opens a GGUF file, or a folder in Hugging Face's layout.

    Nothing is allocated yet: `config` says how large it is. Raises PretrainedError for a family that is not
    built here, and for whatever its reader refuses.
    """
    path = Path(path)
    if not path.is_file():
        source = folder.read(path)
        family, facts = known(source, HUGGING_FACE)
        return Opened(source, family, family.config(facts), facts)
    file = gguf.read(path)
    family = _family(file.facts.get("general.architecture"), GGUF, file.title)
    factors = {name for name in file.stored if name.startswith("rope_f") and np.any(file.numbers(name) != 1)}
    facts = dict(file.facts) | {"tied": "output.weight" not in file.stored, FACTORS: factors}
    return Opened(file, family, family.config(facts), facts)


def known(source: folder.Folder, families: Mapping[str, Family[C]]) -> tuple[Family[C], dict[str, Any]]:
    """Returns a folder's family, and facts with its tensors' names. Raises PretrainedError for another.

    An output matrix in the file is used, whatever config.json says of it, unless it is the embedding again.
    """
    family = _family(source.facts.get("model_type"), families, source.title)
    facts = dict(source.facts) | {TENSORS: frozenset(source.shapes)}
    if family.head and {*family.head} <= source.shapes.keys() and not source.same(*family.head):
        facts |= {"tie_word_embeddings": False}
    return family, facts


def _family(name: object, families: Mapping[str, Family[C]], title: str) -> Family[C]:
    if not isinstance(name, str) or name not in families:
        raise PretrainedError(f"{title} is of the family {name!r}; supported are {', '.join(families)}")
    return families[name]


def assembled(
    model: nn.Module, pieces: Mapping[str, Piece], source: Source, ignored: Collection[str] = ()
) -> Iterator[tuple[str, Tensor]]:
    """Yields our names with float32 tensors, all that a model has, which may be on the meta device. Each is
    made when it is requested, so that never all have to lie in memory.

    `ignored` may be there or not: buffers, and copies of a tied matrix; a name that ends in a dot stands for
    all that begin so. Raises PretrainedError that names the tensor which is missing, left over, of another
    shape than the model's (before the first is made), or not finite.
    """
    wanted = {name: tuple(p.shape) for name, p in model.named_parameters()}
    if wanted.keys() != pieces.keys():
        odd = sorted(wanted.keys() ^ pieces.keys())
        raise PretrainedError(f"{source.title}: its family's table does not fit the configuration: {odd[0]}")
    there, used = set(source.shapes), {name for each in pieces.values() for name in each.names}
    if missing := sorted(used - there):
        raise PretrainedError(f"{source.title} lacks the tensor {missing[0]}{_more(missing)}")
    prefixes = tuple(name for name in ignored if name.endswith("."))
    left = there - used - set(ignored)
    if extra := sorted(name for name in left if not name.startswith(prefixes)):
        raise PretrainedError(f"{source.title} has a tensor that no part takes: {extra[0]}{_more(extra)}")
    _check_sizes(wanted, pieces, source)
    for name, each in pieces.items():
        yield name, _made(name, wanted[name], each, source)


def _check_sizes(wanted: Mapping[str, tuple[int, ...]], pieces: Mapping[str, Piece], source: Source) -> None:
    """Before anything is read: as many numbers as the configuration says."""
    for name, each in pieces.items():
        result = sum(
            int(np.prod(source.shapes[n], dtype=np.int64)) // getattr(change, "of", 1)
            for n, change in each.parts
        )
        if result != int(np.prod(wanted[name], dtype=np.int64)):
            shapes = " and ".join(str(source.shapes[n]) for n in each.names)
            raise PretrainedError(
                f"{source.title}: {' and '.join(each.names)} of shape {shapes} should make {wanted[name]}"
            )


def _made(name: str, shape: tuple[int, ...], each: Piece, source: Source) -> Tensor:
    parts = [source.numbers(n) if change is None else change(source.numbers(n)) for n, change in each.parts]
    result = parts[0] if len(parts) == 1 else np.concatenate(parts)
    if result.shape != shape:
        raise PretrainedError(f"{source.title}: {' and '.join(each.names)} make {result.shape}, not {shape}")
    return torch.from_numpy(np.ascontiguousarray(result, dtype=np.float32))


def _more(names: Collection[str]) -> str:
    return f", and {len(names) - 1} more" if len(names) > 1 else ""
