"""Tasks: problems whose answers can be checked and whose best possible loss is known."""

from engine.data.tasks.lines import adding
from engine.measure.tasks.task_heads import looking, solved_without
from engine.measure.tasks.task_scores import by_carries, out_of_turn
from pages.lab.tasks import words
from pages.lab.tasks.heads import draw_heads
from pages.lab.tasks.order import draw_order
from pages.lab.tasks.solve import ASKS, current_ask, draw_solve, sources
from ui.page_frame import Page, View, show

show(
    Page(
        "Tasks",
        "tasks_view",
        (
            View(
                "solve",
                "Solved",
                draw_solve,
                lambda: current_ask().words,
                sources,
                needs_model=False,
                question=lambda: current_ask().question,
                asks=ASKS,
                shows=("grokking", "generalisation", "memorisation"),
            ),
            View(
                "heads",
                "Source heads",
                draw_heads,
                words.HEADS,
                (looking, solved_without, out_of_turn),
                needs_model=False,
                question=words.HEADS_QUESTION,
            ),
            View(
                "order",
                "Digit order",
                draw_order,
                words.ORDER,
                (adding, by_carries),
                needs_model=False,
                question=words.ORDER_QUESTION,
            ),
        ),
    )
)
