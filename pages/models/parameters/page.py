"""Where the parameters, the floating-point operations and the memory of a model are."""

from engine.ledger import ledger, parameter_rows
from engine.ledger.block import gate_paid
from engine.ledger.flops import products
from engine.ledger.hand_count import terms
from engine.ledger.memory import activations, kv_numbers
from pages.models.parameters import answers, words
from pages.models.parameters.block import draw_block
from pages.models.parameters.change import chosen_model
from pages.models.parameters.flops import draw_flops
from pages.models.parameters.memory import draw_memory
from pages.models.parameters.two import draw_two
from pages.models.parameters.where import draw_where
from ui.page_frame import Ask, Page, View, show
from ui.view_parts import Part, view_of_parts

BREAKDOWN = {
    "whole": Part(
        "The whole model",
        draw_where,
        words.WHERE,
        (parameter_rows, terms),
        answers.question("where"),
        answers.listed("where"),
    ),
    "block": Part("One block", draw_block, words.BLOCK, (gate_paid,), answers.BLOCK_ASKED),
    "two": Part("Beside another model", draw_two, words.TWO, (ledger, parameter_rows), answers.TWO_ASKED),
}

show(
    Page(
        "Parameters",
        "parameters_view",
        (
            view_of_parts("where", "Breakdown", "parameters_scope", BREAKDOWN),
            View(
                "flops",
                "FLOPs",
                draw_flops,
                words.FLOPS,
                (products,),
                False,
                question=answers.question("flops"),
                asks=(Ask(answers.listed("flops")),),
            ),
            View(
                "memory",
                "Memory",
                draw_memory,
                words.MEMORY,
                (kv_numbers, activations),
                False,
                question=answers.question("memory"),
                asks=(Ask(answers.listed("memory")),),
            ),
        ),
        bar=chosen_model,
    )
)
