"""The feed-forward networks: their neurons, their activation functions, and dropout."""

from engine.measure.feedforward.activation_functions import curve
from engine.measure.feedforward.dropout import Dropper, drop_sum, passes
from engine.parts.feedforward import GatedFeedForward, gelu_tanh, relu2
from pages.inside.feedforward import words, words_dropout
from pages.inside.feedforward.dropout import draw_dropout
from pages.inside.feedforward.functions import draw_functions
from pages.inside.feedforward.neurons import code_of_neurons, draw_neurons
from ui.model_needs import FEEDFORWARD, SAYS
from ui.page_frame import Page, View, show

show(
    Page(
        "Feed-forward",
        "feedforward_view",
        (
            View(
                "neurons",
                "Neurons",
                draw_neurons,
                words.NEURONS,
                code_of_neurons,
                question=words.QUESTIONS["neurons"],
                takes=(SAYS, FEEDFORWARD),
            ),
            View(
                "functions",
                "Activation functions",
                draw_functions,
                words.FUNCTIONS,
                (relu2, gelu_tanh, GatedFeedForward, curve),
                question=words.QUESTIONS["functions"],
            ),
            View(
                "dropout",
                "Dropout",
                draw_dropout,
                words_dropout.WORDS,
                (drop_sum, Dropper, passes),
                question=words_dropout.ASK,
                takes=(SAYS, FEEDFORWARD),
            ),
        ),
    )
)
