"""Tasks: problems whose answers can be checked and whose best possible loss is known."""

from pages.lab.tasks import digit_order, solved, source_heads
from ui.page_frame import Page, show

PAGE = Page("Tasks", "tasks_view", (solved.VIEW, source_heads.VIEW, digit_order.VIEW))

if __name__ == "__main__":
    show(PAGE)
