"""The residual stream: what each layer writes, and which one settles the answer."""

from engine.measure.attribution import attribute
from engine.measure.highway import fresh, measure
from engine.measure.lens import first_settled, lens_steps, read_lens
from engine.measure.residual import cosines, shares, states
from pages.inside.residual import words
from pages.inside.residual.highway import draw_highway
from pages.inside.residual.lens import draw_lens
from pages.inside.residual.norms import draw_norms
from pages.inside.residual.push import draw_push
from ui.look import Page, View, show

show(
    Page(
        "The residual stream",
        "residual_view",
        (
            View("lens", "Logit lens", draw_lens, words.LENS, (lens_steps, read_lens, first_settled)),
            View("push", "Who pushed the logit", draw_push, words.PUSH, (attribute,)),
            View("norms", "Norms", draw_norms, words.NORMS, (states, shares, cosines)),
            View("highway", "The gradient highway", draw_highway, words.HIGHWAY, (measure, fresh)),
        ),
    )
)
