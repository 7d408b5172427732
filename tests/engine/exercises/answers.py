"""The right answers, worked out once more and in another way: by counting, by NumPy, by a plain loop."""

from __future__ import annotations

import cmath
import itertools
import math
import re
from collections import Counter
from typing import Any

import numpy as np

G = dict[str, Any]
# of the paper's models as they are published, counted by others
GPT2 = {768: 124_439_808, 1024: 354_823_168, 1280: 774_030_080, 1600: 1_557_611_200}


def soft(values: Any) -> np.ndarray:
    powers = np.exp(np.asarray(values, dtype=np.float64))
    return powers / powers.sum()


def score(g: G) -> Any:
    q, k = np.array(g["q"]), np.array(g["k"])
    return (q * k).sum() * len(q) ** -0.5


def row(g: G) -> Any:
    s, at = np.array(g["scores"]), g["at"]
    return np.concatenate([soft(s[: at + 1]), np.zeros(len(s) - at - 1)])


def one_head(g: G) -> Any:
    x, w_q, w_k, w_v = (np.array(g[name], dtype=float) for name in ("x", "w_q", "w_k", "w_v"))
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    scores = q @ k.T / math.sqrt(2)
    hidden = np.triu(np.full((3, 3), -np.inf), 1)
    return np.stack([soft(one) for one in scores + hidden])[1] @ v


def split(g: G) -> Any:
    q, k = np.array(g["q"]), np.array(g["k"])
    return (q.reshape(2, 2) * k.reshape(2, 2)).sum(1)


def spread(g: G) -> Any:
    return (g["d"] / g["heads"]) ** 0.5


def self_term(g: G) -> Any:
    ones = np.ones(g["d"])  # squares that are 1 on average
    return ones @ ones / g["d"] ** 0.5


def causal(g: G) -> Any:
    square = [(q, k) for q in range(g["length"]) for k in range(g["length"])]
    return sum(k <= q for q, k in square)


def padding(g: G) -> Any:
    length, real = g["length"], range(g["length"] - g["empty"])
    square = list(itertools.product(range(length), repeat=2))
    return sum(k in real for _, k in square)


def cross(g: G) -> Any:
    real = g["source"] - g["empty"]
    return len(list(itertools.product(range(g["target"]), range(real))))


def queries(g: G) -> Any:
    b, t, h, d = (g[name] for name in ("batch", "length", "heads", "d"))
    x = np.empty((b, t, d), dtype=np.int8)
    apart = x.reshape(b, t, h, -1)
    return apart.swapaxes(1, 2).shape


def scores(g: G) -> Any:
    b, t, h, d = (g[name] for name in ("batch", "length", "heads", "d"))
    q = np.empty((b, t, d), dtype=np.int8).reshape(b, t, h, -1).swapaxes(1, 2)
    return (q @ q.swapaxes(-1, -2)).shape


def walk(g: G) -> Any:
    wide = {"inside the feed": 4 * g["d"], "the logits": g["vocab"]}
    return g["batch"], g["length"], wide.get(g["where"][:15], g["d"])


def spun(place: float, rates: list[float]) -> np.ndarray:
    """By complex numbers: e^{ix} = cos x + i sin x."""
    turns = [cmath.exp(1j * place * rate) for rate in rates]
    return np.array([part for turn in turns for part in (turn.imag, turn.real)])


def sinusoid(g: G) -> Any:
    return spun(g["place"], [1.0, 0.01])


def turn(angle: float) -> np.ndarray:
    one = cmath.exp(1j * angle)
    return np.array([one.real, one.imag, -one.imag, one.real])


def rotation(g: G) -> Any:
    right = np.linalg.matrix_power(turn(g["rate"]).reshape(2, 2), g["steps"])  # one step after the other
    return right.ravel()


def shift(g: G) -> Any:
    p, k, rate = g["place"], g["steps"], [g["rate"]]
    return np.linalg.matrix_power(turn(rate[0]).reshape(2, 2), k) @ spun(p, rate)


def rope(g: G) -> Any:
    q, k = complex(*g["q"]), complex(*g["k"])
    one, other = q * cmath.exp(1j * g["m"] * g["rate"]), k * cmath.exp(1j * g["n"] * g["rate"])
    return (one * other.conjugate()).real  # the dot product of the pairs


def distance(g: G) -> Any:
    m, n = g["m"], g["n"]
    right = frozenset(g["right"])
    for pair in right:
        query, key = map(int, pair.split(" and "))
        assert query - key == m - n
    return right


def alibi(g: G) -> Any:
    away, slope = np.arange(g["length"])[::-1], 0.5 ** g["power"]
    return -slope * away


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
        pairs = Counter((a, b) for word in corpus for a, b in itertools.pairwise(word))
        (best, often), (_, next_often) = pairs.most_common(2)
        assert often > next_often, "a tie"
        found.append(best)
        corpus = [joined(word, best) for word in corpus]
    return found


def merge(g: G) -> Any:
    pairs = Counter(
        (a, b)
        for word, times in g["counts"].items()
        for _ in range(times)
        for a, b in itertools.pairwise(word)
    )
    return pairs.most_common(1)[0][0]


def after(g: G) -> Any:
    word = list(g["word"])
    for pair in learned(g["counts"], g["merges"]):
        word = joined(word, pair)
    return tuple(word)


def vocabulary(g: G) -> Any:
    return g["start"] + g["merges"] + g["special"]


def block(g: G) -> Any:
    d = g["d"]
    shapes = [(d, d)] * 4 + [(d, 4 * d), (4 * d, d)] + [(d,)] * 4
    return sum(math.prod(shape) for shape in shapes)


def share(g: G) -> Any:
    d, wide = g["d"], g["d"] * g["times"]
    attention, network = 4 * d * d, d * wide + wide * d
    return 100 * network / (network + attention)


def tying(g: G) -> Any:
    return g["vocab"] * g["d"]


def gpt2(g: G) -> Any:
    return GPT2[g["d"]]


def mini(g: G) -> Any:
    d, vocab, layers = g["d"], g["vocab"], g["layers"]
    one = sum(a * b for a, b in [(d, d)] * 3 + [(d, 4 * d), (4 * d, d)])
    return vocab * d + d * vocab + layers * one


def flops(g: G) -> Any:
    return 6 * g["size"] * g["tokens"] / 1000  # in 10^18: 10^6 times 10^9


def start(g: G) -> Any:
    return -np.log(1 / g["vocab"])


def perplexity(g: G) -> Any:
    p = np.array(g["chances"])
    return p.prod() ** (-1 / len(p))


def match(g: G) -> Any:
    """By what has to be written: nothing new, the text's own continuation, or another text."""
    nothing = "sort mails|find the most similar|mark the names|say whether|fill a gap"
    another = "translate|speech into text|onto a short summary|correct a sentence"
    if re.match(nothing, g["work"]):
        return "Encoder only"
    return "Encoder and decoder" if re.search(another, g["work"]) else "Decoder only"


def bits(g: G) -> Any:
    return g["loss"] * math.log2(math.e) / g["letters"]


def windows(g: G) -> Any:
    return len(range(g["size"] - g["length"]))  # the last one's y ends on the last token


def batch(g: G) -> Any:
    return np.empty((g["texts"], g["length"])).size


def temperature(g: G) -> Any:
    return soft(np.array(g["logits"]) / g["tau"])


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


def size(g: G) -> Any:
    return 2 * g["layers"] * g["kv"] * g["wide"] * g["length"] * g["width"] / 1024 / 1024


def rows(g: G) -> Any:
    prompt, new = g["prompt"], g["new"]
    return sum(len(range(prompt + written)) for written in range(new))
