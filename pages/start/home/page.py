"""Home: a model that runs, and published ones as drawings."""

from pages.start.home import first_course, published_models, running_model
from ui import session
from ui.page_frame import Page, View, boundary, choose_view, header, note_visit, question_line, show

PAGE = Page("A Transformer, with the lid off", "home_view", (running_model.VIEW, published_models.VIEW))


def draw_page() -> None:
    """Draws the frame of all pages, with the first course beside the views, and a family in the bar."""
    session.drop_endless()
    view = header(PAGE.title, _line)
    note_visit(PAGE, view)
    with question_line() as question:
        about = (running_model.choose(),) if view.needs_model else ()
    view.ask(question, *about)
    with boundary():
        view.draw(*about)
    view.tell(*about)


def _line() -> View:
    view = choose_view(PAGE.views, PAGE.key)
    first_course.draw()
    return view


show(PAGE, draw_page)
