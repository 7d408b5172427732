"""The feed-forward networks: their neurons and their activation functions."""

from engine.measure.feedforward.activation_functions import curve
from engine.parts.feedforward import GatedFeedForward, gelu_tanh, relu2
from pages.inside.feedforward import words
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
        ),
    )
)
