"""A family: how facts of a stranger's file, each checked, become a configuration, and where tensors lie."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from engine.config import ModelConfig
from engine.errors import ConfigError, PretrainedError
from studies.weights.pretrained.weights import Piece, piece

MAX_LAYERS = 1024
MAX_SIZE = 2**27  # of any one axis: far above every model that there is
TENSORS = "names of tensors"  # the fact that a reader adds: what the file holds
FACTORS = "factors of rotations"  # the same of a GGUF file: tensors of them that are not all 1
Facts = Mapping[str, Any]
Pieces = dict[str, Piece]
SIZES = ("vocab_size", "context", "d_model", "n_heads", "n_kv_heads", "d_head", "d_ff", "token_types")
BIASED = {"attention_bias": True, "ffn_bias": True, "norm_bias": True}
C = TypeVar("C")  # a ModelConfig, or a Seq2SeqConfig


@dataclass(frozen=True)
class Family(Generic[C]):
    """How one kind of file becomes a model: `config` from its facts, then `pieces` for its tensors.

    `ignored` are tensors that may be there and say nothing here: masks kept as buffers, a tied matrix stored
    twice, another model in the same file. A name that ends in a dot stands for all that begin so. `copies`
    may be there too: their names, and ours of what they must be equal to. `head` is their names of the output
    matrix, which not every file has, and of the embedding that can serve as it.
    """

    config: Callable[[Facts], C]
    pieces: Callable[[C], Pieces]
    ignored: Callable[[C], set[str]] = lambda config: set()
    copies: Callable[[C], dict[str, str]] = lambda config: {}
    head: tuple[str, ...] = ()


def _wrong(name: str, value: object, must: str) -> PretrainedError:
    return PretrainedError(f"its configuration says {name} = {value!r}; it must be {must}")


def whole(facts: Facts, name: str, otherwise: int | None = None) -> int:
    """Returns a fact that must be a whole number, at least 1. Raises PretrainedError."""
    value = facts.get(name, otherwise)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 2**53:
        raise _wrong(name, value, "a whole number, at least 1")
    return value


def token(facts: Facts, name: str, otherwise: int) -> int:
    """Returns the id of a token; `otherwise` where it is left out, or null. Raises PretrainedError."""
    value = otherwise if facts.get(name) is None else facts[name]
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < MAX_SIZE:
        raise _wrong(name, value, "the id of a token")
    return value


def optional(facts: Facts, name: str) -> int | None:
    """Returns a whole number that may be left out, or null. Raises PretrainedError."""
    return None if facts.get(name) is None else whole(facts, name)


def first_of(facts: Facts, *names: str) -> int:
    """Returns a whole number that different versions call differently. Raises PretrainedError."""
    return whole(facts, next((name for name in names if facts.get(name) is not None), names[0]))


def real(facts: Facts, name: str, otherwise: float) -> float:
    """Returns a fact that must be a number. Raises PretrainedError."""
    value = facts.get(name, otherwise)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= 1e300:
        raise _wrong(name, value, "a number")
    return float(value)


def flag(facts: Facts, name: str, otherwise: bool) -> bool:
    """Returns a fact that must be true or false. Raises PretrainedError."""
    value = facts.get(name, otherwise)
    if value is None:
        return otherwise
    if not isinstance(value, bool):
        raise _wrong(name, value, "true or false")
    return value


def refuse(facts: Facts, **allowed: object) -> None:
    """Raises PretrainedError where a fact is there and has another value than the one that is built here."""
    for name, value in allowed.items():
        if facts.get(name, value) not in (value, None):
            raise PretrainedError(f"its {name} is {facts[name]!r}; only {value!r} is supported")


GELUS = {
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu": "gelu",
    "relu": "relu",
    "relu2": "relu2",
}


def activation(facts: Facts, name: str, otherwise: str, known: Mapping[str, str] = GELUS) -> Any:
    """Returns the engine's name for a nonlinearity. Raises PretrainedError."""
    chosen = facts.get(name, otherwise)
    if not isinstance(chosen, str) or chosen not in known:
        raise PretrainedError(f"its {name} is {chosen!r}; supported are {', '.join(known)}")
    return known[chosen]


def rotations(facts: Facts) -> Facts:
    """Returns the RoPE fields, of either notation. Raises PretrainedError for scaled rotations."""
    result: dict[str, Any] = {}
    for name in ("rope_scaling", "rope_parameters"):
        fields = facts.get(name)
        if fields is None:
            continue
        if not isinstance(fields, Mapping) or any(isinstance(value, Mapping) for value in fields.values()):
            raise PretrainedError(f"its {name} is {fields!r}; only one set of numbers is supported")
        kind = fields.get("rope_type", fields.get("type"))
        if kind in (None, "none") or (kind == "linear" and fields.get("factor") == 1):
            kind = "default"
        if kind != "default":
            raise PretrainedError(
                f"its rope_type is {kind!r}, which scales the rotations for longer texts; only 'default' is"
                " supported"
            )
        result |= fields
    return result


def blocks(config: ModelConfig, pieces_of: Callable[[int], Pieces]) -> Pieces:
    return {f"blocks.{i}.{name}": each for i in range(config.n_layers) for name, each in pieces_of(i).items()}


def both(ours: str, theirs: str, bias: bool = True, **rest: Any) -> Pieces:
    """Returns weight and bias of a matrix or norm: `ours` is the part's name, `theirs` the module's."""
    gain = "gain" if "norm" in ours.rpartition(".")[2] else "weight"
    result = {f"{ours}.{gain}": piece(f"{theirs}.weight", **rest)}
    return result | ({f"{ours}.bias": piece(f"{theirs}.bias", **rest)} if bias else {})


def untied_output(config: ModelConfig, theirs: str) -> Pieces:
    """Returns an output matrix that is not the embedding's, where there is one."""
    return {} if config.tie_embeddings else {"unembedding": piece(f"{theirs}.weight")}


def checked(**values: Any) -> ModelConfig:
    """Returns the configuration. Raises PretrainedError if it cannot be built or claims absurd sizes."""
    if values["n_layers"] > MAX_LAYERS:
        raise PretrainedError(f"it claims {values['n_layers']:,} layers; at most {MAX_LAYERS:,} are accepted")
    sizes = {name: values.get(name) or 0 for name in SIZES}
    sizes["n_heads * d_head"] = sizes["n_heads"] * sizes["d_head"]
    if odd := next((name for name, size in sizes.items() if size > MAX_SIZE), None):
        raise PretrainedError(f"it claims {odd} = {sizes[odd]:,}; at most {MAX_SIZE:,} are accepted")
    try:
        return ModelConfig(**values).validate()
    except ConfigError as error:
        raise PretrainedError(f"its configuration cannot be built: {error}") from error
