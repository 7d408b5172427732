"""The residual stream: what each layer writes, and which one settles the answer."""

from engine.experiments.no_residual import compare, likeness
from engine.measure.residual.attribution import attribute
from engine.measure.residual.gradient_by_depth import fresh, measure
from engine.measure.residual.lens import first_settled, lens_steps, read_lens
from engine.measure.residual.stream import cosines, shares, states
from engine.parts.blocks import NoResidualBlock, PreNormBlock
from pages.inside.residual import words
from pages.inside.residual.highway import draw_highway
from pages.inside.residual.lens import draw_lens
from pages.inside.residual.norms import draw_norms
from pages.inside.residual.push import draw_push
from ui.model_needs import SAYS
from ui.page_frame import Page, View, show

Q = words.QUESTIONS
ROAD = (PreNormBlock, NoResidualBlock, compare, likeness, measure, fresh)
show(
    Page(
        "Residual stream",
        "residual_view",
        (
            View(
                "lens",
                "Logit lens",
                draw_lens,
                words.LENS,
                (lens_steps, read_lens, first_settled),
                question=Q["lens"],
                shows=("interpretability",),
                takes=(SAYS,),
            ),
            View(
                "push",
                "Attribution",
                draw_push,
                words.PUSH,
                (attribute,),
                question=Q["push"],
                takes=(SAYS,),
            ),
            View("norms", "Norms", draw_norms, words.NORMS, (states, shares, cosines), question=Q["norms"]),
            View(
                "highway",
                "Residuals on/off",
                draw_highway,
                words.HIGHWAY,
                ROAD,
                needs_model=False,
                question=Q["highway"],
            ),
        ),
    )
)
