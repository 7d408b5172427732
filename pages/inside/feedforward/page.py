"""The feed-forward networks: their neurons, their activation functions, their parameters."""

from engine.ledger import component_parameters, parameter_rows
from engine.measure.feedforward.activation_functions import curve
from engine.parts.feedforward import GatedFeedForward, gelu_tanh, relu2
from pages.inside.feedforward import words
from pages.inside.feedforward.functions import draw_functions
from pages.inside.feedforward.neurons import code_of_neurons, draw_neurons
from pages.inside.feedforward.parameters import draw_parameters
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
                "parameters",
                "Parameters",
                draw_parameters,
                words.PARAMETERS,
                (component_parameters, parameter_rows),
                needs_model=False,
                question=words.QUESTIONS["parameters"],
            ),
        ),
    )
)
