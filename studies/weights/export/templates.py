"""Templates around the engine's source in the single-file export (studies.weights.export.single_file)."""

from __future__ import annotations

HEAD = '''"""{title}: a model as one file of PyTorch.

Written by Glassformer from the model's configuration and the engine's own source.
It needs torch and safetensors, and model.safetensors beside it. To use it:

    python model.py {example}

or, from Python, `model = load("model.safetensors")`, then {call}.
{shapes}"""

from __future__ import annotations

'''
CALL = """`model(tokens)` with tokens (batch, position) int64
gives logits (batch, position, vocab)"""
CALL_PAIR = """`model(source, target)` with both (batch, position) int64
gives logits (batch, position of the target, vocab)"""
CONFIG = '''class {name}:
    """{does}, with every derived size filled in."""

{fields}

    def validate(self) -> {name}:
        return self

    def resolved(self) -> {name}:
        return self'''
PAIR = '''


class Config:
    """Both halves, and three tokens: what fills up a batch, what a target begins with, what ends it."""

    encoder, decoder = EncoderConfig(), DecoderConfig()
    pad, begin, end = {pad}, {begin}, {end}

    def validate(self) -> Config:
        return self

    def resolved(self) -> Config:
        return self'''
NANO_IMPORTS = """import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor, nn"""
LOAD = '''


def load(path: str | Path = "model.safetensors") -> {model}:
    """Loads the model in float32, ready for inference."""
    with torch.device("meta"):
        model = {model}({config})
    weights = {{name: x.float() for name, x in load_file(path).items()}}
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
    """Continues the given text, one character at a time."""
    torch.set_num_threads(1)  # with products this small, synchronising several threads would take longer
    model = load(Path(__file__).with_name("model.safetensors"))
    known = " ".join(sys.argv[1:]) or ALPHABET[0]
    ids = [ALPHABET.index(character) for character in known if character in ALPHABET]
{draws}
    print("".join(ALPHABET[i] for i in ids))
'''
DRAWS = """    generator = torch.Generator().manual_seed(0)
    for _ in range(200):
        logits = model(torch.tensor([ids[-Config.context :]]))[0, -1]
        ids.append(int(torch.multinomial((logits / 0.8).softmax(-1), 1, generator=generator)))"""
NANO_DRAWS = "    ids += model.sample(ids, 200)"
WRITE = '''def write(model: Seq2Seq, source: list[int]) -> list[int]:
    """The likeliest target of the ids of a source: its ids, to the end or as far as the model can write."""
    memory, target = model.encode(torch.tensor([[*source, Config.end]])), [Config.begin]
    while len(target) <= DecoderConfig.context:
        target.append(int(model.decode(torch.tensor([target]), memory)[0, -1].argmax()))
        if target[-1] == Config.end:
            break
    return target[1:]


'''
PAIR_BY_IDS = (
    WRITE
    + '''def main() -> None:
    """What the model writes for the ids that were given, without their end."""
    model = load(Path(__file__).with_name("model.safetensors"))
    print(*write(model, [int(word) for word in sys.argv[1:]]))
'''
)
PAIR_BY_TEXT = (
    """SYMBOLS = {symbols!r}
FIRST = {first}  # the id of the first of them, after those of the signs


"""
    + WRITE.replace("{", "{{").replace("}", "}}")
    + '''def main() -> None:
    """What the model writes for the text that was given."""
    torch.set_num_threads(1)  # with products this small, synchronising several threads would take longer
    model = load(Path(__file__).with_name("model.safetensors"))
    text = " ".join(sys.argv[1:])
    if unknown := [symbol for symbol in {cut} if symbol not in SYMBOLS]:
        sys.exit(f"This model does not know {{unknown[0]!r}}.")
    ids = write(model, [FIRST + SYMBOLS.index(symbol) for symbol in {cut}])
    print({glue!r}.join(SYMBOLS[i - FIRST] for i in ids if i >= FIRST))
'''
)
END = """

if __name__ == "__main__":
    main()
"""
