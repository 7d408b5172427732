"""Files that the browser fetches by itself: the modules and styles of ui/assets and Plotly's library, put
where Streamlit serves them.

Their addresses hold a hash of what they hold, so that a new version is another address, and a browser may
keep an old one for as long as it likes. All modules share one folder, and so one hash: they import each other
by name.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import plotly

ASSETS = Path(__file__).parents[1] / "assets"
STATIC = Path(__file__).parents[2] / "static"  # Streamlit serves it as app/static/
KEPT_SECONDS = (
    24 * 3600
)  # what an older version of the app has put there is kept for pages that are still open
LONG_AGO = 0  # seconds since 1970: browsers keep a file for a tenth of its age without asking again
_OURS = re.compile(r"assets-[0-9a-f]{12}|plotly-[0-9a-f]{12}\.min\.js|plotly\.min\.js")


@cache
def modules() -> str:
    """Returns the folder of the modules and styles below static/, such as assets-0123456789ab."""
    found = hashlib.sha256()
    for path in _assets():
        found.update(f"{path.relative_to(ASSETS).as_posix()}\n{path.stat().st_size}\n".encode())
        found.update(path.read_bytes())
    return f"assets-{found.hexdigest()[:12]}"


@cache
def library() -> str:
    """Returns the name of Plotly's library below static/, such as plotly-0123456789ab.min.js."""
    return f"plotly-{hashlib.sha256(_plotly().read_bytes()).hexdigest()[:12]}.min.js"


@cache
def _wanted() -> Mapping[str, tuple[Path, int]]:
    """Returns the files below static/: name -> source and size."""
    sources = {f"{modules()}/{path.relative_to(ASSETS).as_posix()}": path for path in _assets()}
    sources[library()] = _plotly()
    return {name: (path, path.stat().st_size) for name, path in sources.items()}


def _assets() -> list[Path]:
    return sorted(path for path in ASSETS.rglob("*") if path.suffix in (".js", ".css"))


def _plotly() -> Path:
    return Path(plotly.__file__).parent / "package_data" / "plotly.min.js"


def ensure_static(folder: Path = STATIC) -> str | None:
    """Puts there what is missing or has another size, each file at once and whole, so that two servers may do
    it at the same time; takes away what an older version left more than a day ago.

    Copies are made beside the folder and moved into it: a server that begins adds up what lies in it
    (Streamlit does, and ends when a file that it has seen is gone).

    Returns None when all is there, else a sentence that says why it could not be put there.
    """
    missing = {name: source for name, (source, size) in _wanted().items() if _size(folder / name) != size}
    if not missing:
        return None
    try:
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as beside:
            for name, source in missing.items():
                _put(source, folder / name, Path(beside))
    except OSError as error:
        return (
            f"Figures cannot be drawn: what draws them could not be copied into {folder.name}/"
            f" ({error.strerror}). Make that folder writable for the server, and restart it."
        )
    _sweep(folder)
    return None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


def _put(source: Path, target: Path, beside: Path) -> None:
    """A copy that is there as a whole or not at all, whoever else writes it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = beside / target.name
    shutil.copyfile(source, temporary)
    temporary.chmod(0o644)
    os.utime(temporary, (LONG_AGO, LONG_AGO))
    temporary.replace(target)


def _sweep(folder: Path) -> None:
    """Nobody waits for this, and what cannot be removed does no harm."""
    current = {modules(), library()}
    for path in folder.iterdir():
        try:
            old = path.lstat().st_ctime < time.time() - KEPT_SECONDS
        except OSError:  # another server was quicker
            continue
        if old and path.name not in current and _OURS.fullmatch(path.name):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
