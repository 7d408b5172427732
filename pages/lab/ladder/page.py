"""The ladder: from a bigram model to a Transformer, one idea a rung."""

from engine.experiments import scaling
from engine.experiments.ladder import train_rung
from engine.measure.isoflop import power_law, valley
from engine.measure.tasks.text_statistics import counted, expected
from engine.presets.ladder import Rung
from engine.training.race import race
from pages.lab.ladder import words, words_bigrams, words_lecture, words_scaling
from pages.lab.ladder.bigrams import draw_pairs
from pages.lab.ladder.ideas import draw_ideas
from pages.lab.ladder.lecture import draw_lecture
from pages.lab.ladder.race import draw_race
from pages.lab.ladder.scaling import draw_scaling
from ui.page_frame import Page, View, show

show(
    Page(
        "Ladder",
        "ladder_view",
        (
            View("ideas", "Rungs", draw_ideas, words.IDEAS, (Rung,), False, question=words.ASK_IDEAS),
            View("race", "Race", draw_race, words.RACE, (race,), False, question=words.ASK_RACE),
            View(
                "pairs",
                "Bigrams",
                draw_pairs,
                words_bigrams.WORDS,
                (counted, expected),
                False,
                question=words_bigrams.ASK,
            ),
            View(
                "lecture",
                "Replication",
                draw_lecture,
                words_lecture.WORDS,
                (train_rung,),
                False,
                question=words_lecture.ASK,
            ),
            View(
                "scaling",
                "Scaling laws",
                draw_scaling,
                words_scaling.SCALING,
                (scaling.measure, valley, power_law),
                False,
                question=words_scaling.QUESTION,
            ),
        ),
    )
)
