"""Exercises: worked out by hand, checked with a hint, printed on a sheet."""

from pages.learn.exercises import before_after, notebooks, practise
from ui.page_frame import Page, show

PAGE = Page("Exercises", "exercises_view", (practise.VIEW, notebooks.VIEW, before_after.VIEW))

if __name__ == "__main__":
    show(PAGE)
