"""Sentences of the view of fine-tuning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from engine.training.post_training.finetune import FinetuneRecipe
from engine.training.post_training.lessons import Style, Topic
from engine.training.post_training.new_fact import MOST_BYTES, FactEvaluation, MatrixChange, Taught
from engine.training.post_training.new_text import TextEvaluation
from ui.page_frame import Words
from ui.text.markdown import safe
from ui.text.numbers import counted, gigabytes, percent

METHODS = {
    "lora-4": "LoRA, rank 4",
    "lora-1": "LoRA, rank 1",
    "lora-16": "LoRA, rank 16",
    "full": "All weights",
}
DOING, ASKING = "Fine-tuning", "Asking the model"
OWN_FACT, OWN_TITLE = "Your own fact", "Your own"
REHEARSE, REHEARSE_FACTS = "Rehearse", "Rehearse old facts"
ANSWERS_ONLY, LOSS_ON_ANSWERS = "Answers only", "Loss on answers only"
TEXTS = {"python": "the Python manual", "shakespeare": "Tiny Shakespeare"}
YOUR_TEXT, ITS_TEXT, OWN_TEXT = "your text", "its own text", "Text: your own"
BEFORE = "before"
QUESTION = "What does fine-tuning teach, and what is forgotten?"
PROMPT = "prompt"
FORGETS = 0.1  # nats per token: a loss that rises further is said to be forgotten, one that falls, learned
FORGETS_MUCH = 0.3  # nats per token
MOST_LACKING = 10  # characters that are named
SENTENCES = "Sentences, one on each line (at most {0})"
OWN_MISSING = "Write a few sentences that state the fact, a prompt that calls for it, and its answer."
LOOK_INSIDE = "Look inside the fine-tuned model: in which block does the answer appear?"
DOWNLOAD = "Download the adapters for PEFT"
EXPORT = "Export the merged model (Hugging Face)"
BEGINS = "Begin with"
BEGINS_HINT = (
    "The style: each taught answer begins with it. It is tested on questions that appear in no lesson."
)
NAME = "Name of the fine-tuned model"
NAME_HINT = (
    "Its name on the pages that look inside. If left empty: the original model's name and what it learned."
)
LET_WRITE = "Let the fine-tuned model write, and open it on every page"
USE_LORA = "Use LoRA, rank 4"
NO_DRAW = "Nothing is drawn at random here, so every seed gives this run."
SEED_HINT = (
    "Draws the matrix A of each adapter, and the windows of a text. Thin lines, if any, are seeds 0 to 2."
)
SAMPLE_HINT = "The model continues it before and after, with the same random seed, at temperature 0.8."
TEXT_BOX = "Your text ({0:,} to {1:,} characters)"
TEXT_MISSING = "Paste a text of some length: the last tenth of it is held out, for testing."
TEXT_REHEARSE_HINT = "Half of every batch is from the text that the model was trained on."
ANSWER_HINT = "What should follow the prompt. A new word begins with a space."
REHEARSE_HINT = "Adds sentences about older facts of the same form to every batch."
ANSWERS_HINT = (
    "Supervised fine-tuning (SFT, Ouyang et al. 2022) usually takes the loss on the answer alone. Off: on"
    " every token of a sentence."
)

FINE_TUNING = Words(
    see=(
        "A copy of the model is trained on a handful of sentences about something that does not exist."
        " Each step tests it on the new fact, the same fact in a wording found in none of the"
        " sentences, and facts it knew before. A small model is taught *another text*, and tested on held-out"
        " parts of that text and of the one it was trained on. Thin lines are stored runs of seeds"
        " 0 to 2. *LoRA* (low-rank adaptation, Hu et al. 2021) leaves every weight as it is"
        " and learns a low-rank update to the matrices of attention: $W + BA$, with $r$ columns in $B$ and"
        " $r$ rows in $A$. $B$ starts at zero. *All weights* is ordinary full fine-tuning. Probabilities"
        " are those of the whole answer. A *style* is tested on questions that appear in no lesson; the"
        " loss on plain text shows what it cost."
    ),
    why=(
        "A pretrained model learns a new fact in seconds, because everything else it needs, such as what a"
        " capital is, is already there. The same few steps damage what is stored nearby: *catastrophic"
        " forgetting* (McCloskey and Cohen 1989). Rehearsal, old examples among the new ones, is the"
        " simplest remedy. Fine-tuning on prompts with the answers people wrote is the first step from a"
        " language model to an assistant (Ouyang et al. 2022). An adapter is small enough to email, and can"
        " be removed again."
    ),
    attempt=(
        "Rehearse the old facts and compare. Change the rank from 1 to 16, then train all weights. Teach it"
        " a style, then a fact of your own, then ask in other words: has it learned a fact, or a sentence?"
        " Choose a Shakespeare model above and teach it the Python manual."
    ),
)


def drawn(topic: Topic | Style, answers: np.ndarray) -> np.ndarray:
    """Returns the lines of the figure (line, step) for answers (question, step): those of a fact themselves;
    of a style each unseen prompt, then the means over these and over those of another form.
    """
    if isinstance(topic, Topic):
        return answers
    return topic.with_means(answers)


def labels(topic: Topic | Style) -> list[tuple[str, str]]:
    """Returns (name, role) of each line of `drawn`, in their order: what the figure calls them."""
    if isinstance(topic, Style):
        word = topic.answer.strip()
        single = [(f"after “{prompt}”", "single") for prompt in topic.unseen]
        return [*single, (f"{word}: new questions", "new"), (f"{word}: other texts", "leak")]
    rows = [(f"{topic.answer.strip()}: the new fact", "new")]
    if topic.reworded:
        rows.append((f"{topic.answer.strip()}, asked in other words", "reworded"))
    rows += [(f"{q.answer.strip()}: known before", "known") for q in topic.known]
    if topic.known:
        rows.append((f"{topic.answer.strip()} where {topic.known[0].answer.strip()} is right", "leak"))
    return rows


def learned(topic: Topic | Style, taught: Taught[FactEvaluation]) -> str:
    """Returns the answer: what is learned, and what became of the first known fact (Markdown)."""
    if isinstance(topic, Style):
        return _styled(topic, taught)
    first, last = taught.looks[0].answers, taught.looks[-1].answers
    new, steps = safe(topic.answer.strip()), taught.looks[-1].step
    best = max(taught.looks, key=lambda look: look.answers[0])
    knows, forgot = ", and the model still knows", ", yet the model has forgotten"
    if last[0] >= 0.5:
        says = f"After {counted(steps, 'step')} the model has learned “{new}” (**{last[0]:.0%}**)"
        if topic.reworded and last[1] < 0.5:
            says += f", a sentence rather than a fact (**{last[1]:.0%}** when reworded)"
        knows, forgot = ", and still knows", ", and has forgotten"
    elif first[0] < 0.5 <= best.answers[0]:
        says = (
            f"The model learned “{new}” (**{best.answers[0]:.0%}** at step {best.step}) and lost it again"
            f" (**{last[0]:.0%}** at step {steps}): the learning rate is too high"
        )
        knows, forgot = ". It still knows", ". It has forgotten"
    else:
        says = f"{steps} steps are not enough for “{new}” (**{last[0]:.0%}**)"
    if not topic.known:
        return f"{says}."
    at = len(last) - 1 - len(topic.known)
    old, was, now = safe(topic.known[0].answer.strip()), first[at], last[at]
    became = knows if now >= was / 2 else forgot
    return f"{says}{became} “{old}” (**{was:.0%}** before, **{now:.0%}** now)."


def _styled(topic: Style, taught: Taught[FactEvaluation]) -> str:
    """Says how likely the style is where it was not shown, and what became of plain text (Markdown)."""
    first, last = taught.looks[0], taught.looks[-1]
    after, leak = drawn(topic, np.array([last.answers]).T)[-2:, 0]
    word = safe(topic.answer.strip())
    has = "has learned the style" if after >= 0.5 else "has not learned the style yet"
    spreads = ", and of other texts too" if leak >= 0.5 else ""
    lost = "forgot little" if last.plain - first.plain < FORGETS else "forgot"
    return (
        f"After {counted(last.step, 'step')} the model {has}: “{word}” begins **{after:.0%}** of answers"
        " to questions it"
        f" never saw{spreads}. It {lost}: its loss on plain text went from **{first.plain:.2f}** to"
        f" **{last.plain:.2f}** nats per token."
    )


def untaught(topic: Topic | Style, answers: Sequence[float]) -> str:
    """Returns the answer before anything is taught (Markdown)."""
    if isinstance(topic, Style):
        begins = drawn(topic, np.array([answers]).T)[-2, 0]
        return (
            f"The model begins **{begins:.1%}** of answers with “{safe(topic.answer.strip())}”. Guess how"
            f" much {len(topic.shown)} styled answers change that, then press *Fine-tune*."
        )
    new = safe(topic.answer.strip())
    says = f"The model does not know “{new}” yet (**{answers[0]:.1%}**)"
    if answers[0] >= 0.5:
        says = f"The model knows “{new}” already (**{answers[0]:.0%}**)"
    if not topic.known:
        return f"{says}: press *Fine-tune*."
    old, has = safe(topic.known[0].answer.strip()), answers[-1 - len(topic.known)]
    return f"{says}; “{old}” gets **{has:.0%}**. Guess what will happen to both, then press *Fine-tune*."


def trained(count: int, total: int) -> str:
    """Says how many numbers were trained."""
    return f"{count:,} parameters were trained; the model has {total:,} ({percent(count, total)})."


def single_run(seed: int) -> str:
    return f"One run, seed {seed}: another seed may end elsewhere."


def to_train(count: int, total: int, sentences: int, tokens: int) -> str:
    """Says how many numbers would be trained, and on what."""
    return (
        f"{count:,} parameters will be trained; the model has {total:,} ({percent(count, total)})."
        f" A step reads {counted(sentences, 'sentence')}; the loss spans {counted(tokens, 'token')}."
    )


def change(moved: MatrixChange, largest: MatrixChange, recipe: FinetuneRecipe) -> str:
    """Says how far a matrix moved, and what its change looks like (Markdown)."""
    rank = (
        f"By construction at most **{recipe.rank}** of its singular values are above zero."
        if recipe.rank
        else "Nothing limits its rank, yet a few singular values are much larger than the others."
    )
    which = "The matrix that moved most is" if moved.name == largest.name else "The matrix shown is"
    return (
        f"{which} `{moved.name}`: the Frobenius norm of its change is **{moved.share:.1%}** of the"
        f" matrix's own. {rank}"
    )


def lessons(topic: Topic | Style, rehearse: bool) -> str:
    """Lists the sentences that were read (Markdown)."""
    lines = [*topic.sentences, *(topic.rehearsed if rehearse else ())]
    return "**Read at every step**: " + " ".join(f"“{safe(line)}”" for line in lines)


def alt(topic: Topic | Style, looks: Sequence[FactEvaluation]) -> str:
    last = drawn(topic, np.array([looks[-1].answers]).T)[:, 0]
    ends = "; ".join(f"{name} {value:.0%}" for (name, _), value in zip(labels(topic), last, strict=True))
    return (
        f"Probability of each answer by step of fine-tuning. After {counted(looks[-1].step, 'step')}: {ends}."
    )


def singular_alt(moved: MatrixChange) -> str:
    return f"Singular values of the change: {', '.join(f'{value:.2g}' for value in moved.singular)}."


def not_held(size: int) -> str:
    """Says why a model whose weights have all changed cannot be opened; `size` in bytes."""
    return (
        f"All weights changed: this model would take {gigabytes(size)}, and a result may hold"
        f" {gigabytes(MOST_BYTES)}, so other pages cannot open it. One with LoRA can be opened on every page."
    )


def spread(topic: Topic | Style, count: int, step: int, values: np.ndarray) -> str:
    """Says at what the stored runs ended, from the values of each question (run, value) at a step."""
    lines = drawn(topic, values[:, : len(topic.questions)].T)
    names = [name for name, role in labels(topic) if role in ("new", "known", "leak")]
    ends = [
        row for row, (_, role) in zip(lines, labels(topic), strict=True) if role in ("new", "known", "leak")
    ]
    ranges = [f"{safe(name)} {between(row, '.0%')}" for name, row in list(zip(names, ends, strict=True))[:2]]
    if isinstance(topic, Style):
        ranges.append(f"loss on plain text {between(values[:, -1], '.2f')}")
    return f"Thin lines: {count} stored runs (seeds 0 to {count - 1}). At step {step}: {'; '.join(ranges)}."


def between(values: np.ndarray, form: str) -> str:
    """Returns the least and the largest of some numbers, once where they are written alike.

    >>> between(np.array([0.5, 0.25]), ".0%"), between(np.array([1.0, 1.001]), ".2f")
    ('25% to 50%', '1.00')
    """
    low, high = (format(float(value), form) for value in (values.min(), values.max()))
    return low if low == high else f"{low} to {high}"


# Another text -----------------------------------------------------------------------------------


def lacking(characters: str) -> str:
    """Says which characters of a text were left out."""
    few = " ".join(safe(repr(c)[1:-1]) for c in characters[:MOST_LACKING])
    more = f" and {len(characters) - MOST_LACKING} more" if len(characters) > MOST_LACKING else ""
    return f"Left out of the text, because the vocabulary lacks them: {few}{more}."


def text_labels(new: str, old: str) -> tuple[str, str]:
    """Returns the names of the two lines."""
    return f"new: {new}", f"old: {old}"


def text_to_train(count: int, total: int, windows: tuple[int, int], tokens: int, rehearse: bool) -> str:
    """Says how many numbers would be trained, and on what: `windows` (how many, how long) a step."""
    of = ", half of them from the old text" if rehearse else ""
    return (
        f"{count:,} parameters will be trained; the model has {total:,} ({percent(count, total)})."
        f" A step reads {counted(windows[0], 'window')} of {counted(windows[1], 'token')}{of}. The new"
        f" text has {tokens:,} to train"
        " on; the rest is held out."
    )


def text_untaught(new: str, old: str, look: TextEvaluation, steps: int) -> str:
    """Returns the answer before anything is taught (Markdown)."""
    return (
        f"The model predicts {old} with a loss of **{look.old:.2f}** nats per token, {new} with"
        f" **{look.new:.2f}**. Guess what {counted(steps, 'step')}"
        f" {'does' if steps == 1 else 'do'} to both, then press *Fine-tune*."
    )


def text_learned(new: str, old: str, looks: Sequence[TextEvaluation]) -> str:
    """Returns the answer: both losses before and after (Markdown)."""
    first, last = looks[0], looks[-1]
    rose = last.old - first.old
    became = f"forgot much of {old}" if rose > FORGETS_MUCH else f"forgot a little of {old}"
    if rose <= FORGETS:
        became = f"still knows {old}"
    says = f"{last.step} steps are not enough for {new}, and the model {became}"
    if first.new - last.new > FORGETS:
        says = f"The model learned {new} and {became}"
    return (
        f"{says}: after {counted(last.step, 'step')} the loss is **{last.new:.2f}** ({first.new:.2f}"
        " before) on the new"
        f" text and **{last.old:.2f}** ({first.old:.2f}) on the old (nats per token, on held-out parts)."
    )


def spread_of_losses(count: int, step: int, values: np.ndarray) -> str:
    """Says at what the stored runs ended, from the losses on the new text and the old (run, 2) at a step."""
    return (
        f"Thin lines: {count} stored runs (seeds 0 to {count - 1}). At step {step}: new"
        f" {between(values[:, 0], '.2f')}, old {between(values[:, 1], '.2f')}."
    )


def text_alt(names: Sequence[str], looks: Sequence[TextEvaluation]) -> str:
    last = looks[-1]
    return (
        f"Loss on held-out text by step of fine-tuning. After {counted(last.step, 'step')}: {names[0]}"
        f" {last.new:.2f},"
        f" {names[1]} {last.old:.2f} nats per token."
    )


def too_large(memory: int) -> str:
    return (
        f"Fine-tuning all weights of this model takes {gigabytes(memory)}, more than one visitor may use on"
        " this server. LoRA takes little more than the model itself."
    )


def text_lesson(title: str) -> str:
    """Returns the name of a lesson that is a text."""
    return f"Text: {title.removeprefix('the ')}"


def after(steps: int) -> str:
    return f"after {counted(steps, 'step')}"


def sample(prompt: str, when: str) -> str:
    """Returns the heading of what the model writes."""
    return f"“{safe(prompt.strip())} …”, {when}"


def written(texts: Mapping[str, tuple[str, str]], steps: int, taught: bool) -> str:
    """Returns a table of what the model writes after each prompt before and, once it is `taught`, after."""
    rows = [
        f"| {safe(prompt)} … | {safe(first.strip())} | {f'**{safe(then.strip())}**' if taught else '?'} |"
        for prompt, (first, then) in texts.items()
    ]
    return "\n".join([f"| {PROMPT} | {BEFORE} | {after(steps)} |", "|-|-|-|", *rows])
