"""Train a tiny Transformer and watch it learn."""

from pages.start.train import train
from ui.page_frame import Page, show

show(Page("Train", "", (train.VIEW,)), train.draw)
