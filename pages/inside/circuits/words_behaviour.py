"""Sentences of the views of induction, sinks and a fact in the stream."""

from dataclasses import replace

import pandas as pd

from engine.config import ResolvedConfig
from engine.measure.attention.head_patterns import STRONG
from engine.measure.attention.heads import HeadValue
from engine.measure.circuits.fact_recall import Answer, Fact
from engine.measure.circuits.induction import (
    Repeat,
    guessing,
)
from engine.measure.circuits.knockout import WEAK, Knockout
from engine.measure.circuits.sinks import (
    Opening,
    OpeningResult,
    Sinks,
)
from pages.inside.circuits.prompts import CITIES
from ui.model_bar import Subject
from ui.page_frame import Words
from ui.text.markdown import safe
from ui.text.numbers import counted, minus

INDUCTION_QUESTION = "Can it repeat what it has seen once?"
INDUCTION = Words(
    see=(
        "A random sequence, read twice in a row: the loss of each token at its first and second occurrence."
        " Under “Measure it”, the mean loss of the second occurrence as heads are ablated, the best induction"
        " head first; thin lines ablate equally many random heads of the same blocks (Olsson et al. 2022)."
    ),
    why=(
        "It is a simple form of *in-context learning*: the model learns from its context, with its weights"
        " unchanged. The circuit spans two blocks: a previous-token head writes into each token what came"
        " before it, and an induction head in a later block matches on that (Elhage et al. 2021)."
    ),
    attempt=(
        "Change the seed: the same heads lead. Then choose a small model. In a run of your own on repetitive"
        " text, scrub through the training: the heads appear quite suddenly."
    ),
)


COUNT, SEED, SEED_HINT = "Random tokens", "Seed", "A different seed draws different tokens."
COUNT_HINT = "Distinct words from the model's vocabulary, drawn at random; characters if it has no words."
TOO_SMALL = "This model's context or vocabulary is too small to read two different tokens twice."
READING, KNOCKING_OUT = "Reading it twice …", "Ablating heads"
UNTRAINED = "It is untrained: such heads form during training, quite suddenly (Olsson et al. 2022)."
KNOCKOUT_ALT = (
    "Loss of the second reading with up to {heads} of the best induction heads off, and with as many"
    " random heads of the same blocks."
)


def readings_alt(repeat: Repeat) -> str:
    return (
        f"Loss of each of {len(repeat.once)} random tokens at its first reading, mean {repeat.first_loss:.2f}"
        f" nats, and at its second, mean {repeat.second_loss:.2f}."
    )


def repeats_little(corpus: str, context: int) -> str:
    """Describes a model whose text hardly repeats itself."""
    return (
        f"Its training text ({corpus}) repeats little within {context} tokens, so there was little to gain"
        " from copying."
    )


def repeats(share: float) -> str:
    """Describes a model whose text repeats itself, at a step at which no head copies yet."""
    return (
        f"But **{share:.0%}** of its training windows repeat their own beginning, so copying pays off, and"
        " such heads form later in training."
    )


CLEARLY_WORSE = 0.2  # nats above ln V, so that both losses differ as they are written


def read_twice(repeat: Repeat, guessing: float) -> str:
    """Returns both losses; a first one clearly above that of a guess has its reason said."""
    more = (
        f" (worse than a uniform guess, {guessing:.1f}: it expects text)"
        if repeat.first_loss > guessing + CLEARLY_WORSE
        else ""
    )
    does = "The model copies" if repeat.copies else "The model hardly copies"
    return (
        f"{does}: random tokens cost {repeat.first_loss:.1f} nats each on the first reading{more} and"
        f" **{repeat.second_loss:.1f}** on the second."
    )


INDUCTION_METHOD = (
    "**Score**: mean weight from each position of the second reading to the position after the same token's"
    f" first occurrence; a score of {STRONG:.0%} or more counts as an induction head. **Off** means that the"
    " head writes nothing at any token, and everything above it is recomputed. **Random heads**: for each"
    f" ablated head, another of the same block whose score is below {WEAK:.0%}, or of the nearest block that"
    " has one left; four draws and their mean. The first token of the second reading is left out of all"
    " means: nothing predicts that the sequence restarts."
)
SCORES_ALT = "Map of the induction score of every head, by block."


def best_heads(repeat: Repeat) -> pd.DataFrame:
    """Returns the heads that copy best, with both scores."""
    rows = [
        (name_of(head.layer, head.head), head.value, float(repeat.previous[head.layer, head.head]))
        for head in repeat.best[:10]
    ]
    return pd.DataFrame(rows, columns=["head", "induction score", "previous-token score"])


SINKS_QUESTION = "How much attention goes to the first token?"
# Short: the longer the text, the less a lost beginning costs each token.
SINKS_TEXT = CITIES
SINKS = Words(
    see=(
        "Left, the mean weight that each head gives to the earliest visible token, over all later tokens."
        " Right, the loss on the *second half* of the text for five ways to begin it, always over the same"
        " tokens (Xiao et al. 2023)."
    ),
    why=(
        "A head's weights must sum to 1 even when nothing is relevant, so an idle head attends to a token"
        " that every query sees and that carries little: an *attention sink*. A sliding-window cache drops"
        " this token first, and the model breaks. Keeping the first four tokens fixes it."
    ),
    attempt=(
        "Compare “first token cut” with “evicted halfway”: a text may begin anywhere, but it must not lose"
        " its beginning. Then choose a small model, which has no sink and loses nothing: sinks form only"
        " after long training on a lot of text (Gu et al. 2024)."
    ),
)
SINKS_METHOD = (
    "**One prepended**: the chosen token is placed before the text. **First token cut**: the text starting at"
    " its second token. **Evicted halfway**: the text as it is, but in its second half no query of any"
    " block sees the first token; what was computed before stays, as in a cache that dropped it. **Another"
    " evicted** does the same to the token in the middle of the first half. The dotted line is uniform"
    " attention."
)

OPENING = "The text"
OPENINGS: dict[Opening, str] = {
    "kept": "unchanged",
    "other": "one prepended",
    "dropped": "first token cut",
    "forgotten": "evicted halfway",
    "control": "another evicted",
}
PREPENDED, PREPENDED_HINT = "Prepended", "The token placed before the text under “one prepended”."
SINKS_MEASURED = "Reading the text in five ways"
LOSSES_ALT = "Bars: the loss of the second half of the text for each of five ways to begin it."
VALUES_ALT = (
    "For every key-value head: the norm of the value vector at the earliest visible position beside the mean"
    " norm at the others."
)
SHORT_CONTEXT = "This model's context is too short: two halves need {tokens} tokens."
LAYERS_ALT = (
    "Weight of every head on the token “{token}”, block by block, and the mean of each block; over all"
    " heads {mean:.0%}."
)


def resting(result: OpeningResult) -> str:
    """Says how many heads rest on the earliest token, and whether they take anything from there."""
    (low, high), most = result.ratios, result.most
    return (
        f"{result.resting} of {counted(result.share.size, 'head')} give it {STRONG:.0%} of their weight or"
        f" more, head {name_of(most.layer, most.head)} the most ({most.value:.0%}). Its value vector has"
        f" **{low:.2f} to {high:.2f} times** the mean norm of the others; the smaller the norm, the less a"
        " head takes from there (Gu et al. 2024)."
    )


FACT_QUESTION = "Which block recalls the fact?"
FACT = Words(
    see=(
        "Above, the answer's rank among all tokens if the model stopped after each block, with 1 at the top,"
        " and its probability there (the logit lens, nostalgebraist 2020). Below, the direct logit"
        " attribution: what each block's attention and feed-forward network add to its logit, minus the mean"
        " of all logits (Elhage et al. 2021)."
    ),
    why=(
        "A fact is not looked up in a single block. In *Patching*, late attention moves it from the subject's"
        " token to the last one; later blocks can raise it further."
    ),
    attempt=(
        "Ask for something the model does not know, such as two plus two: the right answer climbs and is"
        " overtaken. Then find the block with the largest jump in “Patching”: that is where the answer moves."
    ),
    texts=(
        "A lecture says that feed-forward networks store facts and attention routes them, while the bars here"
        " may credit attention. Both can hold: the bars show which sublayer wrote the answer last, and late"
        " attention copies what earlier networks wrote at the subject (Geva et al. 2023)."
    ),
)

REAL = "Then choose SmolLM2 in the bar, which reads words and was trained on far more text"

SINKS_SMALL = (
    "Try all five: hardly any of them hurts this model. Then give it a longer text of the kind it was trained"
    " on."
)
FACT_SMALL = (
    "Write a prompt of your own and leave the answer empty: easy characters are settled early, hard ones"
    " late."
)


def induction(subject: Subject) -> Words:
    """Returns the words of the view; what to try follows the model."""
    if subject.is_pretrained:
        return INDUCTION
    attempt = (
        f"Change the seed. {REAL}: the same heads copy for every seed. In a run of your own on repetitive"
        " text, scrub through the training: such heads appear quite suddenly."
    )
    return replace(INDUCTION, attempt=attempt)


def sinks(subject: Subject) -> Words:
    return (
        SINKS
        if subject.is_pretrained
        else replace(SINKS, attempt=f"{SINKS_SMALL} {REAL}: does its loss rise?")
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
        + " to what followed the same token last time"
        + (", most of all **head " if many > 1 else ": **head ")
        + f"{name_of(best.layer, best.head)}** ({best.value:.0%} of its weight)."
    )
    return sentences


def without_them(knockout: Knockout) -> str:
    """Says what the second reading costs with the best heads off, and with as many others."""
    off = len(knockout.heads)
    below = f"; {below_head(knockout.below[0])}." if knockout.below else "."
    return (
        f"Without the best {off} the second reading costs **{knockout.without[-1]:.1f}** nats; without {off}"
        f" random heads of the same blocks, {knockout.others_mean[-1]:.1f}{below}"
    )


def below_head(head: HeadValue) -> str:
    """`head.value` is the loss without it."""
    name = name_of(head.layer, head.head)
    return f"without just head {name}, a previous-token head below them, {head.value:.1f}"


def why_not(repeat: Repeat, trained_on: str | None, config: ResolvedConfig) -> list[str]:
    """Says that no head copies, and what is missing for it."""
    most, before = repeat.best[0], repeat.before
    sentences = [
        f"**No induction head**: head {name_of(most.layer, most.head)} gives the most weight to what followed"
        f" the same token, {most.value:.0%}; the threshold is {STRONG:.0%}."
    ]
    if config.n_layers == 1:
        sentences.append(
            "A one-block model cannot have one: it would need a head in a block below to read from."
        )
    else:
        sentences.append(below_it(before))
    if trained_on is not None:
        sentences.append(trained_on)
    return sentences


def below_it(before: HeadValue) -> str:
    name = f"{name_of(before.layer, before.head)}, {before.value:.0%}"
    if before.value >= STRONG:
        return f"The other half of the circuit, a previous-token head, is there ({name})."
    return (
        f"The other half of the circuit, a previous-token head below, is missing as well (closest: {name})."
    )


def sinks_answer(sinks: Sinks, opening: Opening, subject: Subject) -> str:
    """Says what is seen under one opening."""
    result, whole = sinks.of(opening), sinks.of("kept")
    first = f"“{safe(subject.vocabulary[result.ids[result.seen]])}”"
    loss = f"the second half costs {result.loss:.2f} nats per token instead of {whole.loss:.2f}"
    if opening == "kept":
        return as_it_is(result, first) + lost(sinks)
    if opening in ("other", "dropped"):
        stays = "The sink is wherever the text begins" if result.is_sink else "There is no sink here either"
        return (
            f"{stays}: the new first token, {first}, gets **{result.mean:.0%}** of all weight (the old one"
            f" got {whole.mean:.0%}). {loss[0].upper()}{loss[1:]}."
        )
    if opening == "forgotten":
        gone = f"“{safe(subject.vocabulary[sinks.ids[0]])}”"
        grows = (
            "A new sink appears at once"
            if result.is_sink
            else "No new sink forms among the tokens processed while the old one was visible"
        )
        return (
            f"{grows}: once {gone} is hidden, the first visible token, {first}, gets **{result.mean:.0%}**"
            f" (uniform: {result.even:.0%}), and {loss}. A text that never had it costs"
            f" {sinks.of('dropped').loss:.2f}."
        )
    other = f"“{safe(subject.vocabulary[sinks.ids[sinks.control]])}” (position {sinks.control})"
    return (
        f"If {other}, an ordinary token of the first half, is hidden instead, {loss}. Hiding the first token"
        f" costs **{sinks.of('forgotten').loss:.2f}**."
    )


def as_it_is(result: OpeningResult, first: str) -> str:
    if not result.is_sink:
        most = result.most
        return (
            f"This model has no attention sink: the first token, {first}, gets **{result.mean:.1%}** of all"
            f" weight (uniform: {result.even:.1%}), and at most {most.value:.0%} from one head"
            f" ({name_of(most.layer, most.head)}). "
        )
    return (
        f"The first token, {first}, is an attention sink: it gets **{result.mean:.0%}** of all weight"
        f" (uniform: {result.even:.0%}). "
    )


def lost(result: Sinks) -> str:
    whole, gone, never = (result.of(opening).loss for opening in ("kept", "forgotten", "dropped"))
    return (
        f"If it is evicted halfway, the rest of the text costs **{gone:.2f}** nats per token instead of"
        f" {whole:.2f} ({never:.2f} if the text never had it)."
    )


PROMPT, YOUR_OWN, ANSWER = "Prompt", "your own", "Answer"
ANSWER_HINT = "Only its first token is tracked. If empty, the model's likeliest token is used."
FACT_MEASURED = "Reading the stream …"
FACT_PARTS = {"attention": "attention", "feedforward": "the feed-forward network"}


def depth_names(layers: int) -> list[str]:
    """
    >>> depth_names(2)
    ['embed', 'block 0', 'block 1']
    """
    return ["embed", *(f"block {i}" for i in range(layers))]


def of_answer(text: str, answer: Answer, first: str) -> str:
    """Says what was made of a visitor's answer; empty where it was taken as it is."""
    notes = [f"A space was added before “{text}”, so that a new word begins."] if answer.blank else []
    if answer.tokens > 1:
        notes.append(f"The answer is {answer.tokens} tokens: the first, “{first}”, is tracked.")
    return " ".join(notes)


def depths_alt(word: str, fact: Fact) -> str:
    return (
        f"Rank of “{word}” after each block, from {fact.rank[0]:,} to {fact.rank[-1]:,}, its probability, and"
        " what each block added to its logit."
    )


def fact_answer(fact: Fact, subject: Subject, prompt: str) -> str:
    """Returns where it becomes the likeliest, where it climbs most, and who wrote it."""
    names = depth_names(subject.config.n_layers)
    word = f"“{safe(subject.vocabulary[fact.answer])}”"
    if fact.first is None:
        guess = safe(subject.vocabulary[fact.guess[-1]])
        text = (
            f"{word} never takes the lead: it ends at rank **{fact.rank[-1]:,}** (p ="
            f" {fact.probability[-1]:.3f}), and the model would write “{guess}”. Its best rank on the way is"
            f" {fact.rank[fact.best]:,}, after {names[fact.best]}."
        )
    else:
        text = (
            f"{word} takes the lead {since(fact.first, names)}, and ends with p ="
            f" **{fact.probability[-1]:.2f}**."
        )
    if fact.leap is not None:
        text += (
            f" The largest jump is in {names[fact.leap]}: from rank {fact.rank[fact.leap - 1]:,} to"
            f" {fact.rank[fact.leap]:,}."
        )
    return f"After “{safe(prompt)}”: {text} {most_written(fact)}".strip()


def since(first: int, names: list[str]) -> str:
    """
    >>> since(3, depth_names(3)), since(1, depth_names(3))
    ('only after **block 2**, the last', 'as early as **block 0**')
    """
    if first == 0:
        return "at the embedding"
    if first == len(names) - 1:
        return f"only after **{names[first]}**, the last"
    return f"as early as **{names[first]}**" if 2 * first < len(names) else f"only after **{names[first]}**"


def most_written(fact: Fact) -> str:
    """Returns the largest single contribution to the logit."""
    if fact.written is None:
        return ""
    part, layer, most = fact.written.most
    nats = minus(f"{most:+.1f}")
    return (
        f"The largest single contribution comes from {FACT_PARTS[part]} in block {layer} (**{nats}** nats)."
    )


def who(fact: Fact) -> str:
    written = fact.written
    if written is None:
        return "No component can be credited: this model's logits are not a plain sum of what was written."
    part, layer, most = written.most
    name = FACT_PARTS[part]
    head = written.head
    alone = (
        ""
        if head is None
        else f"; the largest single head is {name_of(head.layer, head.head)}, {minus(f'{head.value:+.1f}')}"
    )
    attention, networks = (minus(f"{nats:+.1f}") for nats in (written.by_attention, written.by_feedforward))
    return (
        f"Attention contributed **{attention}** nats to its logit (minus the mean of all logits), the"
        f" feed-forward networks **{networks}**. The largest single contribution comes from {name} in block"
        f" {layer}, {minus(f'{most:+.1f}')}{alone}."
    )
