"""A model as one runnable file of PyTorch: its configuration, and the engine's source that it uses.

A model that engine.nano covers is that file, from its configuration to its model. The source of any other is
gathered.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from engine import nano
from engine.config import ModelConfig, ResolvedConfig
from engine.data.tokenizers.char import CharTokenizer
from engine.errors import PretrainedError
from engine.model import Transformer
from engine.parts.registry import HEALTHY
from studies.pairs.seq2seq import Seq2Seq
from studies.pairs.tokenizer import SIGNS, PairTokenizer
from studies.weights.export import templates
from studies.weights.export.gather import Definition, Gathered, gather

PARTS = "HEALTHY"  # what the engine calls the parts that a model has where nothing else is said
TOWER = ("norm", "position", "mixer", "feedforward")  # by configuration, of `Parts`


@dataclass(frozen=True)
class Half:
    """A configuration that the file has, how it is called there, and which parts are chosen by it."""

    name: str
    config: ResolvedConfig
    chooses: tuple[str, ...]


@dataclass(frozen=True)
class Code:
    """The source of a model, from the imports to the class `model`, which is made from `config`. How letters
    are drawn with it, and what the file's docstring says of its shapes.
    """

    source: str
    model: str
    config: str = "Config()"
    draws: str = templates.DRAWS
    shapes: str = ""


def export_single_file(
    model: Transformer | Seq2Seq, title: str, tokenizer: object = None, example: str = ""
) -> str:
    """Returns the text of a file that reads model.safetensors, under the engine's names. `example` is what an
    encoder-decoder may be given. Raises PretrainedError where two of the parts have one name, and for
    a mixture of experts, whose class is made when a configuration asks for it.
    """
    sizes = nano_sizes(model) if isinstance(model, Transformer) else None
    code = _gathered(model) if sizes is None else _nano(sizes)
    example, main = _main(model, tokenizer, example, code.draws)
    head = templates.HEAD.format(
        title=" ".join(title.replace('"', "'").replace("\\", "/").split()),
        example=example,
        call=templates.CALL_PAIR if isinstance(model, Seq2Seq) else templates.CALL,
        shapes=code.shapes,
    )
    load = templates.LOAD.format(model=code.model, config=code.config)
    return head + code.source + load + main + templates.END


def nano_sizes(model: Transformer) -> nano.Config | None:
    """Returns the sizes with which engine.nano is this model; None for a model of another design."""
    c = model.config
    sizes = {each.name: getattr(c, each.name) for each in fields(nano.Config)}
    same = ModelConfig(
        **sizes, norm="rmsnorm", ffn="swiglu", position="rope", tie_embeddings=False, dropout=c.dropout
    )
    covers = model.parts is HEALTHY and c == same.resolved() and c.d_model % c.n_heads == 0
    return nano.Config(**sizes) if covers else None


def _nano(sizes: nano.Config) -> Code:
    source = inspect.getsource(nano)
    model = source[source.index("@dataclass") : source.index("\n\n\ndef train(")]
    shapes = "\n" + (nano.__doc__ or "").rpartition("\n\n")[2]
    text = f"{templates.NANO_IMPORTS}\n\n\n{model}\n\n\nCONFIG = {sizes!r}"
    return Code(text, nano.GPT.__name__, "CONFIG", templates.NANO_DRAWS, shapes)


def _gathered(model: Transformer | Seq2Seq) -> Code:
    halves, whole = _halves(model), type(model)
    if any(half.config.n_experts for half in halves):
        raise PretrainedError("a mixture of experts cannot be written as one file: save its checkpoint")
    chosen = _chosen(model, halves)
    single = ["mask", "stack", *(["decoder_masks"] if isinstance(model, Seq2Seq) else [])]
    others = {name: getattr(model.parts, name) for name in single}
    roots: list[Definition] = [
        (part.__module__, part.__name__)
        for part in (*(part for parts in chosen.values() for part in parts), *others.values(), whole)
    ]
    gathered = gather(list(dict.fromkeys(roots)), frozenset({PARTS}))
    names = [f"{name}=lambda config: {_choice(parts)}" for name, parts in chosen.items()]
    names += [f"{name}={part.__name__}" for name, part in others.items()]
    parts = f"{PARTS} = SimpleNamespace(\n" + "".join(f"    {name},\n" for name in names) + ")"
    *before, last = gathered.sources()
    sections = [_imports(gathered), _configs(model, halves), *before, parts, last]
    return Code("\n\n\n".join(sections), whole.__name__)


def _halves(model: Transformer | Seq2Seq) -> tuple[Half, ...]:
    if isinstance(model, Transformer):
        return (Half("Config", model.config, (*TOWER, "wiring", "output")),)
    encoder, decoder = model.config.encoder, model.config.decoder
    return (
        Half("EncoderConfig", encoder, (*TOWER, "wiring")),
        Half("DecoderConfig", decoder, (*TOWER, "crossing", "output")),
    )


def _chosen(model: Transformer | Seq2Seq, halves: Sequence[Half]) -> dict[str, tuple[type, ...]]:
    """The name of each choice -> the parts that it falls on, those of the decoder last, each once."""
    result: dict[str, dict[type, None]] = {}
    for half in halves:
        for name in half.chooses:
            if hasattr(model.parts, name):
                result.setdefault(name, {})[getattr(model.parts, name)(half.config)] = None
    return {name: tuple(parts) for name, parts in result.items()}


def _choice(parts: Sequence[type]) -> str:
    if len(parts) == 1:
        return parts[0].__name__
    encoder, decoder = parts
    return f"{decoder.__name__} if config.causal else {encoder.__name__}"


def _main(model: Transformer | Seq2Seq, tokenizer: object, example: str, draws: str) -> tuple[str, str]:
    """(what may be given to the file, what it then does)."""
    if isinstance(model, Seq2Seq):
        if not isinstance(tokenizer, PairTokenizer):
            return "5 6 7", templates.PAIR_BY_IDS
        letters = tokenizer.by == "letters"
        main = templates.PAIR_BY_TEXT.format(
            symbols=list(tokenizer.symbols),
            first=len(SIGNS),
            cut="text" if letters else "text.split()",
            glue="" if letters else " ",
        )
        return example or " ".join(tokenizer.symbols[:3]), main
    if isinstance(tokenizer, CharTokenizer) and model.config.causal:
        return "To be, or not to be", templates.BY_TEXT.format(alphabet=tokenizer.alphabet, draws=draws)
    return "1 2 3", templates.BY_IDS


def _configs(model: Transformer | Seq2Seq, halves: Sequence[Half]) -> str:
    does = {"Config": "The architecture", "EncoderConfig": "What reads", "DecoderConfig": "What writes"}
    text = "\n\n\n".join(
        templates.CONFIG.format(name=half.name, does=does[half.name], fields=_fields(half.config))
        for half in halves
    )
    if isinstance(model, Transformer):
        return text
    c = model.config
    return text + templates.PAIR.format(pad=c.pad, begin=c.begin, end=c.end)


def _imports(gathered: Gathered) -> str:
    own = {
        "import sys",
        "import torch",
        "from pathlib import Path",
        "from types import SimpleNamespace",
        "from safetensors.torch import load_file",
    }
    wanted = gathered.imports | own | ({"from typing import Any"} if gathered.types else set())
    foreign = ("torch", "safetensors", "numpy")
    rows = sorted(wanted, key=lambda row: (row.split()[1].startswith(foreign), row.startswith("from"), row))
    if gathered.types:
        names = " = ".join(sorted(gathered.types))
        rows += ["", "# Types of the engine that stand in annotations alone.", f"{names} = Any"]
    return "\n".join(rows)


def _fields(config: ResolvedConfig) -> str:
    """Every field, and what follows from them."""
    values: dict[str, Any] = {each.name: getattr(config, each.name) for each in fields(config)}
    derived = [name for name, value in vars(type(config)).items() if isinstance(value, property)]
    values |= {name: getattr(config, name) for name in derived}
    return "\n".join(f"    {name} = {value!r}" for name, value in values.items())
