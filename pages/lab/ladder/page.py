"""The ladder: from a bigram model to a Transformer, one idea a rung."""

from engine.experiments import scaling
from engine.experiments.ladder import train_rung
from engine.measure.isoflop import power_law, valley
from pages.lab.ladder import bigrams, race, rungs, words_lecture, words_scaling
from pages.lab.ladder.replication import draw_lecture
from pages.lab.ladder.scaling_laws import draw_scaling
from ui.page_frame import Page, View, show

show(
    Page(
        "Ladder",
        "ladder_view",
        (
            rungs.VIEW,
            race.VIEW,
            bigrams.VIEW,
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
