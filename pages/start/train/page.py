"""Train a tiny Transformer and watch it learn."""

from pages.start.train.desk import draw_desk
from ui.look import boundary

with boundary():
    draw_desk()
