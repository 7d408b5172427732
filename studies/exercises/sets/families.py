"""The family that fits a task, its objective, its masks, and why decoders won."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from studies.exercises.exercise import Exercise, Mistake, See, extra_options, see
from studies.exercises.forms import Choice, Pick

ENCODER, DECODER, BOTH = "Encoder only", "Decoder only", "Encoder and decoder"
WORK = {
    ENCODER: (
        "tell spam from other e-mails",
        "find the most similar of a million sentences, with one vector each",
        "mark the names of people and places in a text",
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
        "correct a sentence by rewriting it, with the whole faulty one in view",
    ),
}
KNOWN = {
    ENCODER: ("BERT", "RoBERTa"),
    DECODER: ("GPT-2", "LLaMA", "Mistral"),
    BOTH: ("T5", "BART", "Whisper", "the original Transformer"),
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
    ENCODER: "Encoders are still the usual choice for text embeddings, as in search, and for classification.",
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
        (f"Here {WHY[family]}.", f"**{family}**. {TODAY[family]}"),
        tuple(Mistake(other, HINT[other]) for other in WORK if other != family),
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
        extra_options(
            right,
            {
                option: f"{option} belongs to another family: {_family(option).lower()}."
                for option in options
                if option not in right
            },
        ),
        see("families", families_view="three"),
        {"family": family, "options": options},
    )


def _family(name: str) -> str:
    return next(family for family, names in KNOWN.items() if name in names)


OBJECTIVE = {
    ENCODER: "Masked language modelling, encoder only",
    DECODER: "Next-token prediction, decoder only",
    BOTH: "Next-token prediction of a target, encoder and decoder",
}
PAIRS = (
    ("the cat sleeps here", "le chat dort ici"),
    ("the dog sees us", "der Hund sieht uns"),
    ("we read a book", "leemos un libro"),
    ("a long report about rain", "rain report"),
)
NOT_TRAINED = {  # (the right family, the chosen one) -> what speaks against it
    (ENCODER, DECODER): "A decoder has a target at every position. Here only the hidden token is predicted.",
    (ENCODER, BOTH): "There is one text here: the hidden token is predicted at its own position.",
    (DECODER, ENCODER): "Nothing is hidden here: every position predicts the token after it.",
    (DECODER, BOTH): "There is one text here: its own next tokens are the targets, without a source.",
    (BOTH, ENCODER): "An encoder fills in masked tokens in what it reads. Here another text is written.",
    (BOTH, DECODER): "A decoder alone reads one stream. Here a source is read as a whole, beside it.",
}


def objective(rng: Random) -> Exercise:
    family, (source, target) = rng.choice(list(OBJECTIVE)), rng.choice(PAIRS)
    words = source.split()
    gap = rng.randrange(len(words))
    inputs, targets = {
        ENCODER: (
            (" ".join("[MASK]" if place == gap else word for place, word in enumerate(words)),),
            " ".join(word if place == gap else "_" for place, word in enumerate(words)),
        ),
        DECODER: ((" ".join(words[:-1]),), " ".join(words[1:])),
        BOTH: ((source, f"<bos> {target}"), f"{target} <eos>"),
    }[family]
    return Exercise(
        f"One training step. Input: {' and '.join(f'`{each}`' for each in inputs)}. Targets: `{targets}` (no"
        " loss at `_`). What is the objective, and which family is trained with it?",
        Choice(tuple(OBJECTIVE.values())),
        OBJECTIVE[family],
        (
            "An encoder hides tokens and predicts them from both sides; a decoder predicts the next token at"
            " every position; with both, the decoder does so for a target, given the source.",
            f"Here: **{OBJECTIVE[family]}**.",
        ),
        tuple(
            Mistake(OBJECTIVE[other], NOT_TRAINED[family, other]) for other in OBJECTIVE if other != family
        ),
        see("families", families_view="three"),
        {"family": family, "inputs": inputs, "targets": targets},
    )


HIDDEN = 0.15  # of an encoder's tokens
WON = (
    "Every token of a text is a prediction to learn from",
    "One objective and one interface serve all tasks: each is a text to be continued",
    "Under the causal mask, keys and values can be cached while it writes",
    "Its loss falls predictably with size, so that a large run can be planned",
)
NOT_WON = {
    "It sees both sides of every token": "that is what an encoder does; a decoder sees only what came before",
    "It needs no mask": "it needs the causal mask: without it, training shows it the answers",
    "Its blocks have fewer parameters than an encoder's": "the blocks are the same; only the mask differs",
    "Encoder-decoders cannot translate": "the original Transformer was made for translation, and was one",
    "It has no feed-forward networks": "its blocks have one each, as in the other families",
}


def _three_reasons(
    rng: Random, question: str, true: tuple[str, ...], false: Mapping[str, str], shown_by: See, numbers: str
) -> Exercise:
    """Asks for three true reasons among three false ones; `numbers` is a line about so many {tokens}."""
    right, wrong = frozenset(rng.sample(true, 3)), dict(rng.sample(list(false.items()), 3))
    options = tuple(sorted((*sorted(right), *wrong), key=lambda option: rng.random()))
    tokens = rng.choice([128, 256, 512, 1024])
    return Exercise(
        f"{question} Choose the three true reasons.",
        Pick(options),
        right,
        (
            *(f"*{option}*." for option in options if option in right),
            f"In numbers: {numbers.format(tokens=tokens, steps=tokens - 1, hidden=HIDDEN * tokens)}",
        ),
        extra_options(right, {option: f"Not “{option}”: {why}." for option, why in wrong.items()}),
        shown_by,
        {"options": options},
    )


def decoders_won(rng: Random) -> Exercise:
    return _three_reasons(
        rng,
        "Why did **decoder-only** models win out among large language models?",
        WON,
        NOT_WON,
        see("families", families_view="why", families_why="reasons"),
        f"of {{tokens:,}} tokens an encoder with {HIDDEN:.0%} masked predicts {{hidden:.0f}}, a decoder"
        " {tokens:,}.",
    )


REPLACED = (
    "In training, all positions are computed at once",
    "Any two positions are one step apart",
    "Its loss keeps falling with more data, parameters and compute",
    "It is trained once and then adapted to many tasks",
    "It is one simple block, repeated, which hardware can be designed for",
)
NOT_REPLACED = {
    "It costs less than an RNN at any length": "attention costs $T^2 d$, an RNN $T d^2$: less only below"
    " $T = d$",
    "It knows the order of tokens by itself": "without positions it does not, while an RNN reads in order",
    "It writes several tokens in one pass": "it writes one after another, as an RNN does",
    "It has no matrices to learn": "it has $W_Q$, $W_K$, $W_V$, $W_O$ and two in the feed-forward network",
    "Nothing had used attention before": "Bahdanau et al. added it to an RNN in 2014",
}


def transformer_won(rng: Random) -> Exercise:
    return _three_reasons(
        rng,
        "Why did the **Transformer** replace recurrent networks?",
        REPLACED,
        NOT_REPLACED,
        see("reference", reference_view="before"),
        "from the first of {tokens:,} tokens to the last, an RNN takes {steps:,} steps, one after another;"
        " attention takes 1.",
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
        tuple(Mistake(name, hint) for name, hint in hints.items() if name != right),
        see("crossattention", cross_view="masks"),
        {"place": place},
    )


TASKS = (
    ("match", "A family for a task", match),
    ("known", "Well-known models", known),
    ("objective", "An objective for a family", objective),
    ("decoders-won", "Why decoders won", decoders_won),
    ("transformer-won", "Why the Transformer won", transformer_won),
    ("masks", "A mask for a position", masks),
)
