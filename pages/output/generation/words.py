"""Sentences of the views of Generation."""

from dataclasses import replace

from engine.measure.generation.kv_cache import CacheStability, CacheStep, Totals
from engine.sample.surprise import Surprise
from ui.model_bar import Subject
from ui.page_frame import Words

TOKENS_QUESTION = "How does a model write a text?"
CACHE_QUESTION = "What is a KV cache for, and why is it allowed?"
WRITING_TWICE, SEARCHING = "Writing the text twice", "Searching"
COMPARING = "Writing what it is compared with"
BEAM_QUESTION = "Is the likeliest next token the best choice?"

TOKENS = Words(
    see=(
        "The model reads the text so far, draws one token, and reads again. Each token is coloured by the"
        " probability that the model gave it. Multiplied, they are the probability of the text, $\\prod_i"
        " p_i$; the mean of $-\\ln p_i$ is its loss in nats a token, $e$ to that its perplexity."
    ),
    why=(
        "There is no plan, only one choice after another, and none is taken back. One other token early"
        " on leads to another text: what was written becomes what is read. When the context is full the"
        " beginning is dropped, and the model no longer knows how it began."
    ),
    attempt=(
        "Stop on an unlikely token, press another one and play on: a branch begins, with the same random"
        " numbers. Set the temperature to 0 and see it repeat itself, then 1.5. Let it stop after `⏎⏎`:"
        " one paragraph, in a play one speech."
    ),
)

CACHE = Words(
    see=(
        "The same text, written twice. Without a cache every step reads the whole text again, so the"
        " cells fill a triangle. With it, each position's keys and values are computed once and kept; a"
        " step computes one position and compares its query with all kept keys. The other two parts show"
        " what the cache takes, and that what it keeps would never have changed."
    ),
    why=(
        "A token costs $O(T)$ instead of $O(T^2)$ in attention, and one position's matrices instead of"
        " $T$ positions'. The price is memory that grows with every token: for long texts and many"
        " readers the cache, not the weights, decides what fits on a card."
    ),
    attempt=(
        "Play it. Then write 128 tokens, so that the context fills up: the cache is emptied and half of"
        " it filled anew. In “How many bytes” go from all key-value heads to one. In “Why it may be kept”"
        " see what the causal mask has to do with it."
    ),
)

BEAM = Words(
    see=(
        "Every branch that is kept is continued by all tokens; of all these candidates the best few by"
        " their sum of log-probabilities live on."
        " A column for each step, the best sum on top; the number on an edge is the token's log-probability;"
        " grey and dotted: pruned (the best four). The winner is the branch with the best $\\sum \\ln p"
        " \\,/\\, length^{\\alpha}$."
    ),
    why=(
        "The likeliest token at each step need not lead to the likeliest text. Looking at several"
        " branches finds better ones, at that many times the cost. For translation that helps; open text"
        " becomes dull and repeats itself."
    ),
    attempt=(
        "Set the width to 1: that is greedy. Then depth 24, and widen it: where does the winner leave the"
        " greedy way? Then let branches end at a space and move the length penalty: at 0 short words win."
    ),
)


def tokens(subject: Subject) -> Words:
    """Returns the words of the view. A model of words forgets no speaker of a play."""
    if not subject.is_pretrained:
        return TOKENS
    return replace(
        TOKENS,
        why=(
            "There is no plan, only one choice after another, and none is taken back. One other token early"
            " on leads to another text: what was written becomes what is read. A conversation is nothing"
            " else: the same model goes on with a text in which special tokens say whose turn it is."
        ),
        attempt=(
            "Stop on an unlikely token, press another one and play on: a branch begins, with the same random"
            " numbers. Ask it something as a conversation, and the same without: then it goes on with your"
            " question. Set the temperature to 0 and see it repeat itself, then 1.5."
        ),
    )


def cache(subject: Subject) -> Words:
    """Returns the words of the view. Nobody fills a context of thousands of tokens here."""
    if subject.config.context <= SEEN_FULL:
        return CACHE
    return replace(
        CACHE,
        attempt=(
            "Play it. Write more tokens and watch the gap grow. In “How many bytes” go from all key-value"
            " heads to one, and to a long text. In “Why it may be kept” see what the causal mask"
            " has to do with it."
        ),
    )


SEEN_FULL = 256  # tokens of a context that is full before the longest text here ends


def surprised(surprise: Surprise, vocab: int) -> str:
    """Says what the text cost the model that wrote it, as far as it is shown."""
    told = surprise.likelihood
    if told.tokens == 1:
        return (
            "It guesses one token, reads it, and guesses the next: the **first token** cost it"
            f" {told.nats:.2f} nats, as if torn between **{told.perplexity:.1f}** of {vocab:,} tokens."
        )
    return (
        "It guesses one token, reads it, and guesses the next: the"
        f" **first {told.tokens} tokens** cost it {told.nats:.2f} nats each, as if torn between"
        f" **{told.perplexity:.1f}** of {vocab:,} tokens."
    )


def least_expected(surprise: Surprise, worst: str, least: str) -> str:
    """Says how often it took the likeliest, and where it was surprised most."""
    picked = f" {surprise.picks} of them you picked." if surprise.picks else ""
    return (
        f"It took its likeliest token in {surprise.likeliest:.0%} of the places; the least expected was"
        f" “{worst}”, token {surprise.worst + 1}, with p = {least}.{picked}"
    )


def cached(totals: Totals, last: CacheStep) -> str:
    """Says what the cache saves, and that nothing changed."""
    steps = len(totals.cached)
    return (
        "**A KV cache saves work:** keys and values, once computed, are kept, so the last step computed"
        f" **{last.computed} position instead of {last.computed_without}**, and all took"
        f" **{totals.times:.1f} times** less work. No later token can change them, by the causal mask:"
        f" {totals.same} of {steps} tokens came out the same."
    )


def allowed(with_mask: CacheStability, without_mask: CacheStability) -> str:
    """Says how far one more token moves what is kept, with the mask and without."""
    masked = (
        "Under the causal mask a token reads only what came before it: one more token changes earlier keys"
        f" and values by **{with_mask.most:.2g}**, rounding at most, so they may be kept."
    )
    if without_mask.layers == 1:
        return (
            f"{masked} Without the mask this model's only layer changes them by"
            f" **{without_mask.first:.2g}**: its keys and values are made before tokens look at each other."
            " A layer above it would change."
        )
    return (
        f"{masked} Without the mask by **{without_mask.most:.2g}**, and no cache is possible. Only layer 0"
        f" stays ({without_mask.first:.2g}): its keys and values are made before tokens look at each other."
    )
