"""A model as one runnable file of PyTorch: its configuration, and the engine's source that it uses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from engine.config import ResolvedConfig
from engine.data.tokenizers.char import CharTokenizer
from engine.model import Transformer
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


def export_single_file(
    model: Transformer | Seq2Seq, title: str, tokenizer: object = None, example: str = ""
) -> str:
    """Returns the text of a file that reads model.safetensors, under the engine's names. `example` is what an
    encoder-decoder may be given. Raises PretrainedError where two of the parts have one name.
    """
    halves, pair = _halves(model), isinstance(model, Seq2Seq)
    chosen = _chosen(model, halves)
    single = ["mask", "stack", *(["decoder_masks"] if pair else [])]
    others = {name: getattr(model.parts, name) for name in single}
    whole = type(model)
    roots: list[Definition] = [
        (part.__module__, part.__name__)
        for part in (*(part for parts in chosen.values() for part in parts), *others.values(), whole)
    ]
    gathered = gather(list(dict.fromkeys(roots)), frozenset({PARTS}))
    names = [f"{name}=lambda config: {_choice(parts)}" for name, parts in chosen.items()]
    names += [f"{name}={part.__name__}" for name, part in others.items()]
    parts = f"{PARTS} = SimpleNamespace(\n" + "".join(f"    {name},\n" for name in names) + ")"
    *before, last = gathered.sources()
    example, main = _main(model, tokenizer, example)
    head = templates.HEAD.format(
        title=" ".join(title.replace('"', "'").replace("\\", "/").split()),
        example=example,
        call=templates.CALL_PAIR if pair else templates.CALL,
        imports=_imports(gathered),
        types=_types(gathered),
        configs=_configs(model, halves),
    )
    load = templates.LOAD.format(model=whole.__name__)
    return head + "\n\n\n".join([*before, parts, last]) + load + main + templates.END


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


def _main(model: Transformer | Seq2Seq, tokenizer: object, example: str) -> tuple[str, str]:
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
        return "To be, or not to be", templates.BY_TEXT.format(alphabet=tokenizer.alphabet)
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
    return "\n".join(rows)


def _types(gathered: Gathered) -> str:
    if not gathered.types:
        return ""
    names = " = ".join(sorted(gathered.types))
    return f"# Types of the engine that stand in annotations alone.\n{names} = Any\n\n"


def _fields(config: ResolvedConfig) -> str:
    """Every field, and what follows from them."""
    values: dict[str, Any] = {each.name: getattr(config, each.name) for each in fields(config)}
    derived = [name for name, value in vars(type(config)).items() if isinstance(value, property)]
    values |= {name: getattr(config, name) for name in derived}
    return "\n".join(f"    {name} = {value!r}" for name, value in values.items())
