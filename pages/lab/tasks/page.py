"""Tasks: problems whose answers can be checked and whose best possible loss is known."""

from engine.data.tasks.lines import adding, remainders
from engine.measure.tasks.task_heads import looking, solved_without
from engine.measure.tasks.task_scores import by_carries, out_of_turn
from engine.presets.task_recipes import task_recipe
from engine.sample.problems import answered
from pages.lab.tasks import words
from pages.lab.tasks.grokking import draw_grokking
from pages.lab.tasks.heads import draw_heads
from pages.lab.tasks.order import draw_order
from pages.lab.tasks.solve import draw_solve
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
                words.SOLVE,
                (answered, task_recipe),
                needs_model=False,
                question=words.SOLVE_QUESTION,
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
            View(
                "grokking",
                "Grokking",
                draw_grokking,
                words.GROKKING,
                (remainders,),
                needs_model=False,
                question=words.GROKKING_QUESTION,
            ),
        ),
    )
)
