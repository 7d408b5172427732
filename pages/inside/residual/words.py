"""Sentences of the views of the residual stream."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.config import ModelConfig, ResolvedConfig
from engine.measure.residual.attribution import Attribution, Pushes, Versus
from engine.measure.residual.lens import (
    Cell,
    DepthTable,
    Lens,
    settling,
)
from engine.measure.residual.norm_example import Habit, NormExample
from engine.measure.residual.stream import Summary
from engine.parts.cards.norms import NORM_CARDS, norm_title
from engine.parts.registry import Parts
from ui.figures.labels import plain
from ui.page_frame import Words
from ui.text.markdown import safe
from ui.text.numbers import counted, minus, scientific

QUESTIONS = {
    "lens": "What would it predict if it stopped here?",
    "push": "Which components drove this prediction?",
    "norms": "Which sublayers make the stream grow?",
    "highway": "Why residual connections?",
}

LENS = Words(
    see=(
        "The *logit lens* (nostalgebraist 2020): the stream after each block, decoded by the final norm and"
        " the unembedding as if that block were the last. The bottom row is the embedding alone. With tied"
        " embeddings a token's embedding is most similar to itself, so that row tends to repeat the token"
        " just read. KL is $\\sum_v p_{final}(v)\\,\\ln\\frac{p_{final}(v)}{p_{here}(v)}$, in nats."
    ),
    why=(
        "All blocks read from and write to one residual stream, so an intermediate prediction can be decoded."
        " Easy tokens tend to be settled early, hard ones late."
    ),
    attempt=(
        "Choose an easy token, then a hard one: how many blocks does each need? Under *Measure it*, colour by"
        " KL, then scrub through the training of a run of your own."
    ),
)

PUSH = Words(
    see=(
        "*Direct logit attribution*: the logit is $u \\cdot norm(x)$, and $x$ is a sum of writes. With the"
        " norm's divisor frozen, the logit is a sum of contributions, one per component: $z_h W_{O,h} \\cdot"
        " d$ for a head, $w \\cdot d$ for the others, with $d$ the target's unembedding, the norm folded in."
    ),
    why=(
        "It shows which components raise or lower a prediction, head by head. Only direct effects count: a"
        " contribution through another head shows up under that head."
    ),
    attempt=(
        "Compare with the mean of all tokens: whatever raises every logit equally cancels. Then choose a"
        " token that the model finds unlikely."
    ),
)

NORMS = Words(
    see=(
        "The Euclidean norm of the stream after each write, the norm of each write, the cosine with what it"
        " is added to, and each component's share of the final stream."
    ),
    why=(
        "Before a sublayer reads the stream, the norm rescales it to a standard size, so what counts is the"
        " size of a write *relative* to the stream. Once the stream's norm has grown, a late block must write"
        " more to change its direction."
    ),
    attempt=(
        "Compare an untrained model with a trained one: at the start every block writes about as much as any"
        " other, since all output matrices are initialised at the same scale, $1/\\sqrt{2L}$. Training makes"
        " some components write more than others. Does a model train better with the norm before each"
        " sublayer or after it? [Race it](/ladder?ladder_view=race&ladder_question=norms-12)."
    ),
)

HIGHWAY = Words(
    see=(
        "Two models with the same initial weights, trained on the same text, one seed. One *adds* each"
        " sublayer's output to its input, $x + f(x)$; the other replaces the input, $f(x)$. *Similarity* is"
        " the mean cosine between two tokens' vectors, 1 if all are the same."
    ),
    why=(
        "A residual connection gives the signal and its gradient an identity path: the slope of $x + f(x)$ is"
        " $1 + f'$ (He et al. 2015). Without it, attention keeps averaging the tokens until all vectors are"
        " the same (*rank collapse*; Dong et al. 2021). The LSTM's cell state (1997) does the same over time:"
        " it adds to what it keeps. Each block only has to compute a *change* to the stream."
    ),
    attempt=(
        "Choose 1 block, then 2: two are already enough to blur the tokens. Then remove the norms and look at"
        " the gradient. *Measure it* compares pre-norm and post-norm with Xiong et al. (2020)."
    ),
    texts=(
        "A lecture pictures norms as toll booths: with post-norm on the highway itself, with pre-norm on the"
        " way into each sublayer. It says that post-norm's gradient shrinks at each booth until, a hundred"
        " blocks down, it has vanished. At initialisation it has not: *Measure it* shows its ratio over 48"
        " blocks, which is of order 1. What post-norm lacks is a stable start to training: [race"
        " it](/ladder?ladder_view=race&ladder_question=norms-12). Another lecture doubts that residual"
        " connections help through the gradient, and guesses that they improve the *conditioning* of the"
        " problem. The doubt is justified where blocks have norms: the gradient then survives without"
        " residual connections, but the tokens' vectors become alike."
    ),
)

# The lens -----------------------------------------------------------------------------------------


LENS_STRIP, LENS_MEASURED = "After which token?", "Applying the lens at every depth"
COLOUR, SHADES = "Colour", ("Probability of the guess", "KL to the output")
SCALES = dict(zip(SHADES, ("probability", "KL (nats)"), strict=True))
MOVES = ("Previous token", "Next token", "One block up", "One block down")
TABLE_ALT = (
    "Logit lens: the likeliest next token at each of {depths} depths for each of {tokens} tokens, by {shade}."
)


def depth_names(config: ModelConfig) -> list[str]:
    """Returns the names of the stream before the first block and after each; the last is the output."""
    names = ["embedding", *(f"after block {i}" for i in range(config.n_layers))]
    return [*names[:-1], f"{names[-1]} = output"]


def depths_alt(config: ModelConfig, position: int) -> str:
    return f"The likeliest tokens {position_word(config)} token {position}, at each depth."


def caveats(config: ResolvedConfig, parts: Parts) -> list[str]:
    """Says where the lens reads vectors that were not meant for it."""
    wiring, lines = parts.wiring(config), []
    if wiring.replaces:
        lines.append(
            "This model has no residual stream: each sublayer *replaces* what it reads, so the vectors"
            " between blocks were never meant for the unembedding. The lens can still be applied there, but"
            " expect it to make little sense before the last block."
        )
    if wiring.ends_normed and parts.norm(config).card.present:
        lines.append(
            "A post-norm model has no final norm: the lens reads the stream after each block's second norm,"
            " and the embedding as it is."
        )
    return lines


def reads_table(ends_short: bool) -> str:
    """Says how the table is read; its scale may end below the values of the lowest row."""
    beyond = " The scale ends at the largest KL above that row." if ends_short else ""
    return (
        f"Bottom row: the embedding alone.{beyond} Top row: the model's output. Above the red line the guess"
        " is already the final one. Click a cell."
    )


def lens_hints(
    lens: Lens,
    config: ModelConfig,
    names: Sequence[str],
    guesses: Sequence[Sequence[str]],
    labels: Sequence[str],
) -> list[list[str]]:
    """Returns the hover text of each cell, (depth, query)."""
    tokens, where = [plain(label) for label in labels], position_word(config)
    return [
        [
            f"{name}, {where} “{token}”<br>guess “{plain(word)}”, probability {p:.3f}<br>KL to the output"
            f" {kl:.3f} nats"
            for token, word, p, kl in zip(tokens, row, probabilities, kls, strict=True)
        ]
        for name, row, probabilities, kls in zip(names, guesses, lens.probability, lens.kl, strict=True)
    ]


def cell_alt(name: str, position: int) -> str:
    where = name if name.startswith("after") else f"at {name}"
    return f"The ten likeliest next tokens {where}, at position {position}."


def cell_title(name: str, config: ModelConfig, position: int, label: str) -> str:
    return f"**{safe(name)}**, {position_word(config)} token {position}, “{safe(label)}”"


def cell_sentence(cell: Cell, guess: str, final: str, settled: str, following: str | None) -> str:
    """Says what the model would guess at one depth; `settled` is the depth from which on the guess is the
    `final` one.
    """
    follows = "" if following is None else f" In the text, “{safe(following)}” follows."
    return (
        f"Stopping here, the model would guess “{safe(guess)}” with probability {cell.here[0]:.3f}; the KL to"
        f" its final distribution is **{cell.kl:.3f} nats**. The final guess, “{safe(final)}”, takes the lead"
        f" for good **{safe(read_at(settled))}**.{follows}"
    )


def depth_row(name: str, read: str) -> str:
    """Returns the name of a depth: the lowest says which token's embedding it is.

    >>> depth_row("embedding", "e"), depth_row("after block 0", "e")
    ('embedding of “e”', 'after block 0')
    """
    return f"embedding of “{read}”" if name == "embedding" else name


def lens_answer(lens: DepthTable, read: str, word: str, before: str, names: list[str], causal: bool) -> str:
    """Says when the final guess came up. `read` is the end of the text so far, `word` the final guess,
    `before` the guess that it took the place of, `names` what the depths are called.
    """
    where = f"After “{safe(read)}”" if causal else f"At “{safe(read)}”"
    if lens.settled == 0:
        return (
            f"{where} the embedding alone already predicts “{safe(word)}”, which stays the top prediction to"
            f" the end (final probability **{lens.final:.0%}**)."
        )
    since, earlier = (names[depth].removesuffix(" = output") for depth in (lens.settled, lens.settled - 1))
    stopped = f"Stopped {earlier}," if lens.settled > 1 else "From the embedding alone,"
    return (
        f"{where} “{safe(word)}” becomes the top prediction only **{since}**, and ends with probability"
        f" **{lens.final:.0%}**. {stopped} the model would predict “{safe(before)}” and give “{safe(word)}”"
        f" {lens.earlier:.0%}."
    )


# Who pushed ---------------------------------------------------------------------------------------


def push_answer(pushes: Pushes, logit: float, target: str, read: str, causal: bool) -> str:
    """Says which part raises a logit most (or its lead over what it is compared with), and which
    lowers it.
    """
    where = f"after “{safe(read)}”" if causal else f"at “{safe(read)}”"
    most, least = pushes.most, pushes.least
    most_by, least_by = (minus(f"{push.value:+.2f}") for push in (most, least))
    first = (
        f"For “{safe(target)}” {where}, **{most.label}**{in_full(most.label)} contributes most: **{most_by}**"
        f" to a logit of {minus(f'{logit:.2f}')}."
    )
    if least.value < 0:
        return (
            f"{first} The largest negative contribution is"
            f" {least.label}{in_full(least.label).removesuffix(',')}: {least_by}."
        )
    return f"{first} No component lowers it."


_WRITERS = {
    "ffn": "the feed-forward network of block {}",
    "attn": "the attention of block {}",
    "attn bias": "the bias of block {}'s attention",
    "embed": "the token embedding",
    "norm bias": "the bias of the final norm",
}


def in_full(label: str) -> str:
    """Spells out a writer's short name in a figure; empty where it needs none.

    >>> in_full("ffn 3"), in_full("embed"), in_full("head 3.2"), in_full("position")
    (', the feed-forward network of block 3,', ', the token embedding,', '', '')
    """
    name, _, block = label.rpartition(" ")
    words = _WRITERS.get(label) or _WRITERS.get(name)
    return f", {words.format(block)}," if words else ""


def compared(versus: Versus, other: str) -> str:
    """Says what a logit is compared with, behind its name."""
    if versus is None:
        return ""
    return " − mean" if versus == "mean" else f" − “{other}”"


PUSH_BARS = {"largest": "largest", "layers": "by block"}
BARS, CONTRIBUTION = "Bars", "contribution to the logit (nats)"
HEADS_ALT = (
    "Heatmap of the contribution of each head (columns) in each block (rows) to the logit; blue pushes down,"
    " orange up."
)
BARS_HINT = "The largest of {components} components, or the heads of each block summed."
BARS_ALT = (
    "Bars: what each component adds to the logit of {name} at position {position}, bottom of the model first."
)


def predicts_at(config: ModelConfig) -> str:
    """Returns the label of the strip in which a position is chosen."""
    return f"Position whose {'next ' if config.causal else ''}token is predicted"


def sum_metrics(attribution: Attribution, difference: float, name: str, against: str) -> dict[str, str]:
    """Returns the sum of all contributions beside the logit, by label."""
    return {
        "Sum of the contributions": f"{attribution.total:+.4f}",
        f"Logit of “{safe(name)}”{safe(against)}": f"{attribution.logit:+.4f}",
        "Difference": scientific(difference),
    }


# Token and comparison of Attribution; the names of the choices stand in links.
TOP, ITSELF, MEAN = "top guess", "nothing", "mean of all"
TARGET, VERSUS = "Target token", "Compared with"
TARGET_HINT = f"The token whose logit is decomposed; “{TOP}” is the likeliest one at this position."
VERSUS_HINT = (
    "A constant added to all logits changes nothing, so the difference from another token says more than a"
    " logit on its own."
)
TYPED_HINT = "You can type any other token; a leading space counts."

# Norms --------------------------------------------------------------------------------------------


def norms_answer(summary: Summary, replaces: bool) -> str:
    """Says how long the stream gets, and by whom."""
    if replaces:
        return (
            f"Nothing is added here: the norm between the sublayers goes from **{summary.first:.2f}** to"
            f" **{summary.last:.2f}**. The largest output, of norm **{summary.length:.2f}**, comes from"
            f" **{summary.longest}**{in_full(summary.longest).removesuffix(',')}."
        )
    goes = "grows" if summary.last > summary.first else "changes"
    return (
        f"The stream's mean norm {goes} from **{summary.first:.2f}** at the embedding to"
        f" **{summary.last:.2f}** at the end. The largest write, of norm **{summary.length:.2f}**, comes"
        f" from **{summary.longest}**{in_full(summary.longest).removesuffix(',')}."
    )


def shares_sentence(summary: Summary) -> str:
    """Says which parts the final stream is made of."""
    text = ", ".join(f"{label} {share:+.0%}" for label, share in summary.largest)
    if not summary.negative:
        return f"Largest shares of the final stream: {text}. No component's mean share is negative."
    return f"Largest shares of the final stream: {text}. Negative on average: {few(summary.negative)}."


def few(names: tuple[str, ...] | list[str], most: int = 6) -> str:
    """Returns a list that stays one line.

    >>> few(["a", "b"]), few(list("abcd"), 2)
    ('a, b', 'a, b and 2 others')
    """
    more = len(names) - most
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:most])} and {counted(more, 'other')}"


STRIP, CHOSEN = "Token (dotted line)", "chosen token"
LINE_ALT = (
    "Line: norm of the stream after each write, mean over tokens, and for the chosen token. Bars: the norm of"
    " each write, mean over tokens."
)
NORM_OF_WRITE, COSINE, SHARE = "norm of the write", "cosine with the stream", "share of the final stream"
WRITES_ALT = "Bars: norm of each write, mean over tokens."
SHARES_ALT = "Bars: share of the final stream by writer, mean over tokens."
MARKS_ALT = "Diamonds: the chosen token."
MAP_ALT = (
    "Heatmap: Euclidean norm of the residual stream after each write (rows, the embedding at the bottom) for"
    " each token (columns)."
)
LEAVE_OUT_HINT = "Off: means are taken over all tokens, and one colour scale covers them all."
NOTHING_ADDED = (
    "Nothing is added to the embedding here: there is no position vector, no attention and no feed-forward"
    " network."
)
PYTHAGORAS = (
    "Vectors add; their norms do not: perpendicular writes add by Pythagoras, and opposite ones shrink the"
    " sum."
)
STREAM_OF = "stream of token {position}, “{label}”"
SHARES_SUM = (
    "Share of the final stream $x$ by writer: $w \\cdot x / x \\cdot x$, so they sum to 1 (here"
    " {summary.total:.6f}). A write with a negative share points away from the final stream."
)


def leave_out(labels: Sequence[str]) -> str:
    """Names the tokens that are out of all proportion."""
    names = ", ".join(f"“{safe(label)}”" for label in labels[:3])
    return f"Leave out {names}{' …' if len(labels) > 3 else ''}"


def massive(label: str, times: float, writer: str) -> str:
    return (
        f":material/info: The stream at “{safe(label)}” reaches {times:,.0f} times the median token's norm,"
        f" and most of it is written by {writer}: a massive activation (Sun et al. 2024). Idle heads attend"
        " there (an attention sink, Xiao et al. 2023)."
    )


def cosine_words(replaces: bool) -> tuple[str, str]:
    """Returns the alt text and the caption of the cosines."""
    target = "what it replaces" if replaces else "the stream it is added to"
    return (
        f"Bars: cosine between each write and {target}, mean over tokens.",
        f"Cosine between a write and {target}: +1 lengthens it, −1 shortens it, 0 adds a new direction.",
    )


def worked_for(position: int, label: str, blocks: int | None) -> str:
    """Says whose sum is written out, and of how many blocks where not of all."""
    first = f" (the first {blocks} blocks)" if blocks else ""
    return (
        f"**Worked out** for token {position}, “{safe(label)}”{first}: the norm of each write, and of the"
        " sum."
    )


NORMS_DIFFER = (
    "The same four numbers through each norm, without gain and bias. LayerNorm subtracts the mean and divides"
    " by the standard deviation; RMSNorm divides by the root mean square and subtracts nothing. Add 10 to"
    " every number: LayerNorm's output does not change, RMSNorm's does. RMSNorm skips the mean and the bias,"
    " and models train about as well with it."
) + "".join(
    f" {card.title} ({card.source}): {card.sentence}"
    for card in NORM_CARDS.values()
    if card.present and not card.divides
)
WHERE_NORMS_STAND = """
**Where the norm goes**

| | pre-norm | post-norm |
|---|---|---|
| formula | $x \\leftarrow x + f(\\text{norm}(x))$ | $x \\leftarrow \\text{norm}(x + f(x))$ |
| the stream | grows; nothing rescales it | is rescaled after every addition |
| the gradient | has a norm-free path | passes through a norm at every sublayer |
| training | deep models can train without a warm-up | deep models need a warm-up (Xiong et al. 2020) |
| at the end | one more norm before the output | no further norm |
| used in | GPT-2 (2019) | the original Transformer (2017), BERT |
"""
_WIRINGS = {"pre": "pre-norm", "post": "post-norm", "parallel": "pre-norm, sublayers in parallel"}


def norms_worked(example: NormExample) -> list[tuple[str, str]]:
    """Returns (title, LaTeX) of every norm, on the example's numbers."""
    measured = {"mean": example.mean, "variance": example.variance, "rms": example.rms}
    x = f"x &= {_row(example.x)}"
    return [
        (
            card.title,
            _aligned(f"{x}\\\\ {card.statistics.format(**measured)}\\\\ {card.bare} &= {_row(output)}"),
        )
        for card, output in ((NORM_CARDS[name], output) for name, output in example.outputs.items())
    ]


def _aligned(lines: str) -> str:
    return f"\\begin{{aligned}}{lines}\\end{{aligned}}"


def _row(values: np.ndarray) -> str:
    return "[" + ",\\ ".join(f"{value:.3g}" for value in values.tolist()) + "]"


def who_has_which(habits: tuple[Habit, ...]) -> str:
    """Returns a table of the published models of the app by their norms."""
    rows = [
        f"| {_WIRINGS[habit.wiring]} | {norm_title(habit.norm, 'no norm')} | {', '.join(habit.models)} |"
        for habit in habits
    ]
    return "\n".join(
        [
            "**Which model uses which**, among this app's published models",
            "",
            "| norm placement | norm | models |",
            "|---|---|---|",
            *rows,
        ]
    )


# With and without residual connections ------------------------------------------------------------


def not_a_sum(config: ResolvedConfig, parts: Parts) -> str:
    """Returns why the final stream, or a logit, cannot be taken apart into writes."""
    if parts.wiring(config).replaces:
        return (
            "This model has no residual stream: each sublayer replaces what it read, so there is no sum to"
            " take apart."
        )
    if parts.sums(config):
        card = parts.norm(config).card
        return (
            f"The final norm of this model is {card.title} ({card.source}): {card.nonlinearity} scales each"
            " number by its own factor, so a logit is not the sum of the writes to the stream."
        )
    return (
        "This model is post-norm: after every sum a norm rescales the whole stream, so the final stream is"
        " not the sum of what was written. Every write passes through all the norms above it, and freezing"
        " one divisor does not undo that, so the decomposition is not offered here."
    )


def frozen_words(config: ResolvedConfig, parts: Parts, scale: float) -> str:
    """Says how the final norm was treated."""
    norm = parts.norm(config).card
    if not norm.present:
        return "There is no final norm, so nothing is frozen."
    words = norm.linear_words(config)
    rest = f"everything else {norm.title} does (each vector is {words}) is linear and is kept"
    what = rest if words else f"{norm.title} does nothing else"
    return f"The final norm's divisor is frozen at {scale:.3f}, its value on this text; {what}."


def position_word(config: ModelConfig) -> str:
    """Returns the word for where a guess stands: a causal model guesses what comes after a token; an encoder,
    what stands there.
    """
    return "after" if config.causal else "at"


def read_at(name: str) -> str:
    """Returns where the lens reads, from the name of a depth.

    >>> read_at("embedding"), read_at("after block 1 = output")
    ('at the embedding', 'after block 1')
    """
    return "at the embedding" if name == "embedding" else name.removesuffix(" = output")


def settled_at(lens: Lens, names: Sequence[str]) -> str:
    """Which layer settles the tokens, counted."""
    settled = settling(lens)
    text = ", ".join(f"{names[d]}: {n}" for d, n in enumerate(settled.counts) if n)
    step = (
        ""
        if settled.step is None
        else f"The mean KL falls most in {read_at(names[settled.step]).removeprefix('after ')}:"
        f" {settled.kl[settled.step - 1]:.2f} → {settled.kl[settled.step]:.2f} nats."
    )
    return (
        f"**Half of the tokens are settled {read_at(names[settled.half])}** ({settled.by[settled.half]} of"
        f" {settled.tokens}). Depth at which the top guess settles: {text}. At the embedding, the mean KL to"
        f" the output is {settled.kl[0]:.2f} nats. {step}"
    )
