"""Proofs and arguments as steps to put in order: a step may be anywhere after all that it uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from random import Random

from engine.lab.exercises.exercise import Exercise, Mistake, See, see
from engine.lab.exercises.forms import Order


@dataclass(frozen=True)
class Proof:
    """A proof or an argument. `steps`: name -> (its sentence, the names that it uses), in one valid order;
    `wrong`: distractor -> why it has no place.
    """

    claim: str
    steps: Mapping[str, tuple[str, tuple[str, ...]]]
    wrong: Mapping[str, str]
    shows: See
    kind: str = "proof"


EQUIVARIANCE = Proof(
    "Attention without positions and without a mask is **equivariant**: if $P$ permutes the tokens, then"
    " $\\text{Attn}(PX) = P \\, \\text{Attn}(X)$.",
    {
        "qkv": ("Each row gives its own query, key and value: $PX$ gives $PQ$, $PK$, $PV$.", ()),
        "scores": ("The scores become $(PQ)(PK)^T = P (QK^T) P^T$.", ("qkv",)),
        "softmax": ("The softmax acts on each row by itself: the weights become $P A P^T$.", ("scores",)),
        "sum": ("The weighted sum becomes $(P A P^T)(P V)$.", ("softmax", "qkv")),
        "cancel": ("$P^T P = I$ for every permutation, so this is $P (A V)$.", ("sum",)),
    },
    {
        "The weights stay $A$, since the tokens are the same.": "rows and columns of the weights move too.",
        "So the output does not change at all.": "that would be invariance, but the rows of the output move.",
    },
    see("positions", positions_view="why"),
)
ROTATION = Proof(
    "For each pair of the sinusoidal encoding there is a matrix $R(k)$ with $PE(p + k) = R(k) \\, PE(p)$.",
    {
        "pair": ("Take one pair: $[\\sin \\theta p, \\cos \\theta p]$.", ()),
        "shifted": (
            "At $p + k$ it is $[\\sin(\\theta p + \\theta k), \\cos(\\theta p + \\theta k)]$.",
            ("pair",),
        ),
        "sine": (
            "$\\sin(\\theta p + \\theta k) = \\cos \\theta k \\sin \\theta p + \\sin \\theta k \\cos \\theta"
            " p$.",
            ("shifted",),
        ),
        "cosine": (
            "$\\cos(\\theta p + \\theta k) = -\\sin \\theta k \\sin \\theta p + \\cos \\theta k \\cos \\theta"
            " p$.",
            ("shifted",),
        ),
        "matrix": (
            "Both lines are one matrix times the pair; its entries contain $k$ but not $p$.",
            ("sine", "cosine"),
        ),
    },
    {
        "$\\sin(\\theta p + \\theta k) = \\sin \\theta p + \\sin \\theta k$.": "sine is not linear.",
        "So $R$ depends on $p$ and has to be learned.": "the entries contain only the distance $k$.",
    },
    see("positions", positions_view="sinusoidal"),
)
ROPE = Proof(
    "With RoPE the score of a query at $m$ and a key at $n$ depends only on $m - n$.",
    {
        "turn": ("RoPE rotates both: $q' = R(m) q$ and $k' = R(n) k$.", ()),
        "score": ("The score is $q'^T k' = (R(m) q)^T (R(n) k)$.", ("turn",)),
        "transpose": ("Transposed, this is $q^T R(m)^T R(n) k$.", ("score",)),
        "back": ("A transposed rotation rotates backwards: $R(m)^T = R(-m)$.", ()),
        "add": (
            "Angles add up: $R(-m) R(n) = R(n - m)$, so $m$ and $n$ occur only as $n - m$.",
            ("transpose", "back"),
        ),
    },
    {
        "$R(m)^T R(n) = R(m + n)$.": "transposing rotates *backwards*, so the angles are subtracted.",
        "The values are rotated as well, so it cancels.": "RoPE does not rotate values.",
    },
    see("positions", positions_view="rope"),
)
CACHE = Proof(
    "Keys and values may be **cached** while a decoder writes, because of the causal mask.",
    {
        "new": ("A new token is appended: positions $1, \\dots, t$ keep their tokens.", ()),
        "embed": ("So the first layer's input at these positions stays the same.", ("new",)),
        "mask": ("Under the causal mask, position $i$ attends only to positions up to $i$.", ()),
        "layer": ("So a layer's output at $i \\le t$ does not depend on the new token.", ("embed", "mask")),
        "deep": ("By induction this holds for the input of every layer.", ("layer",)),
        "keys": ("Keys and values come from it row by row, so they stay and can be cached.", ("deep",)),
    },
    {
        "The softmax of every row is computed anew, so old outputs"
        " change.": "old rows do not attend to the new token.",
        "Queries must be cached too.": "an old query is never used again: only the new token's is.",
    },
    see("generation", generation_view="cache"),
)
STREAM = Proof(
    "In a pre-norm model the gradient has a path from the last block to the first that passes through **no"
    " norm**.",
    {
        "block": ("A sublayer writes $x' = x + F(\\text{Norm}(x))$.", ()),
        "derive": ("Its derivative is $I + J$, where $J$ is that of $F(\\text{Norm}(x))$.", ("block",)),
        "chain": ("By the chain rule, the stack's derivative is $(I + J_1)(I + J_2) \\cdots$.", ("derive",)),
        "expand": ("Expanded, one of its terms is $I$, without any $J$.", ("chain",)),
    },
    {
        "The derivative is $J$ alone.": "$x$ itself is added: its derivative is $I$.",
        "So $x' = \\text{Norm}(x + F(x))$.": "that is post-norm: there every path passes through the norms.",
    },
    see("residual", residual_view="highway"),
)
CLEAN = Proof(
    "Pre-norm keeps the residual stream **cleaner** than post-norm: a write stays as it was written.",
    {
        "pre": ("Pre-norm is $x' = x + F(\\text{Norm}(x))$: the norm acts on a copy, which $F$ reads.", ()),
        "sum": ("So the stream is a sum, $x_n = x_0 + F_1 + \\cdots + F_n$, and may grow.", ("pre",)),
        "size": ("What is read has a standard size, however large the stream is.", ("sum",)),
        "post": ("Post-norm is $x' = \\text{Norm}(x + F(x))$: the norm acts on the sum, $x$ included.", ()),
        "shrunk": ("So an early write is rescaled again by each later norm.", ("post",)),
        "clean": ("Only in pre-norm does a late block find an early write unchanged.", ("size", "shrunk")),
    },
    {
        "Pre-norm normalises the stream itself, so its size stays 1.": "the norm acts on the copy that is"
        " read; the stream itself grows with its writes.",
        "Post-norm does not add $x$, so early writes are lost at once.": "post-norm adds $x$ too, and then"
        " rescales the sum.",
    },
    see("residual", residual_view="norms"),
    "argument",
)
TIED = Proof(
    "**One table** can be both embedding and unembedding: $W_U = E^T$.",
    {
        "read": ("Row $i$ of the embedding is all that the blocks read of token $i$.", ()),
        "near": ("So tokens that should be treated alike need similar embeddings.", ("read",)),
        "logit": ("The logit of token $i$: the last vector times row $i$ of the unembedding.", ()),
        "likely": ("So tokens that are likely in the same contexts need similar unembeddings.", ("logit",)),
        "same": ("These are mostly the same tokens: those of similar meaning.", ("near", "likely")),
        "one": ("So one table serves both, and its rows learn as input *and* output.", ("same",)),
    },
    {
        "$E^T$ is the inverse of $E$, so it undoes the embedding.": "$E$ has $V$ rows and $d$ columns, so it"
        " has no inverse.",
        "With one table the logits sum to 1.": "probabilities do, after the softmax, with one table or two.",
    },
    see("parameters", parameters_view="where", parameters_model="gpt2"),
    "argument",
)


def _order(proof: Proof, rng: Random) -> Exercise:
    text = {name: line for name, (line, _) in proof.steps.items()}
    steps = tuple(sorted((*text.values(), *proof.wrong), key=lambda _: rng.random()))
    needs = {line: tuple(text[each] for each in uses) for line, uses in proof.steps.values()}
    form = Order(steps, needs, proof.wrong)
    right = tuple(text.values())
    listed = "".join(f"\n- **{form.letter(step)}** {step}" for step in steps)
    return Exercise(
        f"{proof.claim} Put the {len(right)} steps of the {proof.kind} in order; {len(proof.wrong)} do"
        f" not belong.\n{listed}",
        form,
        right,
        tuple(f"**{form.letter(step)}** {step}" for step in right),
        tuple(
            Mistake(f"wrong-{place}", (*right, step), f"Step {form.letter(step)} does not belong: {why}")
            for place, (step, why) in enumerate(proof.wrong.items())
        ),
        proof.shows,
        {"steps": steps},
    )


TASKS = tuple(
    (name, title, partial(_order, proof))
    for name, title, proof in (
        ("equivariance", "Another order of tokens", EQUIVARIANCE),
        ("turning", "A rotation by k", ROTATION),
        ("relative", "RoPE and the distance", ROPE),
        ("keeping", "Why a cache works", CACHE),
        ("highway", "A path past the norms", STREAM),
        ("clean-stream", "Why pre-norm is cleaner", CLEAN),
        ("one-table", "Why one table is enough", TIED),
    )
)
