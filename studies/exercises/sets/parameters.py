"""Counting parameters, floating-point operations and what tying saves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from studies.costs.ledger import component_parameters
from studies.costs.presets import PRESETS
from studies.exercises.exercise import Exercise, Mistake, mistakes, see
from studies.exercises.forms import Choice, Numbers

GPT2 = {"small": (12, 768), "medium": (24, 1024), "large": (36, 1280), "XL": (48, 1600)}
GPT2_VOCAB, GPT2_CONTEXT = 50_257, 1024
NO_OUTPUT_MATRIX = "You left $W_O$ out: attention has four matrices."
NO_BIASES = "You counted biases, but the matrices here have none."
TIMES_HEADS = "You multiplied by the number of heads. They share the $d$ columns: the cost stays the same."
TWO_MATRICES = "The feed-forward network has two matrices."
GAIN_AND_BIAS = "Each LayerNorm has a gain *and* a bias."
VOCABULARY_ROWS = "The tables have a row for each entry of the vocabulary: $V \\cdot d$."


@dataclass(frozen=True)
class Counts:
    """The parts of a count of a whole model, in parameters: tables, the last norm, all biases of matrices
    and all norms before the last one. `biases_each` says how many biases a block has (Markdown).
    """

    total: int
    tokens: int
    positions: int
    last_norm: int
    biases: int
    norms: int
    tied: bool
    biases_each: str
    norm_vectors: str = "a gain and a bias"

    @property
    def mistakes(self) -> tuple[Mistake, ...]:
        """The usual mistakes of the total; parts that the model does not have are in none."""
        rows = (
            (self.tokens * self.tied, "You counted the table twice, but it is tied."),
            (-self.positions, "The position table is missing."),
            (-self.last_norm, "The norm after the last block is missing."),
            (-self.biases, f"The biases of the matrices are missing: {self.biases_each} per block."),
            (-self.norms - self.last_norm, f"The norms are missing, each with {self.norm_vectors}."),
        )
        return mistakes(*(((self.total + off,), hint) for off, hint in rows if off))


def experts(rng: Random) -> Exercise:
    d, ff = rng.choice([(512, 256), (1024, 512), (2048, 768), (4096, 1536)])
    total, active, shared = rng.choice([(8, 2, 1), (16, 2, 1), (64, 6, 2), (128, 8, 1), (256, 8, 1)])
    each, router = 3 * d * ff, d * total
    answer = (active + shared) * each + router
    everything = (total + shared) * each + router
    return Exercise(
        f"A mixture of {total} experts, each a SwiGLU network with $d = {d}$, $d_{{ff}} = {ff}$ and no"
        f" biases. A router (one matrix, a logit for each of the {total}) chooses {active} for a token, and"
        f" {shared} more of the same size {'reads' if shared == 1 else 'read'} every token. How many of the"
        " layer's parameters does a token meet?",
        Numbers(),
        (float(answer),),
        (
            f"An expert has three matrices: $3 \\cdot {d} \\cdot {ff} = {each:,}$.",
            f"A token meets {active} chosen and {shared} shared: $({active} + {shared}) \\cdot {each:,}$.",
            f"Every token meets the whole router: $+\\; {d} \\cdot {total} = {router:,}$. In all {answer:,}.",
        ),
        mistakes(
            ((everything,), "These are all parameters: most experts are not computed for this token."),
            ((answer - router,), "The router is missing: it scores every expert for every token."),
            ((active * each + router,), "The shared experts are missing: every token meets them."),
            (
                ((active + shared) * 2 * d * ff + router,),
                "A SwiGLU network has three matrices: the gate counts.",
            ),
        ),
        see("feedforward", feedforward_view="experts"),
        {"d": d, "ff": ff, "total": total, "active": active, "shared": shared},
    )


def block(rng: Random) -> Exercise:
    d = rng.choice([32, 48, 64, 96, 128, 192, 256, 384, 512, 640, 768, 1024])
    heads = rng.choice([8, 4, 2])
    attention, feedforward, norms = 4 * d * d, 8 * d * d, 4 * d
    total = attention + feedforward + norms
    return Exercise(
        f"A block with $d = {d}$, $H = {heads}$, $d_{{ff}} = {4 * d}$ and two LayerNorms (a gain and a bias"
        " each). Its matrices, including $W_O$, have **no** biases. How many parameters does it have?",
        Numbers(),
        (total,),
        (
            f"Attention, four matrices: $4 d^2$ = {attention:,}. The number of heads makes no difference.",
            f"Feed-forward: $2 \\cdot d \\cdot d_{{ff}}$ = {feedforward:,}.",
            f"Two norms, each $2d$: {norms:,}.",
            f"Together **{total:,}**.",
        ),
        mistakes(
            ((total - d * d,), NO_OUTPUT_MATRIX),
            ((total + 9 * d,), NO_BIASES),
            ((total - norms,), "The two norms are missing: $2d$ each."),
            ((total - norms // 2,), GAIN_AND_BIAS),
            ((total + (heads - 1) * attention,), TIMES_HEADS),
            ((total - feedforward // 2,), TWO_MATRICES),
        ),
        see(
            "parameters",
            parameters_view="where",
            parameters_model="block-512",
            parameters_scope="block",
            hand="true",
        ),
        {"d": d, "heads": heads},
    )


def tying(rng: Random) -> Exercise:
    vocab = rng.choice([50_257, 32_000, 30_522, 65, 10_000, 16_384])
    d = rng.choice([256, 512, 768, 1024, 1280, 2048])
    return Exercise(
        f"A model with $V = {vocab:,}$ and $d = {d}$ also uses its embedding table as unembedding ($W_U ="
        " E^T$). How many parameters does this tying save?",
        Numbers(),
        (vocab * d,),
        (
            f"Untied there are two tables of $V \\cdot d$: {vocab:,} · {d} each.",
            f"Tied there is one: **{vocab * d:,}** are saved.",
        ),
        mistakes(
            ((2 * vocab * d,), "That is both tables. One of them is still needed."),
            ((d * d,), VOCABULARY_ROWS),
            ((vocab * d + vocab,), "There is no bias here: only the table itself is saved."),
        ),
        see("parameters", parameters_view="where"),
        {"vocab": vocab, "d": d},
    )


def share(rng: Random) -> Exercise:
    d, times = rng.choice([128, 256, 512, 768, 1024]), rng.choice([2, 3, 4, 5, 6, 8])
    result = 2 * times / (4 + 2 * times) * 100
    return Exercise(
        f"Attention has $4 d^2$ weights. With $d = {d}$ and $d_{{ff}} = {times * d}$: what share of a block's"
        " weights is in the feed-forward network? (No biases, no norms; in percent.)",
        Numbers(1, 1, "%"),
        (result,),
        (
            f"Attention: {4 * d * d:,}. Feed-forward: 2 · {d} · {times * d} = {2 * times * d * d:,}.",
            f"{2 * times * d * d:,} / {(4 + 2 * times) * d * d:,} = **{result:.1f}%**.",
        ),
        mistakes(
            ((100 - result,), "That is attention's share."),
            ((200 * times / (3 + 2 * times),), "You left $W_O$ out: attention has $4 d^2$."),
            ((100 * times / (4 + times),), TWO_MATRICES),
            ((result / 100,), "Give the answer in percent."),
        ),
        see("parameters", parameters_view="where", parameters_model="block-512", parameters_scope="block"),
        {"d": d, "times": times},
    )


def gpt2(rng: Random) -> Exercise:
    """Asks for one of the four published sizes: everything has biases, the tables are tied."""
    name = rng.choice(list(GPT2))
    layers, d = GPT2[name]
    tables = GPT2_VOCAB * d, GPT2_CONTEXT * d
    per_block = 12 * d * d + 13 * d
    total = sum(tables) + layers * per_block + 2 * d
    return Exercise(
        f"GPT-2 {name}: $V = 50257$, a learned table of $1024$ positions, $d = {d}$, {layers} blocks with"
        " $d_{ff} = 4d$. Every matrix of a block has biases, every LayerNorm a gain and a bias, there is one"
        " more norm at the end, and the tables are tied. How many parameters?",
        Numbers(),
        (total,),
        (
            f"Tokens: 50,257 · {d} = {tables[0]:,}; positions: 1,024 · {d} = {tables[1]:,}.",
            "A block: $12 d^2$ weights, $4d + 4d + d$ biases, $4d$ in two norms: $12 d^2 + 13 d$ ="
            f" {per_block:,}. {layers} of them: {layers * per_block:,}.",
            f"The last norm: {2 * d:,}. Together **{total:,}**.",
        ),
        Counts(total, *tables, 2 * d, 9 * layers * d, layers * 4 * d, True, "$9d$").mistakes,
        see("parameters", parameters_view="where", parameters_model="gpt2", hand="true"),
        {"layers": layers, "d": d},
    )


WHERE = {
    "The token table": ("embedding",),
    "The position table": ("position",),
    "Attention": ("attention",),
    "The feed-forward networks": ("feedforward",),
    "The norms": ("norm1", "norm2", "norm_final"),
}


def where(rng: Random) -> Exercise:
    """Asks which part has most parameters, in one of GPT-2's sizes or in a small model with its tables."""
    layers, d = rng.choice([*GPT2.values(), (2, 128), (4, 192), (4, 256), (6, 384), (12, 512)])
    config = replace(PRESETS["gpt2"].model, n_layers=layers, d_model=d, n_heads=d // 64).resolved()
    parts = component_parameters(config)
    count = {name: sum(parts[each] for each in names) for name, names in WHERE.items()}
    right = max(count, key=lambda name: count[name])
    return Exercise(
        f"A model like GPT-2: $V = 50257$, 1,024 positions, $d = {d}$, {layers} blocks with $d_{{ff}} = 4d$,"
        " **tied** tables. Which part has the most parameters?",
        Choice(tuple(WHERE)),
        right,
        (
            *(f"{name}: {number:,}, {number / sum(parts.values()):.2%}." for name, number in count.items()),
            "The feed-forward networks have $8 L d^2$ weights, the token table $V d$: they overtake it once"
            f" $8 L d > V$. Here $8 L d$ = {8 * layers * d:,}: **{right.lower()}**.",
        ),
        tuple(
            Mistake(
                name,
                f"{name}: {number:,} parameters. Another part has {count[right] / number:,.1f} times that.",
            )
            for name, number in count.items()
            if name != right
        ),
        see("parameters", parameters_view="where", parameters_model="gpt2"),
        {"layers": layers, "d": d},
    )


def mini(rng: Random) -> Exercise:
    """Asks for a rung of the lecture's ladder: no biases, no norms, no W_O (2Vd + 11Ld²)."""
    vocab, d, layers = rng.choice([27, 65, 96, 256]), rng.choice([64, 128, 192, 256]), rng.randint(2, 8)
    total = 2 * vocab * d + 11 * layers * d * d
    return Exercise(
        f"A whole model: $V = {vocab}$, $d = {d}$, {layers} blocks with one head, $d_{{ff}} = 4d$; no biases,"
        " no norms, no $W_O$, positions without parameters, tables **not** tied. How many parameters?",
        Numbers(),
        (total,),
        (
            f"Two tables: 2 · {vocab} · {d} = {2 * vocab * d:,}.",
            f"A block: $3d^2 + 8d^2 = 11 d^2$ = {11 * d * d:,}; {layers} of them: {11 * layers * d * d:,}.",
            f"Together **{total:,}**.",
        ),
        mistakes(
            ((total + layers * d * d,), "You counted $W_O$, which this model does not have."),
            ((total - vocab * d,), "You counted one table. Here they are not tied: there are two."),
            ((2 * vocab * d + 11 * d * d,), "That is only one block."),
            ((11 * layers * d * d,), "The two tables are missing."),
        ),
        see("ladder", ladder_view="lecture"),
        {"vocab": vocab, "d": d, "layers": layers},
    )


def flops(rng: Random) -> Exercise:
    """Asks for the FLOPs of a training, 6 N per token (Kaplan et al. 2020): 2 N forwards, 4 N backwards."""
    size, tokens = rng.choice([10, 25, 50, 85, 125, 350, 760, 1300]), rng.choice([1, 2, 3, 5, 8, 20])
    result = 6 * size * 1e6 * tokens * 1e9 / 1e18
    return Exercise(
        f"A model of {size} million parameters is trained on {tokens} billion tokens. By the rule of thumb,"
        " how many floating-point operations does that take? (In units of $10^{18}$.)",
        Numbers(1, 2),
        (result,),
        (
            "Per token, the forward pass costs about $2N$ operations (a multiplication and an addition per"
            " weight) and the backward pass twice that: $6N$ in all.",
            f"6 · {size}·10⁶ · {tokens}·10⁹ = **{result:.2f}** · 10¹⁸.",
        ),
        mistakes(
            ((result / 3,), "That is $2N$ per token, the forward pass only."),
            ((result * 2 / 3,), "That is $4N$ per token, the backward pass only."),
            ((result / 2,), "A weight costs a multiplication *and* an addition: two operations."),
            ((result / 6,), "That is one operation per weight and token. There are six."),
        ),
        see("parameters", parameters_view="flops"),
        {"size": size, "tokens": tokens},
    )


TASKS = (
    ("block", "A block", block),
    ("share", "The feed-forward share", share),
    ("tying", "What tying saves", tying),
    ("gpt2", "GPT-2, exactly", gpt2),
    ("where", "Where most of the parameters are", where),
    ("mini", "The lecture's model", mini),
    ("flops", "FLOPs of a run", flops),
    ("active", "Active parameters of a mixture", experts),
)
