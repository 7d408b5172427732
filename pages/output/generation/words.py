"""Sentences of the views of Generation."""

import math
from collections.abc import Sequence
from dataclasses import replace

from engine.errors import TokenizerError
from engine.measure.generation.kv_cache import CacheSize, CacheStability, CacheStep, Sharing, Speed, Totals
from engine.presets import Preset
from engine.sample.decoding_comparison import Rivals
from engine.sample.rounding import Rounding
from engine.sample.row_products import Arithmetic
from engine.sample.surprise import Surprise, odds
from engine.weights.pretrained.vocabulary import Conversation
from ui.model_bar import Subject
from ui.page_frame import Words
from ui.text.markdown import safe, sentence
from ui.text.numbers import counted, flop, gigabytes, scientific

TOKENS_QUESTION = "How does a model write?"
CACHE_QUESTION = "What does a KV cache save, and why is it exact?"


def write_twice(tokens: int) -> str:
    """Offers what takes a published model half a minute."""
    return f"Write {tokens} tokens twice: up to a minute"


WRITING_TWICE, SEARCHING = "Writing the text twice", "Searching"
COMPARING = "Writing the comparisons"
BEAM_QUESTION = "Is the most likely token the best choice?"

TOKENS = Words(
    see=(
        "The model reads the text so far, draws one token, and reads again. Each token is coloured by the"
        " probability that the model gave it. Their product is the probability of the text, $\\prod_i p_i$;"
        " the mean of $-\\ln p_i$ is its loss in nats per token, and $e$ to the loss is its perplexity."
    ),
    why=(
        "Generation is autoregressive: one choice after another, and none is taken back. One different token"
        " early on leads to a different text, because what was written is read as input. When the context is"
        " full the beginning is dropped, and the model no longer knows how the text began."
    ),
    attempt=(
        "Stop at an unlikely token, choose a different one and continue: this starts a branch with the same"
        " random numbers. Set the temperature to 0 and watch it repeat itself; then try 1.5. Let it stop"
        " after `⏎⏎`: one paragraph, or in a play one speech."
    ),
)

CACHE = Words(
    see=(
        "The same text, written twice. Without a cache every step recomputes the whole text, so the cells"
        " fill a triangle. With a cache, each position's keys and values are computed once and stored; a step"
        " computes one position and compares its query with all cached keys. The other two parts show how"
        " much memory the cache takes, and why cached values never change."
    ),
    why=(
        "In attention a token costs $O(T)$ instead of $O(T^2)$, and a text of $T$ tokens $O(T^2)$ instead of"
        " $O(T^3)$; the matrices act on one position instead of $T$. The cache is a database to which rows"
        " are only added: a query is compared with every key and retrieves a mixture of the values. The price"
        " is memory that grows with every token: for long texts and many users the cache, not the weights,"
        " decides what fits on a GPU."
    ),
    attempt=(
        "Play it. Then write 128 tokens, so that the context fills up: the cache is emptied and half of it"
        " refilled. In “Memory” reduce the key-value heads to one. In “Why it is exact” see the role of the"
        " causal mask."
    ),
)

BEAM = Words(
    see=(
        "Every branch in the beam is extended by every token; of all these candidates, the few with the"
        " highest sum of log-probabilities are kept. One column per step, the best sum on top. The number on"
        " an edge is the token's log-probability; the best four pruned branches are grey and dotted. The"
        " winner is the branch with the best $\\sum \\ln p \\,/\\, length^{\\alpha}$."
    ),
    why=(
        "The most likely token at each step need not lead to the most likely text. Keeping several branches"
        " often finds a more probable one, at a cost that grows with their number. This helps in translation;"
        " open-ended text becomes dull and repetitive."
    ),
    attempt=(
        "Set the width to 1: that is greedy decoding, as long as no branch may end. Then set depth 24 and a"
        " larger width: where does the winner leave the greedy path? Then let branches end at a space and"
        " change the length penalty: at 0 short words win."
    ),
)


def tokens(subject: Subject) -> Words:
    """Returns the words of the view. A model of words forgets no speaker of a play."""
    if not subject.is_pretrained:
        return TOKENS
    return replace(
        TOKENS,
        why=(
            "Generation is autoregressive: one choice after another, and none is taken back. One different"
            " token early on leads to a different text, because what was written is read as input. A"
            " conversation is no different: the same model continues a text in which special tokens mark"
            " whose turn it is."
        ),
        attempt=(
            "Stop at an unlikely token, choose a different one and continue: this starts a branch with the"
            " same random numbers. Ask it something as a conversation, then again with Conversation off: now"
            " it continues your"
            " question. Set the temperature to 0 and watch it repeat itself; then try 1.5."
        ),
    )


def cache(subject: Subject) -> Words:
    """Returns the words of the view. Nobody fills a context of thousands of tokens here."""
    if subject.config.context <= SEEN_FULL:
        return CACHE
    return replace(
        CACHE,
        attempt=(
            "Play it. Write more tokens and watch the gap grow. In “Memory” reduce the key-value heads to"
            " one, then lengthen the text. In “Why it is exact” see the role of the causal mask."
        ),
    )


SEEN_FULL = 256  # tokens of a context that is full before the longest text here ends


def surprised(surprise: Surprise, vocab: int) -> str:
    """Says what the text cost the model that wrote it, as far as it is shown."""
    text = surprise.likelihood
    if text.tokens == 1:
        return (
            "It samples one token, reads it, and predicts the next. The **first token** cost it"
            f" {text.nats:.2f} nats: perplexity **{text.perplexity:.1f}**, out of {vocab:,} possible tokens."
        )
    return (
        f"It samples one token, reads it, and predicts the next. The **first {text.tokens} tokens** average"
        f" {text.nats:.2f} nats each: perplexity **{text.perplexity:.1f}**, out of {vocab:,} possible tokens."
    )


def least_expected(surprise: Surprise, worst: str, least: str) -> str:
    """Says how often it took the likeliest, and where it was surprised most."""
    picked = f" You picked {surprise.picks}." if surprise.picks else ""
    return (
        f"It took its most likely token at {surprise.likeliest:.0%} of the positions; the least expected was"
        f" “{worst}”, token {surprise.worst + 1}, with p = {least}.{picked}"
    )


def cached(totals: Totals, last: CacheStep) -> str:
    """Says what the cache saves, and that nothing changed."""
    steps = len(totals.cached)
    return (
        f"**A KV cache saves work:** the last step computed **{last.computed} position instead of"
        f" {last.computed_without}**, and all steps took **{totals.times:.1f} times** less work. It is exact,"
        f" since the causal mask keeps later tokens from changing earlier keys and values: {totals.same} of"
        f" {counted(steps, 'token')} {'is' if totals.same == 1 else 'are'} the same."
    )


def allowed(with_mask: CacheStability, without_mask: CacheStability) -> str:
    """Says how far one more token moves what is kept, with the mask and without."""
    masked = (
        "Under the causal mask caching is exact: one more token changes earlier keys and values by"
        f" **{with_mask.most:.2g}**, at most rounding."
    )
    if without_mask.layers == 1:
        return (
            f"{masked} Without the mask this model's only block changes them by **{without_mask.first:.2g}**:"
            " its keys and values are computed before tokens attend to each other. In a second block they"
            " would change."
        )
    return (
        f"{masked} Without the mask they change by **{without_mask.most:.2g}**, so no cache is possible; only"
        f" block 0, before any attention, stays the same ({without_mask.first:.2g})."
    )


# Settings ---------------------------------------------------------------------------------------

LENGTH_HINT = "Write enough tokens and the context fills up."
GREEDY = "0 is greedy: always the most likely token."
DRAWS_SEED = "Seed of the draws, for temperatures above 0."
LONGEST = "The maximum length of a branch."
STOP = (
    "A character or a string, e.g. `.` or `⏎⏎` (⏎ is a line break). The text ends with the token that"
    " completes it."
)
TEMPERATURE = "0: greedy."
SEED = "The same seed writes the same text."
TOP_K = "Keep the k most likely of {}. 0: off."
TOP_P = "The smallest set whose probabilities sum to p. 1: off."
MIN_P = "Keep tokens with at least this share of the top probability. 0: all."
REPETITION = "Makes tokens already in the text less likely. 1: off."
CONVERSATION_HINT = (
    "The text becomes your turn in a conversation, in the model's chat template. Otherwise the model"
    " continues it, as if it had written the beginning itself."
)
ARITHMETICS: dict[Arithmetic, str] = {"float32": "32 bits", "bfloat16": "bfloat16", "int8": "8 bits"}
ARITHMETIC_HINT = (
    "Generation is memory-bound: for each token the model reads all its weights once, so weights with fewer"
    " bits are faster. Quantisation rounds them; the effect is measured on your text."
)
ROUNDING = "Rounding the weights"
READING_BOTH = "Reading the text at both precisions"


def turn(turn: Conversation, text: str) -> str:
    """Says what a chat template puts around a person's text, and where the answer ends."""
    return (
        f"The model's chat template adds **{counted(turn.around, 'token')}** around your"
        f" {turn.text_tokens:,}: the"
        f" roles, the system prompt, and {counted(turn.special, 'special token')}, which typed text never"
        " produces. The"
        f" answer ends where the model writes {text}."
    )


def no_turn(error: TokenizerError) -> str:
    """Says why the text is no turn of a conversation."""
    return f"{sentence(error)} So the model continues the text as it is."


def other_length(wanted: int, most: int, tree: int) -> str:
    """Says why another number of tokens is written than was asked for."""
    why = (
        f"a branch here has at most {most:,}, a tree {tree:,}."
        if wanted > most
        else "so nothing is written. Ask for at least 1."
    )
    return f":material/info: {wanted:,} tokens were asked for{';' if wanted > most else ','} {why}"


def rounded(rounding: Rounding) -> str:
    """
    >>> rounded(Rounding("int8", 5, 1.62, 0.2, 3.1, 2.5, 2.512, 0.8))[16:89]
    'With weights in 8 bits the logits of your text are off by at most **1.62*'
    """
    return (
        f":material/info: With weights in {ARITHMETICS[rounding.arithmetic]} the logits of your text are off"
        f" by at most **{rounding.largest:.2f}** (their standard deviation is {rounding.spread:.1f}); its"
        " loss"
        f" is **{rounding.loss:.3f}** nats per token instead of {rounding.exact:.3f}, and the most likely"
        " token"
        f" stays the same at {rounding.alike:.0%} of the positions."
    )


# Token by token ---------------------------------------------------------------------------------

DIVERGED = (
    "This model has diverged: its logits are not finite, so there are no probabilities, and what it writes is"
    " arbitrary."
)


def chance(log_p: float) -> str:
    """Returns a probability that may be tiny: in percent, and where that would be 0, as one in so many.

    >>> chance(math.log(0.0147)), chance(math.log(1 / 320_000_000)), chance(-900.0)
    ('1.47%', '1 in 3.2 × 10⁸', 'less than 1 in 10³⁰⁰')
    """
    p, draws = odds(log_p)
    if math.isinf(draws):
        return "less than 1 in 10³⁰⁰"
    if p > 0.0005:
        return f"{p:.2%}"
    return f"1 in {draws:,.0f}" if p > 1e-7 else f"1 in {scientific(draws)}"


def surprise_alt(surprise: Surprise) -> str:
    return (
        f"Surprisal of each of the {len(surprise.depth)} tokens written so far, in nats, and their mean so"
        f" far, which ends at {surprise.likelihood.nats:.2f}."
    )


# The KV cache, step by step ---------------------------------------------------------------------

LETTERS = "n_layers · 2 (keys and values) · kv_heads · d_head · T · bytes per number"
TIMING = "Measuring the speed of both, for a second …"


def refilled(step: int, moved: int, context: int) -> str:
    """Says why a full context costs the whole cache."""
    return (
        f":material/info: Before step {step} the context of {context} tokens was full. The engine continues"
        f" from the last half of them, and positions restart: the token at position {moved} is now at 0, so"
        " its cached key and value are no longer valid and are recomputed. With absolute positions there is"
        " no alternative. Systems with relative positions may slide the window and drop only the oldest; the"
        " cached values then still carry information from dropped tokens."
    )


def flops_alt(pairs: Sequence[CacheStep]) -> str:
    last = pairs[-1]
    return (
        f"FLOP for each of {len(pairs)} tokens: the last one takes {flop(last.flops)} with the cache and"
        f" {flop(last.flops_without)} without."
    )


def in_total(totals: Totals, last: CacheStep) -> str:
    """Says what all steps and the last one cost, both ways."""
    both = f"{flop(int(totals.cached_sum[-1]))} with the cache, {flop(int(totals.uncached_sum[-1]))} without"
    text = f"**In total {both}: {totals.times:.1f} times as much.**"
    if last.refilled or last.computed != 1:
        return text
    return (
        f"{text} The first step costs the same, since the prompt has to be read either way. The last one"
        f" costs {flop(last.flops)} with the cache and {flop(last.flops_without)} without,"
        f" {totals.times_last:.0f} times as much: one position is computed instead of"
        f" {last.computed_without}."
    )


def identical(totals: Totals, filled: int, whole: int, formula: int, prompt: int) -> str:
    """Says whether both ways write the same, and whether the cache is as large as the formula says."""
    steps = len(totals.cached)
    same = totals.same == steps
    agree = "✓ **Bytes agree.**" if filled == formula else "✗ **Bytes differ.**"
    close = "" if same else " Two tokens were so close that rounding decided."
    return (
        f"{'✓' if same else '✗'} **{totals.same} of {steps} tokens are identical.** The logits they were"
        f" drawn from differ by at most {scientific(totals.difference)}: the same sums, added up in a"
        f" different order.{close}\n\n{agree} After the prompt of {counted(prompt, 'token')} the formula"
        " gives"
        f" {counted(formula, 'byte')}, and the filled part of the cache's tensor has {filled:,}. The"
        " tensor is larger,"
        f" {whole:,} bytes in all, and doubles when it is full."
    )


def rates(speed: Speed) -> tuple[tuple[str, str], ...]:
    """Returns the names and values of the speeds of both ways, and their ratio."""
    return (
        ("With cache, tokens/s", rate(speed.cached)),
        ("Without, tokens/s", rate(speed.uncached)),
        ("Speed-up", f"{speed.ratio:.1f}"),
    )


def rate(value: float) -> str:
    """
    >>> rate(4.26), rate(1234.5)
    ('4.3', '1,234')
    """
    return f"{value:.1f}" if value < 20 else f"{value:,.0f}"


def measured(speed: Speed, large: bool) -> str:
    """Says how the speeds were measured, and why they are not in proportion to the work."""
    blocks = "one block" if speed.blocks == 1 else f"{speed.blocks} blocks"
    less = (
        "generating one token at a time reads all weights from memory each time; many positions at once share"
        " one read."
        if large
        else (
            "a small model spends much of its time on overhead, and processing many positions at once uses"
            " the processor better than one."
        )
    )
    return (
        f"Measured on this server: {blocks} of {speed.tokens} tokens each way, alternating, after a one-token"
        " prompt; medians. The server may be shared and busy: trust the ratio more than the speeds. By FLOPs"
        f" the speed-up would be {speed.work:.1f}; "
        + (less if speed.work > speed.ratio else "here the cache gains even more than that.")
    )


# Its bytes --------------------------------------------------------------------------------------

CANNOT_SHARE = "Only the “attention” mixer can share key-value heads; this one has one per head."
PUBLISHED = "Published models, at the same length"


def bytes_taken(sharing: Sharing, heads: int, tokens: int) -> str:
    """Says what a cache takes with so many key-value heads."""
    saved = sharing.saved(heads)
    less = f", {saved:g} times less than with multi-head attention.**" if saved > 1 else ", the maximum.**"
    return (
        f"**With {heads} of {sharing.heads} key-value heads the cache of {tokens:,} tokens takes"
        f" {gigabytes(sharing.sizes[heads].formula)}{less} All query heads stay; each group of them shares"
        " one set of keys and values (Shazeer 2019, MQA; Ainslie et al. 2023, GQA)."
    )


def bytes_alt(ways: Sequence[str], sizes: Sequence[int]) -> str:
    each = ", ".join(f"{way} {gigabytes(size)}" for way, size in zip(ways, sizes, strict=True))
    return f"Bytes of the cache: {each}."


def bytes_by_hand(size: CacheSize, context: int) -> str:
    """Returns the formula with its numbers, and the tensor that holds as much."""
    beyond = (
        f" This model's own context is {context:,}; beyond it the numbers hold for a model trained for that"
        " length."
        if size.tokens > context
        else ""
    )
    shape = " × ".join(f"{n:,}" for n in size.shape)
    return (
        f"n_layers · 2 · kv_heads · d_head · T · bytes per number = {size.numbers} = **{size.formula:,} bytes"
        f" = {gigabytes(size.formula)}**\n\n{'✓' if size.tensor == size.formula else '✗'} The tensor that the"
        f" engine's `KVCache` makes for it has the shape {shape} (layer, key or value, text, kv_head,"
        f" position, d_head) in {size.dtype}: {size.tensor:,} bytes.{beyond}"
    )


def published_alt(
    titles: Sequence[str], ways: Sequence[str], sizes: Sequence[float], tokens: int, dtype: str
) -> str:
    each = ", ".join(f"{t} {w} {gigabytes(s)}" for t, w, s in zip(titles, ways, sizes, strict=True))
    return f"Cache of published models at {tokens:,} tokens in {dtype}: {each}."


def published(models: Sequence[tuple[str, Preset]], tokens: int) -> str:
    """Says what is drawn of published models, and where their sizes come from."""
    notes = " · ".join(_note(title, preset, tokens) for title, preset in models)
    return (
        "Full colour: as published. Pale: the same model with one key-value head per query head (MHA), with 8"
        f" shared ones (GQA), or with a single one (MQA). {notes}. Mistral attends to a window of 4,096, so"
        " its own cache need not grow beyond that."
    )


def _note(title: str, preset: Preset, tokens: int) -> str:
    c = preset.model.resolved()
    over = f"; beyond its context of {c.context:,}" if tokens > c.context else f"; context {c.context:,}"
    return (
        f"{title}: {counted(c.n_layers, 'block')}, {c.n_kv_heads} of"
        f" {counted(c.n_heads, 'key-value head')} of {c.d_head}{over}"
        f" ({safe(preset.source or '')})"
    )


# Why it may be kept -----------------------------------------------------------------------------

ONE_TOKEN = "This model sees one token at a time: there is no earlier key to compare."


def changes_alt(with_mask: CacheStability, without_mask: CacheStability) -> str:
    return (
        f"Largest change of an earlier key or value by block: at most {with_mask.most:.2g} with the causal"
        f" mask, up to {without_mask.most:.2g} without."
    )


def largest_change(stability: CacheStability, tokens: int) -> str:
    return (
        f"largest change of any key or value of the first {tokens} tokens when one more is read; the largest"
        f" magnitude is {stability.largest:.3g}"
    )


def read_twice(newest: str, layers: int, *, rounded: bool) -> str:
    """Says how earlier keys and values were compared."""
    above = "This model has no second block whose keys and values would change. " if layers == 1 else ""
    rest = (
        "Differences around a ten-millionth are rounding: the sums are computed in a different order."
        if rounded
        else ""
    )
    return (
        f"The text is read twice: without its newest token, “{newest}”, and with it. In block 0 nothing has"
        " been mixed yet: its keys and values come from each token's own embedding, with or without the mask."
        f" {above}{rest}"
    )


# Beam search ------------------------------------------------------------------------------------

WIDTH_HINT = "Branches kept at each step. 1 is greedy decoding, as long as no branch may end."
DEPTH_HINT = "Maximum number of tokens."
PENALTY_HINT = (
    "Finished branches are compared by sum / length^penalty: 0 favours short ones, values above 1 long ones."
    " It matters only where branches can end early. The search continues to the full depth, as in"
    ' Hugging Face with early_stopping="never"; its default may stop early.'
)
STOP_HINT = "A token that ends with this character finishes its branch."
RIVAL_SEED = "Seed of the sample that the winner is compared with."


def dropped(tokens: int, context: int) -> str:
    return (
        f":material/info: Prompt and depth together exceed the context of {context}: the first {tokens}"
        " tokens of the text are dropped."
    )


def tree_alt(steps: int, width: int, winner: str) -> str:
    return (
        f"A tree of {counted(steps, 'step')}: {width} branches are kept at each, the pruned ones are grey;"
        " the winner"
        f" writes {winner}."
    )


def sample(rivals: Rivals, text: str) -> str:
    """Compares a sample with the winner."""
    if rivals.winner.total <= rivals.sample.total:
        return "This sample is more probable than the winner: beam search is not exact."
    return (
        f"The sample, “{text}”, is {times(rivals.winner.times(rivals.sample))} times less probable than the"
        " winner. Human text is not the most likely either: with good models, a sample often reads better"
        " than the winner (Holtzman et al. 2020). Judge for yourself."
    )


def times(value: float) -> str:
    """Returns a factor, as exact as anybody reads it.

    >>> times(1.53), times(124.7), times(5.7e18)
    ('1.5', '125', '5.7 × 10¹⁸')
    """
    if value < 1e6:
        return f"{value:,.0f}" if value >= 100 else f"{value:,.1f}"
    return scientific(value)


def verdict(rivals: Rivals, width: int, may_end: bool) -> str:
    """Says what the search found beside greedy decoding. `may_end`: a branch that ends frees its place, so
    even width 1 keeps other branches than the greedy one.
    """
    ours, greedy = len(rivals.winner.tokens), len(rivals.greedy.tokens)
    more = times(rivals.winner.times(rivals.greedy))
    if rivals.verdict == "same":
        why = (
            ", as it must: width 1 is greedy."
            if width == 1 and not may_end
            else ": none of the branches it kept turned out more probable."
        )
        return f"**Width {width} finds the same text as greedy decoding**{why}"
    if rivals.verdict == "shorter":
        return (
            f"**Not always: the beam's text is {more} times as probable as the greedy one, and shorter**:"
            f" {counted(ours, 'token')} against {greedy}. Each further token makes a text less probable."
        )
    if rivals.verdict == "likelier":
        return (
            f"**Not always: the beam's text is {more} times as probable as the greedy one.** At some step"
            " the most likely token led to a less likely text."
        )
    lengths = f"it is {counted(ours, 'token')} long, the greedy one {greedy}"
    return f"**The beam's text has the better score, not the higher probability**: {lengths}."
