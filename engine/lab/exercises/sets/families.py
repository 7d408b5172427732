"""The family that fits a task; the bugs that look healthy. The words are drawn, the answers are not."""

from __future__ import annotations

from random import Random

from engine.lab.exercises.exercise import Exercise, Mistake, see
from engine.lab.exercises.forms import Choice, Pick

ENCODER, DECODER, BOTH = "Encoder only", "Decoder only", "Encoder and decoder"
WORK = {
    ENCODER: (
        "sort e-mails into wanted and unwanted",
        "find the most similar of a million sentences, with one vector each",
        "mark the names of persons and places in a text",
        "decide whether a review is positive",
        "fill a gap in a sentence, given the words on both sides",
    ),
    DECODER: (
        "continue a story, token by token",
        "answer in a chat, with the whole conversation as one stream of text",
        "complete a program as it is typed",
        "write poems in the style of its training text",
    ),
    BOTH: (
        "translate, with the whole source read in both directions before a word is written",
        "turn speech into text",
        "turn a long article, read once, into a short summary",
        "correct a sentence by rewriting it, with every word of the faulty one in view",
    ),
}
KNOWN = {
    ENCODER: ("BERT", "RoBERTa"),
    DECODER: ("GPT-2", "LLaMA", "Mistral"),
    BOTH: ("T5", "BART", "Whisper", "the Transformer of 2017"),
}
WHY = {
    ENCODER: "the whole text is available at once, and nothing has to be written: attention may go both ways",
    DECODER: "what it writes continues the text: one stream, and no position sees ahead",
    BOTH: "one text is read as a whole, and another is written from it: cross-attention connects them",
}
HINT = {
    ENCODER: "An encoder attends both ways, so it cannot write token by token.",
    DECODER: "A decoder alone sees only what came before, in one stream.",
    BOTH: "Two stacks pay off where one text is read as a whole and *another* is written.",
}


TODAY = {
    ENCODER: "Encoders are still the usual choice for search vectors and classification.",
    DECODER: "Nearly every large language model since 2020 is one.",
    BOTH: "Large decoders do this too today, with both texts in one stream.",
}


def match(rng: Random) -> Exercise:
    family = rng.choice(list(WORK))
    work = rng.choice(WORK[family])
    return Exercise(
        f"The task: **{work}**. Which family has the right masks for it?",
        Choice((ENCODER, DECODER, BOTH)),
        family,
        (
            f"Here {WHY[family]}.",
            f"**{family}**. {TODAY[family]}",
        ),
        tuple(Mistake(other.lower(), other, HINT[other]) for other in WORK if other != family),
        see("families", families_view="three"),
        {"work": work},
    )


def known(rng: Random) -> Exercise:
    family = rng.choice(list(KNOWN))
    others = sorted(name for group, names in KNOWN.items() if group != family for name in names)
    members = rng.sample(KNOWN[family], 2)
    options = tuple(sorted((*members, *rng.sample(others, 4)), key=lambda option: rng.random()))
    right = frozenset(members)
    return Exercise(
        f"Which of these belong to the family *{family.lower()}*?",
        Pick(options),
        right,
        (f"**{', '.join(sorted(right))}**: {WHY[family]}.",),
        tuple(
            Mistake(
                option.lower(),
                right | {option},
                f"{option} belongs to another family: {_family(option).lower()}.",
                single_option=True,
            )
            for option in options
            if option not in right
        ),
        see("families", families_view="three"),
        {"family": family, "options": options},
    )


def _family(name: str) -> str:
    return next(family for family, names in KNOWN.items() if name in names)


FINE = (
    "The causal mask is forgotten",
    "The mask is transposed or broadcast wrongly, so that some rows see ahead",
    "The decoder gets the padding mask where the causal one belongs",
    "The labels are not shifted: every token predicts itself",
)
BAD = {
    "The learning rate is a hundred times too high": "the loss diverges or stalls, so it is not low",
    "$\\sqrt{d_k}$ is forgotten": "the loss falls slowly or stalls, so it shows",
    "No gradient clipping": "it may show as spikes or NaN in the loss",
    "Positions are forgotten": "the loss stays too high: a bag of words",
    "Post-norm in 48 layers without warm-up": "the loss stalls near the start",
}


def healthy_looking(rng: Random) -> Exercise:
    fine, bad = rng.sample(FINE, 3), rng.sample(list(BAD), 3)
    options = tuple(sorted((*fine, *bad), key=lambda option: rng.random()))
    right = frozenset(fine)
    return Exercise(
        "Three of these bugs give a **low training loss and poor text**: the worst kind. Which?",
        Pick(options),
        right,
        (
            "A low loss with poor text comes from cheating: the answer is visible in training, but not when"
            " the model writes.",
            *(f"*{option}*: the next token is visible, or is not predicted." for option in sorted(right)),
        ),
        tuple(
            Mistake(f"bad-{place}", right | {option}, f"Not “{option}”: {BAD[option]}.", single_option=True)
            for place, option in enumerate(bad)
        ),
        see("bugs", bugs_view="doctor", measure="true"),
        {"options": options},
    )


def masks(rng: Random) -> Exercise:
    source, causal, both = "Padding of the source", "Causal", "Causal, and padding of the source"
    place, right = rng.choice(
        [
            ("the encoder's self-attention", source),
            ("the decoder's cross-attention", source),
            ("the self-attention of a decoder that trains on whole windows of text", causal),
        ]
    )
    hints = {
        source: "Its tokens must not see ahead, which takes a causal mask. Whole windows have no padding.",
        causal: "The keys come from the source. All of it is known, so nothing has to be hidden but padding.",
        both: "Padding is right. But the whole source is known: no later token has to be hidden.",
    }
    if right == causal:
        hints[both] = "Causal is right. But whole windows have no padding, and a decoder alone has no source."
    return Exercise(
        f"Which mask does **{place}** need?",
        Choice(tuple(hints)),
        right,
        (f"**{right}**.", "Causal masks hide later tokens; padding masks hide positions without a token."),
        tuple(Mistake(name.lower(), name, hint) for name, hint in hints.items() if name != right),
        see("crossattention", cross_view="masks"),
        {"place": place},
    )


TASKS = (
    ("match", "A family for a task", match),
    ("known", "Known models", known),
    ("masks", "A mask for a position", masks),
    ("healthy-looking", "Bugs that look healthy", healthy_looking),
)
