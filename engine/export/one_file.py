"""A model as one runnable file of PyTorch: its configuration, filled in, and of the engine's own source what
it uses.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from engine.config import ResolvedConfig
from engine.export.gather import Gathered, Place, gather
from engine.model import Transformer
from engine.tokenizers.char import CharTokenizer

CHOICES = ("norm", "position", "mixer", "feedforward", "wiring", "output")  # by configuration, of `Parts`
PARTS = "HEALTHY"  # what the engine calls the parts that a model has where nothing else is said

HEAD = '''"""{title}: a model as one file of PyTorch.

Written by Glassformer from the model's configuration and the engine's own source.
It needs torch and safetensors, and model.safetensors beside it. To use it:

    python {file} {example}

or, from Python, `model = load("model.safetensors")`, then `model(tokens)` with tokens (batch, position) int64
gives logits (batch, position, vocab).
"""

from __future__ import annotations

{imports}

{types}
class Config:
    """The architecture, with every derived size filled in."""

{fields}

    def validate(self) -> Config:
        return self

    def resolved(self) -> Config:
        return self


'''
LOAD = '''


def load(path: str | Path = "model.safetensors") -> Transformer:
    """The model with its weights, in float32, ready to be asked."""
    with torch.device("meta"):
        model = Transformer(Config())
    weights = {name: x.float() for name, x in load_file(path).items()}
    model.load_state_dict(weights, strict=True, assign=True)
    return model.eval().requires_grad_(False)


'''
BY_IDS = '''def main() -> None:
    """The likeliest tokens after the ids that were given."""
    model = load(Path(__file__).with_name("model.safetensors"))
    ids = [int(word) for word in sys.argv[1:]] or [0]
    chances, tokens = model(torch.tensor([ids]))[0, -1].softmax(-1).topk(5)
    for chance, token in zip(chances.tolist(), tokens.tolist(), strict=True):
        print(f"token {token}: {chance:.4f}")
'''
BY_TEXT = '''ALPHABET = {alphabet!r}


def main() -> None:
    """Goes on with the text that was given, a character at a time."""
    torch.set_num_threads(1)  # several would wait for each other longer than such small products take
    model = load(Path(__file__).with_name("model.safetensors"))
    known = " ".join(sys.argv[1:]) or ALPHABET[0]
    ids = [ALPHABET.index(character) for character in known if character in ALPHABET]
    generator = torch.Generator().manual_seed(0)
    for _ in range(200):
        logits = model(torch.tensor([ids[-Config.context :]]))[0, -1]
        ids.append(int(torch.multinomial((logits / 0.8).softmax(-1), 1, generator=generator)))
    print("".join(ALPHABET[i] for i in ids))
'''
END = """

if __name__ == "__main__":
    main()
"""


def one_file(model: Transformer, title: str, tokenizer: object = None, file: str = "model.py") -> str:
    """The text of the file. It reads model.safetensors, which holds the parameters under the engine's names
    (`engine.checkpoints` writes such a file).

    Raises PretrainedError where two of the parts have one name.
    """
    chosen = {
        name: getattr(model.parts, name)(model.config) for name in CHOICES if hasattr(model.parts, name)
    }
    mask, stack = model.parts.mask, model.parts.stack
    roots: list[Place] = [(part.__module__, part.__name__) for part in chosen.values()]
    roots += [(one.__module__, one.__name__) for one in (mask, stack)]  # type: ignore[union-attr]
    roots += [(Transformer.__module__, Transformer.__name__)]
    found = gather(roots, frozenset({PARTS}))
    names = [f"{name}=lambda config: {part.__name__}" for name, part in chosen.items()]
    names += [f"mask={mask.__name__}", f"stack={stack.__name__}"]  # type: ignore[attr-defined]
    parts = f"{PARTS} = SimpleNamespace(\n" + "".join(f"    {name},\n" for name in names) + ")"
    *before, whole = found.sources()
    letters = isinstance(tokenizer, CharTokenizer) and model.config.causal
    main = BY_TEXT.format(alphabet=tokenizer.alphabet) if letters else BY_IDS  # type: ignore[attr-defined]
    head = HEAD.format(
        title=" ".join(title.replace('"', "'").replace("\\", "/").split()),
        file=file,
        example="To be, or not to be" if letters else "1 2 3",
        imports=_imports(found),
        types=_types(found),
        fields=_fields(model.config),
    )
    return head + "\n\n\n".join([*before, parts, whole]) + LOAD + main + END


def _imports(found: Gathered) -> str:
    own = {
        "import sys",
        "import torch",
        "from pathlib import Path",
        "from types import SimpleNamespace",
        "from safetensors.torch import load_file",
    }
    wanted = found.imports | own | ({"from typing import Any"} if found.types else set())
    foreign = ("torch", "safetensors", "numpy")
    rows = sorted(wanted, key=lambda row: (row.split()[1].startswith(foreign), row.startswith("from"), row))
    return "\n".join(rows)


def _types(found: Gathered) -> str:
    if not found.types:
        return ""
    names = " = ".join(sorted(found.types))
    return f"# Types of the engine that stand in annotations alone.\n{names} = Any\n\n"


def _fields(config: ResolvedConfig) -> str:
    """Every field, and what follows from them."""
    values: dict[str, Any] = {each.name: getattr(config, each.name) for each in fields(config)}
    derived = [name for name, one in vars(type(config)).items() if isinstance(one, property)]
    values |= {name: getattr(config, name) for name in derived}
    return "\n".join(f"    {name} = {value!r}" for name, value in values.items())
