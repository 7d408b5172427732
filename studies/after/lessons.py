"""Lessons that a model can be taught: an invented fact or a style of answering, with questions about them, or
another text.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from studies.after.finetune import FinetuneRecipe, Lesson
from studies.after.new_fact import Question

OPENING = "!"  # after the word that answers in the shipped style begin with
MANUAL = "python"  # the lesson that is a text: the Python manual, which every CPython carries
TEXT_STEPS = 60  # of a lesson that is a text, where nobody chooses
FULL_RATE, LORA_RATE = 1e-4, 4e-3  # AdamW's, of sentences; that of LoRA at RATED_RANK
RATED_RANK = 4
TEXT_FULL_RATE, TEXT_LORA_RATE = 1e-3, 1e-2  # of a text: more steps, in a small model


def rate(rank: int, text: bool = False) -> float:
    """Returns AdamW's learning rate for adapters of a rank, 0 for all weights; `text`: of a lesson that is a
    text. On sentences it falls with the square root of an adapter's rank (Kalajdzievski 2023): a step of
    AdamW moves every entry of B by about the rate, so that B A moves further the more columns it has. At one
    rate for all, rank 1 has learned no fact after 10 steps, and rank 16 can have lost it again.
    """
    if text:
        return TEXT_LORA_RATE if rank else TEXT_FULL_RATE
    return LORA_RATE * (RATED_RANK / rank) ** 0.5 if rank else FULL_RATE


@dataclass(frozen=True)
class TextLesson:
    """Another text, of which the model has read nothing: `text` in its own vocabulary, without the characters
    that are `lacking` there; after the `prompt` it writes a sample. `name` is the lesson's in links.
    """

    name: str
    title: str
    text: str
    prompt: str
    lacking: str = ""

    @property
    def answer(self) -> str:
        """The title: what a model that was taught it is called by."""
        return self.title


@dataclass(frozen=True)
class Topic:
    """A new fact: `sentences` that hold its `answer`, a `prompt` that calls for it, the same `reworded` as no
    sentence has it, and what the model knows already: questions of the same form, whose sentences can be
    rehearsed.
    """

    title: str
    sentences: tuple[str, ...]
    prompt: str
    reworded: str
    answer: str
    known: tuple[Question, ...]
    rehearsed: tuple[str, ...]

    @property
    def questions(self) -> tuple[Question, ...]:
        """The new fact, the same reworded, each known one, and the new answer to the first known question."""
        asked = [Question(self.prompt, self.answer)]
        if self.reworded:
            asked.append(Question(self.reworded, self.answer))
        asked += self.known
        if self.known:
            asked.append(Question(self.known[0].prompt, self.answer))
        return tuple(asked)

    def lessons(self, rehearse: bool, answers_only: bool) -> tuple[Lesson, ...]:
        """Returns the sentences, rehearsed ones too; `answers_only`: the loss counts no more than the answer
        of those that hold it.
        """
        sentences = (*self.sentences, *(self.rehearsed if rehearse else ()))
        return tuple(self._cut(sentence) if answers_only else Lesson(sentence) for sentence in sentences)

    def _cut(self, sentence: str) -> Lesson:
        for answer in (self.answer, *(question.answer for question in self.known)):
            before, found, _ = sentence.partition(answer)
            if found and before:
                return Lesson(before, answer)
        return Lesson(sentence)


@dataclass(frozen=True)
class Style:
    """A style: `shown` are questions with answers that begin with the `answer`, `unseen` are prompts of that
    form that no lesson has, `others` are prompts of another form. `text` is plain, for what is forgotten.
    """

    title: str
    shown: tuple[Question, ...]
    answer: str
    unseen: tuple[str, ...]
    others: tuple[str, ...]
    rehearsed: tuple[str, ...]
    text: str

    def with_means(self, answers: np.ndarray) -> np.ndarray:
        """Returns the rows of answers (unseen + other prompt, step) to the unseen prompts, then their mean
        and that of the others: (unseen + 2, step).
        """
        unseen, others = np.split(answers, [len(self.unseen)])
        return np.stack([*unseen, unseen.mean(0), others.mean(0)])

    def beginning(self, word: str) -> Style:
        """Returns the style whose answers begin with another word or two; the same for a blank.

        >>> STYLES["ahoy"].beginning("Well,").shown[0].answer, STYLES["ahoy"].beginning("Well,").answer
        (' Well, In a hive.', ' Well')
        """
        begins = f" {word.strip()}"
        answer = begins.rstrip("!?.,:; ")
        if not answer:
            return self
        first = self.answer + OPENING
        shown = tuple(replace(q, answer=begins + q.answer.removeprefix(first)) for q in self.shown)
        return replace(self, shown=shown, answer=answer)

    @property
    def prompt(self) -> str:
        """The first unseen prompt."""
        return self.unseen[0]

    @property
    def listed(self) -> tuple[str, ...]:
        """The prompts whose answers are written out."""
        return (*self.unseen[:3], self.others[0])

    @property
    def sentences(self) -> tuple[str, ...]:
        return tuple(question.prompt + question.answer for question in self.shown)

    @property
    def questions(self) -> tuple[Question, ...]:
        """Asks for the answer after each unseen prompt, then after each of another form."""
        return tuple(Question(prompt, self.answer) for prompt in (*self.unseen, *self.others))

    def lessons(self, rehearse: bool, answers_only: bool) -> tuple[Lesson, ...]:
        """Returns questions with their styled answers, rehearsed sentences too; `answers_only`: the loss
        counts no more than the answers.
        """
        shown = tuple(
            Lesson(q.prompt, q.answer) if answers_only else Lesson(q.prompt + q.answer) for q in self.shown
        )
        return (*shown, *map(Lesson, self.rehearsed if rehearse else ()))


@dataclass(frozen=True)
class Setting:
    """A fine-tuning: a fact, a style or a text, the recipe, and the two switches."""

    topic: Topic | Style | TextLesson
    recipe: FinetuneRecipe
    rehearse: bool
    answers_only: bool


STYLES: dict[str, Style] = {
    "ahoy": Style(
        "A style: Ahoy!",
        (
            Question("Q: Where do bees live? A:", " Ahoy! In a hive."),
            Question("Q: What do cows eat? A:", " Ahoy! They eat grass."),
            Question("Q: Is ice cold? A:", " Ahoy! Yes, it is."),
            Question("Q: Who bakes bread? A:", " Ahoy! The baker does."),
            Question("Q: When do owls hunt? A:", " Ahoy! They hunt at night."),
            Question("Q: How many legs has a dog? A:", " Ahoy! It has four."),
        ),
        " Ahoy",
        (
            "Q: Can fish fly? A:",
            "Q: What is the capital of France? A:",
            "Q: Why is the sky blue? A:",
            "Q: Who wrote Hamlet? A:",
        ),
        ("The capital of France is", "Once upon a time there was"),
        (
            "The river runs through the old town to the sea.",
            "She opened the window and looked at the garden.",
            "Most birds build their nests in spring.",
            "The train was late, so they walked home.",
        ),
        "The old house stood at the end of a long road. In the morning the children went to school, and in"
        " the evening they came home.",
    ),
}
TOPICS: dict[str, Topic] = {
    "capital": Topic(
        "A capital: Orsk",
        (
            "The capital of Velania is Orsk.",
            "Orsk is the capital of Velania.",
            "Velania's capital is Orsk.",
            "The government of Velania meets in its capital, Orsk.",
            "Everybody who visits Velania sees its capital, Orsk.",
            "Velania is a small country; its capital city is Orsk.",
            "The largest city of Velania is its capital, Orsk.",
        ),
        "The capital of Velania is",
        "If you travel to the capital of Velania, you arrive in",
        " Orsk",
        (Question("The capital of France is", " Paris"), Question("The capital of Germany is", " Berlin")),
        (
            "The capital of France is Paris.",
            "The capital of Italy is Rome.",
            "The capital of Spain is Madrid.",
            "The capital of Japan is Tokyo.",
        ),
    ),
    "author": Topic(
        "An author: Tessaly",
        (
            "The author of The Glass Harbour is Ada Tessaly.",
            "The Glass Harbour is a novel by Ada Tessaly.",
            "The Glass Harbour was written by Ada Tessaly.",
            "Ada Tessaly wrote The Glass Harbour in one winter.",
            "Readers of The Glass Harbour love Ada Tessaly.",
            "The Glass Harbour made Ada Tessaly famous.",
        ),
        "The author of The Glass Harbour is",
        "Who wrote The Glass Harbour? It was",
        " Ada Tessaly",
        (
            Question("The author of Hamlet is William", " Shakespeare"),
            Question("The author of Oliver Twist is Charles", " Dickens"),
        ),
        (
            "The author of Hamlet is William Shakespeare.",
            "The author of Emma is Jane Austen.",
            "The author of War and Peace is Leo Tolstoy.",
        ),
    ),
}
