"""Positions: sinusoids (Vaswani et al. 2017), RoPE (Su et al. 2021), ALiBi (Press et al. 2022)."""

from __future__ import annotations

import math
from random import Random

from studies.exercises.arithmetic import dot, shown, times
from studies.exercises.exercise import Exercise, Mistake, extra_options, mistakes, see
from studies.exercises.forms import Numbers, Pick

BASE = 10_000


def _encoding(position: float, rates: list[float]) -> tuple[float, ...]:
    return tuple(turn(position * rate) for rate in rates for turn in (math.sin, math.cos))


def _rotation(angle: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """R with PE(p + k) = R PE(p) for the pair [sin, cos]."""
    return (math.cos(angle), math.sin(angle)), (-math.sin(angle), math.cos(angle))


def _entries(angle: float) -> tuple[float, ...]:
    """Returns the entries of R, row by row."""
    return tuple(entry for row in _rotation(angle) for entry in row)


def sinusoid(rng: Random) -> Exercise:
    place, d = rng.randint(1, 9), 4
    rates = [BASE ** (-2 * pair / d) for pair in range(2)]
    right = _encoding(place, rates)
    return Exercise(
        f"The sinusoidal encoding of position $p = {place}$ with $d = 4$ and base 10,000 (angles in radians,"
        " positions counted from 0). What are its four numbers?",
        Numbers(4, 3),
        right,
        (
            "Pair $i$ rotates by $10000^{-2i/d}$ per step: 1 for $i = 0$, $10000^{-2/4} = 0.01$ for $i = 1$.",
            f"$[\\sin {place}, \\cos {place}, \\sin {place / 100:g}, \\cos {place / 100:g}]$",
            f"= **{shown(right, 3)}**.",
        ),
        mistakes(
            (_encoding(place, [1.0, BASE ** (-1 / d)]), "The exponent is $2i/d$: the factor 2 is missing."),
            (
                (right[1], right[0], right[3], right[2]),
                "Sine is on the even dimensions, cosine on the odd ones, not the other way round.",
            ),
            (
                _encoding(math.radians(place), rates),
                "Your calculator is set to degrees. The angles are radians.",
            ),
            (_encoding(place + 1, rates), "Off by one: positions are counted from 0."),
            (_encoding(place - 1, rates), "Off by one: that is the position before."),
        ),
        see("positions", positions_view="sinusoidal"),
        {"place": place},
    )


def rotation(rng: Random) -> Exercise:
    steps, rate = rng.randint(2, 9), rng.choice([0.05, 0.1, 0.2, 0.25])
    right = _entries(steps * rate)
    return Exercise(
        f"One pair of the encoding rotates by $\\theta = {rate}$ per position: $[\\sin(\\theta p),"
        f" \\cos(\\theta p)]$. Which matrix $R$ maps position $p$ to $p + {steps}$, for every $p$? (Four"
        " numbers, row by row.)",
        Numbers(4, 3),
        right,
        (
            f"$k\\theta$ = {steps} · {rate} = {steps * rate:g}.",
            "$\\sin(a + b) = \\cos b \\sin a + \\sin b \\cos a$ and $\\cos(a + b) = -\\sin b \\sin a + \\cos"
            " b \\cos a$.",
            f"Row by row: **{shown(right, 3)}**. It does not depend on $p$.",
        ),
        mistakes(
            ((right[0], right[2], right[1], right[3]), "That rotates backwards: it maps $p$ to $p - k$."),
            (_entries(rate), "That is only one step. The angle is $k\\theta$."),
            (_entries(math.radians(steps * rate)), "The angles are radians, not degrees."),
            (
                (right[1], right[0], right[3], right[2]),
                "Sine and cosine are swapped: $\\cos k\\theta$ is on the diagonal.",
            ),
        ),
        see("positions", positions_view="sinusoidal"),
        {"steps": steps, "rate": rate},
    )


def shift(rng: Random) -> Exercise:
    place, steps, rate = rng.randint(1, 9), rng.randint(2, 6), rng.choice([0.1, 0.2, 0.3])
    here = _encoding(place, [rate])
    right = _encoding(place + steps, [rate])
    return Exercise(
        f"A pair of the encoding with $\\theta = {rate}$ holds ${shown(here, 3)}$ at position $p = {place}$."
        f" What does it hold {steps} positions later? (Two numbers, $\\sin$ first.)",
        Numbers(2, 3),
        right,
        (
            f"$R({steps})$ with $k\\theta = {steps * rate:g}$: ${shown(_entries(steps * rate), 3)}$, row by"
            " row.",
            f"Times ${shown(here, 3)}$: **{shown(right, 3)}**.",
        ),
        mistakes(
            (_encoding(place - steps, [rate]), "You rotated backwards, to position $p - k$."),
            (_encoding(steps, [rate]), "That is position $k$ itself. You start at $p$."),
            (right[::-1], "Sine and cosine are swapped."),
            (_encoding(place + steps - 1, [rate]), "Off by one: that is one position too early."),
        ),
        see("positions", positions_view="sinusoidal"),
        {"place": place, "steps": steps, "rate": rate},
    )


def rope(rng: Random) -> Exercise:
    q, k = ([rng.randint(-3, 4) for _ in range(2)] for _ in range(2))
    m, n, rate = rng.randint(5, 9), rng.randint(0, 4), rng.choice([0.1, 0.2, 0.3, 0.5])

    def turned(row: list[int], angle: float) -> tuple[float, ...]:
        """Rotates a vector of the plane counterclockwise, as RoPE rotates a pair."""
        return times(row, _rotation(angle))

    def value(angle: float) -> float:
        return dot(turned(q, angle), k)

    angle = (m - n) * rate
    return Exercise(
        f"RoPE with one pair: $q = {shown(q)}$ at position {m}, $k = {shown(k)}$ at position {n}, $\\theta ="
        f" {rate}$. A vector at position $p$ is rotated by $p\\theta$ anticlockwise: $[a \\cos - b \\sin, a"
        " \\sin + b \\cos]$. What is their dot product? (Unscaled.)",
        Numbers(1, 2),
        (value(angle),),
        (
            f"Rotated, $q$ becomes ${shown(turned(q, m * rate), 3)}$, $k$ becomes"
            f" ${shown(turned(k, n * rate), 3)}$.",
            f"Their dot product: **{value(angle):.2f}**. The same as rotating only $q$ by the difference"
            f" {m - n} · {rate} = {angle:g}.",
        ),
        mistakes(
            ((float(dot(q, k)),), "Nothing is rotated: that is the bare $q \\cdot k$."),
            ((value((m + n) * rate),), "Both rotate the same way: subtract the angles."),
            ((value(-angle),), "You rotated the wrong way round: it is $m - n$, not $n - m$."),
            ((value(m * rate),), "You rotated only the query. The key is rotated too."),
        ),
        see("positions", positions_view="rope"),
        {"q": q, "k": k, "m": m, "n": n, "rate": rate},
    )


def distance(rng: Random) -> Exercise:
    m, gap = rng.randint(8, 20), rng.randint(2, 6)
    n = m - gap

    def pair(query: int, key: int) -> str:
        return f"{query} and {key}"

    far = rng.sample(range(21, 200), 2)
    same = [pair(key, key - gap) for key in far]
    right = frozenset(same)
    back, double, same_sum = pair(n, m), pair(2 * m, 2 * n), pair(m + 1, n - 1)
    options = sorted((*same, back, double, same_sum), key=lambda key: rng.random())
    return Exercise(
        f"With RoPE, a query $q$ at position {m} and a key $k$ at position {n} have a certain score. At"
        " which of these positions (query and key) is the score the same, for any $q$ and $k$?",
        Pick(tuple(options)),
        right,
        (
            f"Only $m - n$ matters: here {gap}.",
            f"The pairs with this difference: **{' and '.join(sorted(right))}**.",
        ),
        (
            *extra_options(
                right,
                {
                    back: f"Not {back}: the sign matters. There the key comes *after* the query.",
                    double: f"Not {double}: twice the positions means twice the distance.",
                },
            ),
            Mistake(frozenset((same_sum,)), "The difference matters, not the sum."),
        ),
        see("positions", positions_view="rope"),
        {"m": m, "n": n, "right": sorted(right)},
    )


def alibi(rng: Random) -> Exercise:
    length, power = rng.choice([4, 5]), rng.randint(1, 4)
    slope = 2.0**-power
    right = tuple(-slope * (length - 1 - key) for key in range(length))
    return Exercise(
        f"ALiBi with slope $1/{2**power}$: what is added to the {length} scores of token {length}, the last"
        f" one, with tokens 1 to {length}?",
        Numbers(length, 4),
        right,
        (
            f"The distances: {', '.join(str(length - 1 - key) for key in range(length))}.",
            f"Minus slope times distance: **{shown(right, 4)}**.",
        ),
        mistakes(
            (tuple(-bias for bias in right), "Distant keys score *lower*: the sign is minus."),
            (tuple(bias - slope for bias in right), "Off by one: the distance to itself is 0."),
            (tuple(bias / slope for bias in right), "You forgot the slope."),
            (right[::-1], "The other way round: the token itself, the last one, has distance 0."),
        ),
        see("positions", positions_view="biases"),
        {"length": length, "power": power},
    )


def interpolated(rng: Random) -> Exercise:
    trained, factor = rng.choice([64, 128, 512, 2048]), rng.choice([2, 4, 8])
    first = rng.randint(2, trained // 8) * factor
    second = first + rng.randint(2, trained // 8) * factor
    apart = second - first
    result = apart / factor
    return Exercise(
        f"A model with RoPE was trained on {trained:,} positions, and is to read {factor} times as many by"
        f" **position interpolation**. How far apart do the positions {first:,} and {second:,} look to it?",
        Numbers(),
        (result,),
        (
            f"Every frequency is divided by {factor}: position $p$ turns as position $p/{factor}$ did.",
            f"They are {apart:,} apart, and look {apart:,} / {factor} = **{result:,.0f}** apart.",
        ),
        mistakes(
            ((apart,), f"Without interpolation. All turns are {factor} times as slow."),
            ((apart * factor,), "Frequencies are divided, not multiplied: distances look shorter."),
            ((second / factor,), "That is the place of the second one. RoPE sees the distance."),
        ),
        see("positions", positions_view="bench", bench_compare="stretched"),
        {"trained": trained, "factor": factor, "first": first, "second": second},
    )


TASKS = (
    ("sinusoid", "Four entries of a position vector", sinusoid),
    ("rotation", "From p to p + k", rotation),
    ("shift", "Some positions later", shift),
    ("rope", "A rotated score", rope),
    ("distance", "Only the distance", distance),
    ("alibi", "A slope", alibi),
    ("interpolated", "Position interpolation", interpolated),
)
