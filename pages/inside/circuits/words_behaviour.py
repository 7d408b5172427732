"""Sentences of the views of induction, sinks and a fact in the stream."""

from dataclasses import replace

from engine.config import ResolvedConfig
from engine.measure.attention.habits import STRONG
from engine.measure.attention.heads import HeadValue
from engine.measure.circuits.fact_recall import Fact
from engine.measure.circuits.induction import (
    Repeat,
    guessing,
)
from engine.measure.circuits.knockout import Knockout
from engine.measure.circuits.sinks import (
    Opening,
    OpeningResult,
    Sinks,
)
from ui.model_bar import Subject
from ui.page_frame import Words
from ui.text.markdown import safe

INDUCTION_QUESTION = "Can it repeat what it has seen once?"
INDUCTION = Words(
    see=(
        "Random tokens, read twice in a row: how surprising each is at its first and at its second reading."
        " Under “Measure it”, the second reading's mean loss while heads are switched off, the best induction"
        " head first; thin lines are draws of as many random heads of the same layers (Olsson et al. 2022)."
    ),
    why=(
        "It is the simplest thing that a model learns from its *context* rather than from its weights, and it"
        " takes two layers: one head writes into each token what came before it, a second one looks for that"
        " (Elhage et al. 2021)."
    ),
    attempt=(
        "Draw other tokens: the same heads lead. Then choose a small model. In a run of yours with repeats in"
        " its text, slide through the training: the heads appear all at once."
    ),
)


def repeats(share: float) -> str:
    """Describes a model whose text repeats itself, at a step at which no head copies yet."""
    return (
        f"But **{share:.0%}** of the windows that it learns from repeat their own beginning, so copying pays:"
        " later in its training such heads form."
    )


def read_twice(repeat: Repeat, guessing: float) -> str:
    """Returns both losses; a first one above that of a guess has its reason said."""
    more = (
        f" (worse than a uniform guess, {guessing:.1f}: the model is confidently wrong)"
        if repeat.first_loss > guessing
        else ""
    )
    does = "the model copies." if repeat.copies else "it hardly helps to have read them once."
    return (
        f"Random tokens cost {repeat.first_loss:.1f} nats each at the first reading{more} and"
        f" **{repeat.second_loss:.1f}** at the second: {does}"
    )


INDUCTION_METHOD = (
    "**Score**: mean weight from each position of the second reading to the position after the same token's"
    " first"
    " occurrence; {strong} and more counts as an induction head. **Off** means that the head writes nothing,"
    " at any token, and the model is read anew from there on. **Random heads**: for each head that is off,"
    " another of the same layer whose score is below {weak}, or of the nearest layer that has one left; four"
    " draws, and their mean. The first token of the second reading counts in no mean: nobody could know that"
    " the sequence begins again."
)

SINKS_QUESTION = "How much attention goes to the first token?"
# Short: the longer the text goes on, the less a lost beginning costs each token of it.
SINKS_TEXT = (
    "The capital of France is Paris, and the capital of Italy is Rome. Most people who visit Europe for the"
    " first time want to see one of the two, and many of them come back."
)
SINKS = Words(
    see=(
        "Left, the weight that each head of each layer gives to the earliest token in sight, mean over the"
        " later tokens. Right, the loss of the *second half* of the text, for five ways to begin it: always"
        " the same tokens are counted (Xiao et al. 2023)."
    ),
    why=(
        "A head's weights must sum to 1, also when it has nothing to do: it rests on a token that all can see"
        " and that says little. A program that writes on and on and drops the oldest tokens drops this one"
        " first, and the model breaks. Keeping four of them is the cure."
    ),
    attempt=(
        "Compare “without it” with “forgotten half-way”: a text may begin anywhere, but it must not lose its"
        " beginning. Then choose a small model, which has no sink and misses nothing."
    ),
)
SINKS_METHOD = (
    "**Another in front**: the chosen token before the text. **Without it**: the text from its second token"
    " on. **Forgotten half-way**: the text as it is, but from its middle on no query of any layer sees the"
    " first token; what was computed before stays, as in a cache that dropped it. **Another one forgotten**"
    " does the same to the token in the middle of the first half. The dotted line is what a head would give"
    " that spread its weight evenly."
)

VALUES_ALT = (
    "For every key-value head: the length of the value vector at the earliest position in sight beside the"
    " mean length at the others."
)


def resting(result: OpeningResult, most: str) -> str:
    """Says how many heads rest on the earliest token, and whether they take anything from there; `most` names
    the head that does so most.
    """
    low, high = result.ratios
    return (
        f"{result.resting} of {result.share.size} heads rest there with {STRONG:.0%} of their weight or more,"
        f" {most} with {result.most.value:.0%}. A row of weights must sum to 1, so a head that finds nothing"
        f" must rest somewhere; its value vector is **{low:.2f} to {high:.2f} times** as long as the mean of"
        " the others, and the shorter it is, the less a head takes from there (Gu et al. 2024)."
    )


FACT_QUESTION = "Which block recalls the fact?"
FACT = Words(
    see=(
        "Above, the answer's rank among all tokens if the model stopped after each block, 1 on top, and its"
        " probability there (the logit lens, nostalgebraist 2020). Below, what each block's attention and"
        " feed-forward network wrote of its logit, less the mean of all logits (Elhage et al. 2021)."
    ),
    why=(
        "A fact is not looked up in one place. Most blocks prepare; some late attention brings the answer"
        " from the word it hangs on to the last token, and the networks after it make it sure."
    ),
    attempt=(
        "Ask for something the model does not know, as two plus two: the right answer climbs and is"
        " overtaken. Then find the block of the largest step in “Patching”: there the answer moves."
    ),
)

REAL = "Then take SmolLM2 in the bar, which reads words and was trained on much text"

SINKS_SMALL = "Go through the five ways: this model hardly minds any. Give it a longer text of its kind."
FACT_SMALL = (
    "Write your own beginning and leave the answer empty: easy characters are settled early, others late."
)


def induction(subject: Subject) -> Words:
    """Returns the words of the view; what to try follows the model."""
    if subject.is_pretrained:
        return INDUCTION
    attempt = (
        f"Draw other characters. {REAL}: the same heads copy in each draw. In a run of yours with repeats"
        " in its"
        " text, slide through the training: such heads appear all at once."
    )
    return replace(INDUCTION, attempt=attempt)


def sinks(subject: Subject) -> Words:
    return (
        SINKS
        if subject.is_pretrained
        else replace(SINKS, attempt=f"{SINKS_SMALL} {REAL}: it must not lose it.")
    )


def fact(subject: Subject) -> Words:
    return (
        FACT
        if subject.is_pretrained
        else replace(FACT, attempt=f"{FACT_SMALL} {REAL}: ask it for a capital.")
    )


def name_of(layer: int, head: int) -> str:
    """Returns the name of a head on the axes: both counted from 0.

    >>> name_of(18, 6)
    '18.6'
    """
    return f"{layer}.{head}"


def sentences(repeat: Repeat, trained_on: str | None, config: ResolvedConfig) -> list[str]:
    """Says what is seen and which heads copy, or why none does."""
    sentences = [read_twice(repeat, guessing(config.vocab_size))]
    if not repeat.strong:
        return [*sentences, *why_not(repeat, trained_on, config)]
    best, many = repeat.strong[0], len(repeat.strong)
    sentences.append(
        (f"{many} heads attend" if many > 1 else "One head attends")
        + " to what came after the same token last time"
        + (", most of all **head " if many > 1 else ": **head ")
        + f"{name_of(best.layer, best.head)}** ({best.value:.0%} of its weight)."
    )
    return sentences


def without_them(knockout: Knockout) -> str:
    """Says what the second reading costs with the best heads off, and with as many others."""
    off = len(knockout.heads)
    below = f"; {below_head(knockout.below[0])}." if knockout.below else "."
    return (
        f"Without the best {off} the second reading costs **{knockout.without[-1]:.1f}** nats, without"
        f" {off} random heads of the same layers {knockout.others_mean[-1]:.1f}{below}"
    )


def below_head(head: HeadValue) -> str:
    """`head.value` is the loss without it."""
    name = name_of(head.layer, head.head)
    return f"without {name} alone, a head below them that reads the token before, {head.value:.1f}"


def why_not(repeat: Repeat, trained_on: str | None, config: ResolvedConfig) -> list[str]:
    """Says that no head copies, and what is missing for it."""
    most, before = repeat.best[0], repeat.before
    sentences = [
        "**No induction head**: the most that a head gives to what came after the same token is"
        f" {most.value:.0%} ({name_of(most.layer, most.head)}), and {STRONG:.0%} would make it one."
    ]
    if config.n_layers == 1:
        sentences.append("With one layer there can be none: it needs a head below it to read from.")
    else:
        sentences.append(below_it(before))
    if trained_on is not None:
        sentences.append(trained_on)
    return sentences


def below_it(before: HeadValue) -> str:
    name = f"{name_of(before.layer, before.head)}, {before.value:.0%}"
    if before.value >= STRONG:
        return f"A head that reads the token before, the other half of the circuit, is there ({name})."
    return f"Nor does a head below read the token before, the other half of the circuit (most: {name})."


def sinks_answer(sinks: Sinks, opening: Opening, subject: Subject) -> str:
    """Says what is seen under one opening."""
    told, kept = sinks.of(opening), sinks.of("kept")
    first = f"“{safe(subject.vocabulary[told.ids[told.seen]])}”"
    loss = f"the second half costs {told.loss:.2f} nats per token instead of {kept.loss:.2f}"
    if opening == "kept":
        return as_it_is(told, first) + lost(sinks)
    if opening in ("other", "dropped"):
        stays = "the sink is wherever the text begins" if told.is_sink else "no sink there either"
        return (
            f"Now the text begins with {first}, and **{told.mean:.0%}** of all weight lies on that"
            f" ({kept.mean:.0%} on the old first one before): {stays}. {loss[0].upper()}{loss[1:]}."
        )
    if opening == "forgotten":
        gone = f"“{safe(subject.vocabulary[sinks.ids[0]])}”"
        grows = (
            "a new sink is there at once" if told.is_sink else "no new sink forms for what was read with it"
        )
        return (
            f"From the middle on nobody sees {gone} any more. What is now the first, {first}, gets"
            f" **{told.mean:.0%}** (evenly: {told.even:.0%}): {grows}, and {loss}. A text that never had it"
            f" costs {sinks.of('dropped').loss:.2f}."
        )
    other = f"“{safe(subject.vocabulary[sinks.ids[sinks.control]])}” (position {sinks.control})"
    return (
        f"From the middle on nobody sees {other}, a token of the first half like any other: {loss}. Without"
        f" the first one it was **{sinks.of('forgotten').loss:.2f}**."
    )


def as_it_is(result: OpeningResult, first: str) -> str:
    if not result.is_sink:
        most = result.most
        return (
            f"**{result.mean:.1%}** of all weight lies on the first token, {first}; spread evenly it would be"
            f" {result.even:.1%}. The most that a head gives it is {most.value:.0%}"
            f" ({name_of(most.layer, most.head)}): this model makes no sink. That takes long training on much"
            " text (Gu et al. 2024). "
        )
    return (
        f"**{result.mean:.0%}** of all weight lies on the first token, {first}; spread evenly it would be"
        f" {result.even:.0%}. "
    )


def lost(result: Sinks) -> str:
    kept, gone, never = (result.of(one).loss for one in ("kept", "forgotten", "dropped"))
    return (
        f"Forgotten half-way, the rest of the text costs **{gone:.2f}** nats per token instead of {kept:.2f}"
        f" ({never:.2f} where the text never had it)."
    )


FACT_PARTS = {"attention": "the attention", "feedforward": "the feed-forward network"}


def depth_names(layers: int) -> list[str]:
    """
    >>> depth_names(2)
    ['embed', 'block 0', 'block 1']
    """
    return ["embed", *(f"block {i}" for i in range(layers))]


def fact_answer(fact: Fact, subject: Subject) -> str:
    """Returns where it becomes the likeliest, where it climbs most, and who wrote it."""
    names = depth_names(subject.config.n_layers)
    word = f"“{safe(subject.vocabulary[fact.answer])}”"
    if fact.first is None:
        guess = safe(subject.vocabulary[fact.guess[-1]])
        text = (
            f"{word} ends as number **{fact.rank[-1]:,}**, with a probability of {fact.probability[-1]:.3f}:"
            f" the model would write “{guess}”. Its best rank on the way is {fact.rank[fact.best]:,},"
            " after"
            f" {names[fact.best]}."
        )
    else:
        text = (
            f"{word} becomes the likeliest token {since(fact.first, names)}; at the end its probability is"
            f" **{fact.probability[-1]:.0%}**."
        )
    if fact.leap is not None:
        text += (
            f" The largest jump is {names[fact.leap]}: from rank {fact.rank[fact.leap - 1]:,} to"
            f" {fact.rank[fact.leap]:,}."
        )
    return f"{text} {most_written(fact)}".strip()


def since(first: int, names: list[str]) -> str:
    """
    >>> since(3, depth_names(3)), since(1, depth_names(3))
    ('only after **block 2**, the last', 'after **block 0** already')
    """
    if first == 0:
        return "from the embedding on"
    if first == len(names) - 1:
        return f"only after **{names[first]}**, the last"
    return f"after **{names[first]}** already" if 2 * first < len(names) else f"only after **{names[first]}**"


def most_written(fact: Fact) -> str:
    """Names the part of a block with the largest single write."""
    if fact.written is None:
        return ""
    part, layer, most = fact.written.most
    return f"Largest single contribution: {FACT_PARTS[part]} of block {layer} (**{most:+.1f}** nats)."


def who(fact: Fact) -> str:
    written = fact.written
    if written is None:
        return "It cannot be attributed: this model's logits are not a plain sum of what was written."
    part, layer, most = written.most
    name = FACT_PARTS[part]
    head = written.head
    alone = "" if head is None else f"; of all heads {name_of(head.layer, head.head)}, {head.value:+.1f}"
    return (
        f"Attention wrote **{written.by_attention:+.1f}** nats of its logit (less the mean of all), the"
        f" feed-forward networks **{written.by_feedforward:+.1f}**; most {name} of block {layer},"
        f" {most:+.1f}{alone}."
    )
