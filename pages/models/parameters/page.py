"""Where the parameters, the floating-point operations and the memory of a model are."""

from engine.ledger import ledger, parameter_rows
from engine.ledger.block import gate_paid
from engine.ledger.flops import products
from engine.ledger.hand_count import terms
from engine.ledger.memory import activations, kv_numbers
from pages.models.parameters import answers, words
from pages.models.parameters.change import chosen_model
from pages.models.parameters.flops import draw_flops
from pages.models.parameters.memory import draw_memory
from pages.models.parameters.two import draw_two
from pages.models.parameters.where import draw_where
from ui.page_frame import Ask, Page, View, show

ASKS = {view: (Ask(question.format(answers.ANY)),) for view, question in answers.ASKS.items()}

show(
    Page(
        "Parameters",
        "parameters_view",
        (
            View(
                "where",
                "Breakdown",
                draw_where,
                words.WHERE,
                (parameter_rows, terms, gate_paid),
                False,
                question=answers.ask_where,
                asks=ASKS["where"],
            ),
            View(
                "two",
                "Compare",
                draw_two,
                words.TWO,
                (ledger, parameter_rows),
                False,
                question=answers.ask_two,
                asks=ASKS["two"],
            ),
            View(
                "flops",
                "FLOPs",
                draw_flops,
                words.FLOPS,
                (products,),
                False,
                question=answers.ask_flops,
                asks=ASKS["flops"],
            ),
            View(
                "memory",
                "Memory",
                draw_memory,
                words.MEMORY,
                (kv_numbers, activations),
                False,
                question=answers.ask_memory,
                asks=ASKS["memory"],
            ),
        ),
        bar=chosen_model,
    )
)
