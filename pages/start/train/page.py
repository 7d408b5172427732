"""Train a tiny Transformer and watch it learn."""

from pages.start.train import words, words_heads
from pages.start.train.desk import draw_desk
from ui.page_frame import Ask, Page, View, boundary, show


def draw_page() -> None:
    with boundary():
        draw_desk()


VIEW = View(
    "train",
    "Train",
    draw_desk,
    needs_model=False,
    question=words.QUESTION,
    asks=(Ask(words.QUESTION), Ask(words_heads.QUESTION, query=(("preset", "induction"),))),
    shows=(
        "train a model",
        "my own model",
        "loss curve",
        "perplexity",
        "baselines",
        "learning rate",
        "training",
        "overfitting",
    ),
)
show(Page("Train", "", (VIEW,)), draw_page)
