"""Home: a model that runs, and published ones as drawings."""

from pages.start.home import first_course, published_models, running_model
from ui.page_frame import Page, show

PAGE = Page(
    "A Transformer, with the lid off",
    "home_view",
    (running_model.VIEW, published_models.VIEW),
    beside=first_course.draw,
)

if __name__ == "__main__":
    show(PAGE)
