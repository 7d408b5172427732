"""The feed-forward networks: their neurons, their activation functions, dropout, and experts."""

from pages.inside.feedforward import activation_functions, dropout, experts, neurons
from ui.page_frame import Page, show

PAGE = Page(
    "Feed-forward", "feedforward_view", (neurons.VIEW, activation_functions.VIEW, dropout.VIEW, experts.VIEW)
)

if __name__ == "__main__":
    show(PAGE)
