"""The right answers, worked out once more and in another way: by counting, by NumPy, by a plain loop."""

from __future__ import annotations

import cmath
import itertools
import math
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from engine.config import ModelConfig
from engine.model import build

G = dict[str, Any]
# of the paper's models as they are published, counted by others
GPT2 = {768: 124_439_808, 1024: 354_823_168, 1280: 774_030_080, 1600: 1_557_611_200}


def soft(values: Any) -> np.ndarray:
    powers = np.exp(np.asarray(values, dtype=np.float64))
    return powers / powers.sum()


def row(g: G) -> Any:
    s, at = np.array(g["scores"]), g["at"]
    return np.concatenate([soft(s[: at + 1]), np.zeros(len(s) - at - 1)])


def one_head(g: G) -> Any:
    x, w_q, w_k, w_v = (np.array(g[name], dtype=float) for name in ("x", "w_q", "w_k", "w_v"))
    scores = (x @ w_q) @ (x @ w_k).T / math.sqrt(2)
    hidden = np.triu(np.full((3, 3), -np.inf), 1)
    return np.stack([soft(one) for one in scores + hidden])[1] @ (x @ w_v)


def active(g: G) -> int:
    """By a mixture that is built, without the experts that a token does not meet."""
    config = ModelConfig(
        vocab_size=1, context=1, d_model=g["d"], n_layers=1, n_heads=1, d_ff=g["ff"], ffn="swiglu",
        n_experts=g["total"], active_experts=g["active"], shared_experts=g["shared"],
    )  # fmt: skip
    network: Any = build(config, device="meta").blocks[0].ffn
    rows = network.w_in.weight.numel() + network.w_out.weight.numel()
    share = (g["active"] + g["shared"]) / (g["total"] + g["shared"])
    return round(rows * share) + network.router.weight.numel()


def where(g: G) -> str:
    """By the tensors of a block, one by one; the tables' 50,257 and 1,024 rows."""
    d, layers = g["d"], g["layers"]
    counts = {
        "The token table": 50_257 * d,
        "The position table": 1024 * d,
        "Attention": layers * sum(rows * d + rows for rows in (d, d, d, d)),
        "The feed-forward networks": layers * (d * 4 * d + 4 * d + 4 * d * d + d),
        "The norms": (2 * layers + 1) * 2 * d,
    }
    return max(counts, key=counts.__getitem__)


def stream(g: G) -> Any:
    """One write after the other."""
    pre, post, embedding = 1.0, 1.0, 1.0
    for _ in range(g["writes"]):
        pre = math.hypot(pre, g["spread"])
        embedding /= math.hypot(post, g["spread"])
    return pre, embedding


def dropout(g: G) -> Any:
    """From the two moments of the binomial distribution of how many inputs remain."""
    remain = 1 - g["share"]
    number = np.arange(g["count"] + 1)
    logs = [
        math.lgamma(g["count"] + 1)
        - math.lgamma(n + 1)
        - math.lgamma(g["count"] - n + 1)
        + n * math.log(remain)
        + (g["count"] - n) * math.log(g["share"])
        for n in number
    ]
    chances, sums = np.exp(logs), number * g["size"] / remain
    mean = float(chances @ sums)
    return mean, math.sqrt(float(chances @ (sums - mean) ** 2))


def queries(g: G) -> Any:
    x = np.empty((g["batch"], g["length"], g["d"]), dtype=np.int8)
    return x.reshape(*x.shape[:2], g["heads"], -1).swapaxes(1, 2)


def walk(g: G) -> Any:
    wide = {"inside the feed": 4 * g["d"], "the logits": g["vocab"]}
    return g["batch"], g["length"], wide.get(g["where"][:15], g["d"])


def spun(place: float, rates: list[float]) -> np.ndarray:
    """By complex numbers: e^{ix} = cos x + i sin x."""
    turns = [cmath.exp(1j * place * rate) for rate in rates]
    return np.array([part for turn in turns for part in (turn.imag, turn.real)])


def turned(g: G) -> Any:
    """One step after the other."""
    one = cmath.exp(1j * g["rate"])
    return np.linalg.matrix_power([[one.real, one.imag], [-one.imag, one.real]], g["steps"])


def rope(g: G) -> Any:
    q, k = complex(*g["q"]), complex(*g["k"])
    one, other = q * cmath.exp(1j * g["m"] * g["rate"]), k * cmath.exp(1j * g["n"] * g["rate"])
    return (one * other.conjugate()).real  # the dot product of the pairs


def distance(g: G) -> Any:
    for pair in g["right"]:
        query, key = map(int, pair.split(" and "))
        assert query - key == g["m"] - g["n"]
    return frozenset(g["right"])


def joined(word: list[str], pair: tuple[str, str]) -> list[str]:
    """By rewriting text: pieces stand between spaces."""
    text = f"  {'  '.join(word)}  "
    while f" {pair[0]}  {pair[1]} " in text:
        text = text.replace(f" {pair[0]}  {pair[1]} ", f" {''.join(pair)} ", 1)
    return text.split()


def learned(counts: dict[str, int], merges: int) -> list[tuple[str, str]]:
    corpus = [list(word) for word, times in counts.items() for _ in range(times)]
    found = []
    for _ in range(merges):
        pairs = Counter(pair for word in corpus for pair in itertools.pairwise(word))
        (best, often), (_, next_often) = pairs.most_common(2)
        assert often > next_often, "a tie"
        found.append(best)
        corpus = [joined(word, best) for word in corpus]
    return found


def after(g: G) -> Any:
    word = list(g["word"])
    for pair in learned(g["counts"], g["merges"]):
        word = joined(word, pair)
    return tuple(word)


def block(g: G) -> Any:
    d = g["d"]
    shapes = [(d, d)] * 4 + [(d, 4 * d), (4 * d, d)] + [(d,)] * 4
    return sum(math.prod(shape) for shape in shapes)


def share(g: G) -> Any:
    attention, network = 4 * g["d"] ** 2, 2 * g["d"] * g["d"] * g["times"]
    return 100 * network / (network + attention)


def mini(g: G) -> Any:
    d, vocab, layers = g["d"], g["vocab"], g["layers"]
    one = sum(a * b for a, b in [(d, d)] * 3 + [(d, 4 * d), (4 * d, d)])
    return vocab * d + d * vocab + layers * one


def match(g: G) -> Any:
    """By what has to be written: nothing new, another text, or the text's own continuation."""
    nothing = "tell spam|find the most similar|mark the names|decide whether|fill a gap"
    another = "translate|speech into text|into a short summary|correct a sentence"
    if re.match(nothing, g["work"]):
        return "Encoder only"
    return "Encoder and decoder" if re.search(another, g["work"]) else "Decoder only"


def perplexity(g: G) -> Any:
    p = np.array(g["chances"])
    return p.prod() ** (-1 / len(p))


def odds(g: G) -> Any:
    two = soft([g["gap"] / g["tau"], 0])
    return two[0] / two[1]


def top_k(g: G) -> Any:
    p, k = np.sort(np.array(g["shares"]) / 100)[::-1], g["k"]
    return (p[:k] / p[:k].sum())[0]


def top_p(g: G) -> Any:
    shares, left, names = g["shares"], set(), list("ABCDEF")
    while sum(shares[names.index(name)] for name in left) < g["p"]:  # the likeliest that is not in yet
        left.add(max(set(names) - left, key=lambda name: shares[names.index(name)]))
    return frozenset(left)


def logit_gradient(g: G) -> Any:
    """By the loss itself, a little to either side of each logit."""
    logits, step = np.log(np.array(g["shares"]) / 100), 1e-3
    loss = [[-np.log(soft(logits + s * step * one)[g["right"]]) for s in (-2, -1, 1, 2)] for one in np.eye(3)]
    return [(a - 8 * b + 8 * c - d) / (12 * step) for a, b, c, d in loss]


def adamw_step(g: G) -> float:
    """By PyTorch's optimiser."""
    weight = torch.tensor([g["weight"]], dtype=torch.float64, requires_grad=True)
    weight.grad = torch.tensor([g["gradient"]], dtype=torch.float64)
    torch.optim.AdamW([weight], g["rate"], (0.9, 0.999), eps=0.0, weight_decay=g["decay"]).step()
    return weight.item()


def one_step(g: G) -> Any:
    """By autograd."""
    x, y = (torch.tensor(g[name], dtype=torch.float64) for name in ("x", "y"))
    w = torch.zeros((), dtype=torch.float64, requires_grad=True)
    ((w * x - y).square().mean() / 2).backward()
    return -g["rate"] * w.grad.item() * g["query"]


def lost(g: G) -> Any:
    """By going through the tokens of a lesson."""
    places = [("prompt", i) for i in range(g["prompt"])] + [("answer", i) for i in range(g["answer"])]
    predicted = places[1:] * g["lessons"]
    return len(predicted), sum(part == "answer" for part, _ in predicted)


def votes(g: G) -> float:
    """By every outcome."""
    p, n = g["percent"] / 100, g["votes"]
    outcomes = itertools.product((True, False), repeat=n)
    return 100 * sum(math.prod(p if ok else 1 - p for ok in one) for one in outcomes if sum(one) > n / 2)


def column_carries(g: G) -> list[int]:
    """By the sums of the last digits, one more at a time."""
    numbers = []
    for ten in (10**i for i in range(len(str(g["first"])))):
        ending = g["first"] % (10 * ten) + g["second"] % (10 * ten)
        numbers += [ending // (10 * ten), ending // ten % 10]
    return numbers


def step_size(g: G) -> Any:
    """By a parabola through three of its points."""
    eta = np.array([0.0, 0.5, 1.0])
    a, b, c = np.polyfit(eta, 1 - 2 * eta + eta**2 * (g["n"] + g["d"] + 1) / g["n"], 2)
    return -b / (2 * a), c - b**2 / (4 * a)


def pairs(rows: int, columns: int) -> list[tuple[int, int]]:
    return list(itertools.product(range(rows), range(columns)))


def by_delta_rule(old, new, like):
    """What k1 reads of a matrix into which both pairs are written one after the other."""
    keys = np.array([[1.0, 0.0], [like, np.sqrt(1 - like**2)]])
    state = np.zeros((2, 2))
    for key, value in zip(keys, (old, new), strict=True):
        state += np.outer(key, value - key @ state)
    return keys[0] @ state


def soft_gradient(student, teacher):
    """The gradient of -sum teacher ln softmax(z), by autograd."""
    z = torch.tensor(student, dtype=torch.float64).log().requires_grad_()
    (gradient,) = torch.autograd.grad(
        -(torch.tensor(teacher, dtype=torch.float64) * z.log_softmax(0)).sum(), z
    )
    return gradient.numpy()


def cells_that_change(g):
    """Cells of the stream that an edit reaches, block after block: each token reads those up to it."""
    reads = np.tri(g["length"], dtype=bool)
    stream = np.arange(1, g["length"] + 1) == g["token"]
    count = 0
    for _ in range(g["block"], g["blocks"]):
        stream = stream | (reads & stream).any(1)
        count += stream.sum()
    return count


ANSWERS: dict[str, Callable[[G], Any]] = {
    "score": lambda g: np.dot(g["q"], g["k"]) * len(g["q"]) ** -0.5,
    "row": row,
    "one-head": one_head,
    "split": lambda g: (np.reshape(g["q"], (2, 2)) * np.reshape(g["k"], (2, 2))).sum(1),
    "spread": lambda g: (g["d"] / g["heads"]) ** 0.5,
    "self-term": lambda g: np.ones(g["d"]).sum() / g["d"] ** 0.5,  # squares that are 1 on average
    "causal": lambda g: sum(k <= q for q, k in pairs(g["length"], g["length"])),
    "padding": lambda g: sum(k < g["length"] - g["empty"] for _, k in pairs(g["length"], g["length"])),
    "cross": lambda g: len(pairs(g["target"], g["source"] - g["empty"])),
    "queries": lambda g: queries(g).shape,
    "scores": lambda g: (queries(g) @ queries(g).swapaxes(-1, -2)).shape,
    "walk": walk,
    "sinusoid": lambda g: spun(g["place"], [1.0, 0.01]),
    "rotation": lambda g: turned(g).ravel(),
    "shift": lambda g: turned(g) @ spun(g["place"], [g["rate"]]),
    "rope": rope,
    "distance": distance,
    "alibi": lambda g: -(0.5 ** g["power"]) * np.arange(g["length"])[::-1],
    "merge": lambda g: learned(g["counts"], 1)[0],
    "after": after,
    "vocabulary": lambda g: g["start"] + g["merges"] + g["special"],
    "block": block,
    "active": active,
    "share": share,
    "tying": lambda g: g["vocab"] * g["d"],
    "gpt2": lambda g: GPT2[g["d"]],
    "mini": mini,
    "where": where,
    "flops": lambda g: 6 * g["size"] * g["tokens"] / 1000,  # in 10^18: 10^6 times 10^9
    "match": match,
    "start": lambda g: -np.log(1 / g["vocab"]),
    "perplexity": perplexity,
    "bits": lambda g: g["loss"] * math.log2(math.e) / g["letters"],
    "windows": lambda g: len(range(g["size"] - g["length"])),  # the last one's y ends on the last token
    "batch": lambda g: np.empty((g["texts"], g["length"])).size,
    "stream": stream,
    "dropout": dropout,
    "temperature": lambda g: soft(np.array(g["logits"]) / g["tau"]),
    "odds": odds,
    "top-k": top_k,
    "top-p": top_p,
    "drafts": lambda g: (1 - g["rate"] ** (g["ahead"] + 1)) / (1 - g["rate"]),
    "size": lambda g: 2 * g["layers"] * g["kv"] * g["wide"] * g["length"] * g["width"] / 1024 / 1024,
    "rows": lambda g: sum(len(range(g["prompt"] + written)) for written in range(g["new"])),
    "logit-gradient": logit_gradient,
    "matrix-gradient": lambda g: np.outer(g["g"], g["x"]).ravel(),
    "adamw-step": adamw_step,
    "grammar": lambda g: g["shares"][g["allowed"][0]] / sum(g["shares"][n] for n in g["allowed"]),
    "rewritten": lambda g: by_delta_rule(g["old"], g["new"], g["like"]),
    "interpolated": lambda g: np.arange(g["first"], g["second"], g["factor"]).size,
    "soft-target": lambda g: soft_gradient(g["student"], g["teacher"])[g["at"]],
    "cone": cells_that_change,
    "few-bits": lambda g: (
        np.empty((2, g["layers"], g["kv"], g["wide"] * g["bits"] + 2 * 16)).size // 8  # bits of all
    ),
    "tool-call": lambda g: sum(map(len, (str(g["a"]), str(g["b"]), "[+]", str(g["a"] + g["b"])))),
    "latent": lambda g: 2 * np.empty((g["layers"], g["rank"] + g["turned"])).size,
    "adapter-size": lambda g: (
        np.empty((g["rows"], g["rank"])).size + np.empty((g["rank"], g["columns"])).size
    ),
    "adapter-change": lambda g: (np.reshape(g["w"], (2, 2)) + np.array([g["up"]]).T @ [g["down"]]).ravel(),
    "counted-tokens": lost,
    "advantage": lambda g: np.array([1, 0]) - np.mean([i < g["good"] for i in range(g["group"])]),
    "any-of": lambda g: (
        100 * sum((1 - g["percent"] / 100) ** i * g["percent"] / 100 for i in range(g["tries"]))
    ),
    "penalty": lambda g: 1 - g["weight"] * (math.log(g["now"]) - math.log(g["before"])),
    "margin": lambda g: g["beta"] * -np.diff([np.diff(g["chosen"]), np.diff(g["rejected"])], axis=0)[0, 0],
    "tokens-of-budget": lambda g: g["compute"] * 1e12 / (2 + 4) / (g["millions"] * 1e6) / 1e6,
    "growth-exponent": lambda g: math.log(g["second"] / g["first"], g["times"]),
    "shared-growth": lambda g: np.exp(np.array([g["exponent"], 1 - g["exponent"]]) * math.log(g["times"])),
    "one-step": one_step,
    "best-slope": lambda g: np.linalg.lstsq(np.array([g["x"]]).T, g["y"], rcond=None)[0][0],
    "step-size": step_size,
    "running-parity": lambda g: [g["bits"][: i + 1].count(1) & 1 for i in range(len(g["bits"]))],
    "column-carries": column_carries,
    "majority": votes,
    "chain": lambda g: 100 * math.prod([g["percent"] / 100] * g["steps"]),
    "answer-scores": lambda g: np.concatenate(
        [np.divide(g["whole"], g["tokens"]), np.log(np.exp(g["whole"]) / np.exp(g["alone"]))]
    ),
}
