"""The feed-forward networks: their neurons, their activation functions, and dropout."""

from pages.inside.feedforward import activation_functions, dropout, neurons
from ui.page_frame import Page, show

PAGE = Page("Feed-forward", "feedforward_view", (neurons.VIEW, activation_functions.VIEW, dropout.VIEW))

if __name__ == "__main__":
    show(PAGE)
