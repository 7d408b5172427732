"""Train a tiny Transformer and watch it learn."""

from pages.start.train import train
from ui.page_frame import Page, show

PAGE = Page("Train", "", (train.VIEW,))

if __name__ == "__main__":
    show(PAGE, train.draw)
