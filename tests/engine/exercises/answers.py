"""What is right and what comes of each mistake, worked out once more and in another way: by counting, by NumPy, by
a plain loop. Each function gets the numbers that an exercise drew and returns {"": right, mistake: value, ...}.
"""

from __future__ import annotations

import cmath
import itertools
import math
from collections import Counter
from typing import Any

import numpy as np

G = dict[str, Any]
# of the paper's models as they are published, counted by others
GPT2 = {768: 124_439_808, 1024: 354_823_168, 1280: 774_030_080, 1600: 1_557_611_200}


def soft(values: Any) -> np.ndarray:
    powers = np.exp(np.asarray(values, dtype=np.float64))
    return powers / powers.sum()


def score(g: G) -> G:
    q, k = np.array(g["q"]), np.array(g["k"])
    bare = (q * k).sum()
    return {"": bare * len(q) ** -0.5, "root": bare, "width": bare / len(q), "times": bare * len(q) ** 0.5}


def row(g: G) -> G:
    s, at = np.array(g["scores"]), g["at"]
    later = np.arange(len(s)) > at
    unmasked = soft(s)
    return {
        "": np.concatenate([soft(s[: at + 1]), np.zeros(len(s) - at - 1)]),
        "late": np.where(later, 0, unmasked),
        "unmasked": unmasked,
        "zero": soft(np.where(later, 0, s)),
        "self": np.concatenate([soft(s[:at]), np.zeros(len(s) - at)]),
    }


def one_head(g: G) -> G:
    x, w_q, w_k, w_v = (np.array(g[name], dtype=float) for name in ("x", "w_q", "w_k", "w_v"))
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    scores = q @ k.T / math.sqrt(2)
    hidden = np.triu(np.full((3, 3), -np.inf), 1)

    def attended(s: np.ndarray, values: np.ndarray) -> np.ndarray:
        return np.stack([soft(one) for one in s])[1] @ values

    return {
        "": attended(scores + hidden, v),
        "root": attended(scores * math.sqrt(2) + hidden, v),
        "swapped": attended(scores.T + hidden, v),
        "unmasked": attended(scores, v),
        "late": (np.stack([soft(one) for one in scores]) * np.tril(np.ones((3, 3))))[1] @ v,
        "values": attended(scores + hidden, x),
    }


def split(g: G) -> G:
    q, k = np.array(g["q"]), np.array(g["k"])
    heads = (q.reshape(2, 2) * k.reshape(2, 2)).sum(1)
    return {
        "": heads,
        "woven": (q.reshape(2, 2) * k.reshape(2, 2)).sum(0),
        "whole": [q @ k, q @ k],
        "order": heads[::-1],
        "scaled": heads / 2**0.5,
    }


def spread(g: G) -> G:
    wide = g["d"] / g["heads"]
    return {"": wide**0.5, "variance": wide, "model": g["d"] ** 0.5, "one": 1, "both": g["d"]}


def self_term(g: G) -> G:
    ones = np.ones(g["d"])  # squares that are 1 on average
    bare = ones @ ones
    return {"": bare / g["d"] ** 0.5, "root": bare, "one": bare / g["d"], "zero": 0}


def causal(g: G) -> G:
    square = [(q, k) for q in range(g["length"]) for k in range(g["length"])]
    return {
        "": sum(k <= q for q, k in square),
        "self": sum(k < q for q, k in square),
        "all": len(square),
        "hidden-half": len(square) // 2,
    }


def padding(g: G) -> G:
    length, real = g["length"], range(g["length"] - g["empty"])
    square = list(itertools.product(range(length), repeat=2))
    return {
        "": sum(k in real for _, k in square),
        "all": len(square),
        "both": sum(k in real and q in real for q, k in square),
        "once": len(square) - g["empty"],
        "causal": sum(k in real and q in real and k <= q for q, k in square),
    }


def cross(g: G) -> G:
    real = g["source"] - g["empty"]
    return {
        "": len(list(itertools.product(range(g["target"]), range(real)))),
        "padding": g["target"] * g["source"],
        "source": g["source"] * real,
        "causal": int(np.tril(np.ones((g["target"], g["target"]))).sum()),
        "target": g["target"] ** 2,
    }


def queries(g: G) -> G:
    b, t, h, d = (g[name] for name in ("batch", "length", "heads", "d"))
    x = np.empty((b, t, d), dtype=np.int8)
    apart = x.reshape(b, t, h, -1)
    return {
        "": apart.swapaxes(1, 2).shape,
        "turned": apart.shape,
        "wide": (b, h, t, d),
        "before": x.shape,
        "batch": apart.swapaxes(1, 2)[0].shape,
    }


def scores(g: G) -> G:
    b, t, h, d = (g[name] for name in ("batch", "length", "heads", "d"))
    q = np.empty((b, t, d), dtype=np.int8).reshape(b, t, h, -1).swapaxes(1, 2)
    right = (q @ q.swapaxes(-1, -2)).shape
    return {
        "": right,
        "heads": (b, t, t),
        "wide": (q.swapaxes(-1, -2) @ q).shape,
        "queries": q.shape,
        "batch": right[1:],
    }


def walk(g: G) -> G:
    b, t, h, d = (g[name] for name in ("batch", "length", "heads", "d"))
    places = {
        "inside the feed": ((b, t, 4 * d), {"narrow": (b, t, d)}),
        "the logits": ((b, t, g["vocab"]), {"last": (b, g["vocab"])}),
        "attention's out": ((b, t, d), {"split": (b, h, t, d // h)}),
        "the embedded to": ((b, t, d), {"glued": (b, t, 2 * d)}),
    }
    right, mistakes = places[g["where"][:15]]
    return {"": right, "batch": right[1:], **mistakes}


def spun(place: float, rates: list[float]) -> np.ndarray:
    """By complex numbers: e^{ix} = cos x + i sin x."""
    turns = [cmath.exp(1j * place * rate) for rate in rates]
    return np.array([part for turn in turns for part in (turn.imag, turn.real)])


def sinusoid(g: G) -> G:
    p, rates = g["place"], [1.0, 0.01]
    right = spun(p, rates)
    return {
        "": right,
        "exponent": spun(p, [1.0, 0.1]),
        "swapped": right[[1, 0, 3, 2]],
        "degrees": spun(p * math.pi / 180, rates),
        "next": spun(p + 1, rates),
        "before": spun(p - 1, rates),
    }


def turn(angle: float) -> np.ndarray:
    one = cmath.exp(1j * angle)
    return np.array([one.real, one.imag, -one.imag, one.real])


def rotation(g: G) -> G:
    right = np.linalg.matrix_power(turn(g["rate"]).reshape(2, 2), g["steps"])  # one step after the other
    return {
        "": right.ravel(),
        "turned": right.T.ravel(),
        "one": turn(g["rate"]),
        "degrees": turn(g["rate"] * g["steps"] * math.pi / 180),
        "swapped": right[:, ::-1].ravel(),
    }


def shift(g: G) -> G:
    p, k, rate = g["place"], g["steps"], [g["rate"]]
    return {
        "": np.linalg.matrix_power(turn(rate[0]).reshape(2, 2), k) @ spun(p, rate),
        "backwards": spun(p - k, rate),
        "only": spun(k, rate),
        "swapped": spun(p + k, rate)[::-1],
        "short": spun(p + k - 1, rate),
    }


def rope(g: G) -> G:
    q, k = complex(*g["q"]), complex(*g["k"])

    def dot(query_turn: float, key_turn: float) -> float:
        """The real part of one number times the other's conjugate is the dot product of the pairs."""
        one, other = q * cmath.exp(1j * query_turn), k * cmath.exp(1j * key_turn)
        return (one * other.conjugate()).real

    m, n = g["m"] * g["rate"], g["n"] * g["rate"]
    return {"": dot(m, n), "bare": dot(0, 0), "sum": dot(m, -n), "sign": dot(n, m), "query": dot(m, 0)}


def distance(g: G) -> G:
    m, n = g["m"], g["n"]
    right = frozenset(g["right"])
    for pair in right:
        query, key = map(int, pair.split(" and "))
        assert query - key == m - n
    return {
        "": right,
        "back": right | {f"{n} and {m}"},
        "double": right | {f"{2 * m} and {2 * n}"},
        "sum": frozenset({f"{m + 1} and {n - 1}"}),
    }


def alibi(g: G) -> G:
    away, slope = np.arange(g["length"])[::-1], 0.5 ** g["power"]
    return {
        "": -slope * away,
        "sign": slope * away,
        "self": -slope * (away + 1),
        "slope": -1.0 * away,
        "reversed": -slope * away[::-1],
    }


def joined(word: list[str], pair: tuple[str, str]) -> list[str]:
    """By rewriting text: pieces stand between spaces."""
    text = f"  {'  '.join(word)}  "
    while f" {pair[0]}  {pair[1]} " in text:
        text = text.replace(f" {pair[0]}  {pair[1]} ", f" {''.join(pair)} ", 1)
    return text.split()


def learned(counts: dict[str, int], merges: int) -> list[tuple[str, str]]:
    corpus = [
        list(word) for word, times in counts.items() for _ in range(times)
    ]  # every word as often as it stands
    found = []
    for _ in range(merges):
        pairs = Counter((a, b) for word in corpus for a, b in itertools.pairwise(word))
        (best, often), (_, next_often) = pairs.most_common(2)
        assert often > next_often, "a tie"
        found.append(best)
        corpus = [joined(word, best) for word in corpus]
    return found


def merge(g: G) -> G:
    pairs = Counter(
        (a, b)
        for word, times in g["counts"].items()
        for _ in range(times)
        for a, b in itertools.pairwise(word)
    )
    types = Counter(pair for word in g["counts"] for pair in {*itertools.pairwise(word)})
    ranked, often = pairs.most_common(), types.most_common()
    found: G = {"": ranked[0][0], "second": {pair for pair, times in ranked if times == ranked[1][1]}}
    return found | {"types": {pair for pair, times in often if times == often[0][1]}}


def after(g: G) -> G:
    order = learned(g["counts"], g["merges"] + 1)

    def cut(merges: int) -> tuple[str, ...]:
        word = list(g["word"])
        for pair in order[:merges]:
            word = joined(word, pair)
        return tuple(word)

    n = g["merges"]
    return {"": cut(n), "letters": cut(0), "fewer": cut(n - 1), "more": cut(n + 1)}


def vocabulary(g: G) -> G:
    start, merges, special = g["start"], g["merges"], g["special"]
    entries = {
        *range(start),
        *(f"merge {i}" for i in range(merges)),
        *(f"special {i}" for i in range(special)),
    }
    return {
        "": len(entries),
        "merges": merges,
        "pairs": len(entries) + merges,
        "gone": start + special - merges,
        "special": len(entries) - special,
    }


def block(g: G) -> G:
    d = g["d"]
    shapes = [(d, d)] * 4 + [(d, 4 * d), (4 * d, d)] + [(d,)] * 4
    sizes = [math.prod(shape) for shape in shapes]
    total, biases = sum(sizes), 4 * d + 4 * d + d
    return {
        "": total,
        "output": total - sizes[3],
        "biases": total + biases,
        "norms": sum(sizes[:6]),
        "gains": sum(sizes[:8]),
        "heads": total + (g["heads"] - 1) * sum(sizes[:4]),
        "one": total - sizes[5],
    }


def share(g: G) -> G:
    d, wide = g["d"], g["d"] * g["times"]
    attention, network = 4 * d * d, d * wide + wide * d

    def of(part: float, rest: float) -> float:
        return 100 * part / (part + rest)

    right = of(network, attention)
    return {
        "": right,
        "rest": of(attention, network),
        "output": of(network, 3 * d * d),
        "one": of(d * wide, attention),
        "fraction": right / 100,
    }


def tying(g: G) -> G:
    table = g["vocab"] * g["d"]
    return {"": table, "both": table + table, "square": g["d"] ** 2, "bias": (g["d"] + 1) * g["vocab"]}


def gpt2(g: G) -> G:
    d, layers = g["d"], g["layers"]
    total = GPT2[d]
    norms = 2 * 2 * d * layers + 2 * d
    biases = layers * sum([3 * d, d, 4 * d, d])  # q k v in one, output, up, down
    return {
        "": total,
        "untied": total + 50_257 * d,
        "positions": total - 1024 * d,
        "final": total - 2 * d,
        "biases": total - biases,
        "norms": total - norms,
    }


def mini(g: G) -> G:
    d, vocab, layers = g["d"], g["vocab"], g["layers"]
    one = sum(a * b for a, b in [(d, d)] * 3 + [(d, 4 * d), (4 * d, d)])
    tables = vocab * d + d * vocab
    return {
        "": tables + layers * one,
        "output": tables + layers * (one + d * d),
        "tied": tables // 2 + layers * one,
        "one": tables + one,
        "tables": layers * one,
    }


def flops(g: G) -> G:
    each = g["size"] * g["tokens"] / 1000  # in 10^18: 10^6 times 10^9
    return {"": 6 * each, "forwards": 2 * each, "backwards": 4 * each, "half": 3 * each, "once": each}


def start(g: G) -> G:
    v = g["vocab"]
    return {
        "": -np.log(1 / v),
        "bits": -np.log2(1 / v),
        "ten": -np.log10(1 / v),
        "choices": v,
        "sign": np.log(1 / v),
    }


def perplexity(g: G) -> G:
    p = np.array(g["chances"])
    loss = -np.log(p.prod()) / len(p)
    return {
        "": p.prod() ** (-1 / len(p)),  # the geometric mean of 1/p
        "loss": loss,
        "sum": 1 / p.prod(),
        "mean": 1 / p.mean(),
        "two": math.exp(loss * math.log(2)),
        "each": (1 / p).mean(),
    }


def bits(g: G) -> G:
    per_token = g["loss"] * math.log2(math.e)
    return {
        "": per_token / g["letters"],
        "nats": g["loss"] / g["letters"],
        "token": per_token,
        "times": g["loss"] / math.log2(math.e) / g["letters"],
        "spread": per_token * g["letters"],
    }


def windows(g: G) -> G:
    size, length = g["size"], g["length"]
    last = size - 1 - length  # its y ends on the last token
    return {"": last + 1, "shift": last + 2, "short": last, "none": size, "blocks": size // length}


def batch(g: G) -> G:
    x = np.empty((g["texts"], g["length"]))
    return {
        "": x.size,
        "last": len(x),
        "shift": x[:, 1:].size,
        "text": x[0].size,
        "pairs": x.size * x.shape[1],
    }


def temperature(g: G) -> G:
    logits, tau = np.array(g["logits"]), g["tau"]
    return {
        "": soft(logits / tau),
        "times": soft(logits * tau),
        "one": soft(logits),
        "late": soft(logits) / tau,
    }


def odds(g: G) -> G:
    two = soft([g["gap"] / g["tau"], 0])
    one = soft([g["gap"], 0])
    return {
        "": two[0] / two[1],
        "times": np.divide(*soft([g["gap"] * g["tau"], 0])),
        "one": one[0] / one[1],
        "late": one[0] / one[1] / g["tau"],
        "linear": g["gap"] / g["tau"],
    }


def top_k(g: G) -> G:
    p, k = np.sort(np.array(g["shares"]) / 100)[::-1], g["k"]

    def first(kept: int) -> float:
        cut = np.where(np.arange(6) < kept, p, 0)
        return (cut / cut.sum())[0]

    return {"": first(k), "sum": p[0], "more": first(k + 1), "fewer": first(k - 1), "even": 1 / k}


def top_p(g: G) -> G:
    shares, left, names = g["shares"], set(), list("ABCDEF")
    while sum(shares[names.index(name)] for name in left) < g["p"]:  # the likeliest that is not in yet
        left.add(max(set(names) - left, key=lambda name: shares[names.index(name)]))
    ordered = sorted(left)
    return {
        "": frozenset(left),
        "fewer": frozenset(ordered[:-1]),
        "more": frozenset(names[: len(left) + 1]),
        "each": frozenset(name for name, share in zip(names, shares, strict=True) if share + g["p"] >= 100),
    }


def size(g: G) -> G:
    numbers = (
        g["layers"] * g["kv"] * g["wide"] * g["length"] + g["layers"] * g["kv"] * g["wide"] * g["length"]
    )
    in_bytes = numbers * g["width"]
    right = in_bytes / 1024 / 1024
    return {
        "": right,
        "two": right / 2,
        "queries": right / g["kv"] * g["heads"],
        "bytes": numbers / 2**20,
        "layers": right / g["layers"],
        "mega": in_bytes / 1_000_000,
        "head": right / g["kv"],
    }


def rows(g: G) -> G:
    prompt, new = g["prompt"], g["new"]
    read, text = 0, prompt
    kept = set(range(prompt))
    for _ in range(new):
        read += text
        kept |= set(range(text))
        text += 1
    return {
        "": read,
        "cache": len(kept),
        "long": text * new,
        "late": sum(prompt + i for i in range(1, new + 1)),
        "prompt": sum(range(new)),
        "short": prompt * new,
    }
