"""Views of the app from Python, as files or in a notebook: each is drawn in a process of its own."""

from __future__ import annotations

import html
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
FRAME = (
    '<iframe srcdoc="{page}" title="A view of Glassformer"'
    ' sandbox="allow-scripts allow-downloads allow-popups allow-popups-to-escape-sandbox" loading="lazy"'
    ' style="width: 100%; height: {height}px; border: 0"></iframe>'
)


@dataclass(frozen=True)
class SavedView:
    """A view as one HTML page, which needs no server; a notebook shows it, `height` pixels high."""

    page: str
    height: int = 900

    def __repr__(self) -> str:
        """Returns its size in place of its text."""
        return f"SavedView({len(self.page.encode()):,} bytes)"

    def _repr_html_(self) -> str:
        return FRAME.format(page=html.escape(self.page), height=self.height)


def save_view(address: str, file: str | os.PathLike[str]) -> Path:
    """Saves the view at an address of the app, such as attention?attention_view=heads, as the button *HTML*
    does. Returns the file. Raises ValueError, in a sentence, for an address at which no figure is.
    """
    paths = [str(HERE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    command = [sys.executable, "-P", "-m", "glassformer", "save", address, os.fspath(file)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace")
    if done.returncode:
        raise ValueError((done.stderr.strip().splitlines() or ["the view could not be drawn"])[-1])
    return Path(file)


def show_view(address: str, height: int = 900) -> SavedView:
    """Returns the view at an address, for a notebook. Raises ValueError as `save_view` does."""
    with tempfile.TemporaryDirectory() as folder:
        return SavedView(save_view(address, Path(folder) / "view.html").read_text("utf-8"), height)
