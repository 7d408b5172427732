"""Courses: scenes in an order, on the pages themselves."""

from pages.start.courses import courses
from ui.page_frame import Page, show

show(Page("Courses", "", (courses.VIEW,)))
