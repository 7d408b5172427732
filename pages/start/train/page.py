"""Train a tiny Transformer and watch it learn."""

from pages.start.train.desk import draw_desk
from ui.page_frame import boundary

with boundary():
    draw_desk()
