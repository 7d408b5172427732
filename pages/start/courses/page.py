"""Courses: scenes in an order, on the pages themselves."""

from pages.start.courses import courses
from ui.page_frame import Page, show

PAGE = Page("Courses", "", (courses.VIEW,))

if __name__ == "__main__":
    show(PAGE)
