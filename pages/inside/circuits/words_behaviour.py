"""Sentences of the views of induction, sinks and a fact in the stream."""

from dataclasses import replace

from engine.measure.attention.habits import STRONG
from engine.measure.circuits.induction import Repeat
from engine.measure.circuits.sinks import OpeningResult
from ui.model_bar import Subject
from ui.page_frame import Words

INDUCTION_QUESTION = "Can the model repeat what it has read only once?"
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
        f" (blind guessing costs {guessing:.1f}: the model is sure of something else)"
        if repeat.first_loss > guessing
        else ""
    )
    does = "the model copies." if repeat.copies else "it hardly helps to have read them once."
    return (
        f"Random tokens cost {repeat.first_loss:.1f} nats each at the first reading{more} and"
        f" **{repeat.second_loss:.1f}** at the second: {does}"
    )


INDUCTION_METHOD = (
    "**Score**: mean weight from each place of the second reading to the place after the same token's first"
    " occurrence; {strong} and more counts as an induction head. **Off** means that the head writes nothing,"
    " at any token, and the model is read anew from there on. **Random heads**: for each head that is off,"
    " another of the same layer whose score is below {weak}, or of the nearest layer that has one left; four"
    " draws, and their mean. The first token of the second reading counts in no mean: nobody could know that"
    " the sequence begins again."
)

SINKS_QUESTION = "How much rests on the first token?"
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


FACT_QUESTION = "In which block does the answer appear, and who writes it?"
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
    "Write your own beginning and leave the answer empty: easy letters are settled early, others late."
)


def induction(subject: Subject) -> Words:
    """Returns the words of the view; what to try follows the model."""
    if subject.is_pretrained:
        return INDUCTION
    attempt = (
        f"Draw other letters. {REAL}: the same heads copy in each draw. In a run of yours with repeats in its"
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
