"""Glassformer as an installed package: the command `glassformer`, and the library: `glassformer.engine`,
`glassformer.studies` and `glassformer.runs`, and views of the app as files (`glassformer.save_view`).

In a wheel, these and the app lie in glassformer/_app, where no name of theirs clashes with another package's;
in a checkout they lie beside this folder. `glassformer.engine` is an alias of `engine`, whose modules import
each other by that name: none of them is loaded twice. After it `import engine` and `import studies` give the
same modules. `app`, `pages` and `ui` stay out of reach: a notebook may have modules of these names.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType

from glassformer.saving import SavedView as SavedView
from glassformer.saving import save_view as save_view
from glassformer.saving import show_view as show_view

__version__ = "1.0.0"

_HERE = Path(__file__).resolve().parent
ROOT = _HERE / "_app" if (_HERE / "_app").is_dir() else _HERE.parent
LIBRARY = ("engine", "studies", "runs")
_ALIASES = tuple(f"{__name__}.{name}" for name in LIBRARY)


class _LibraryFinder(MetaPathFinder, Loader):
    """Finds glassformer.engine and all below it, the modules of `engine`, and the like; from then on `engine`
    and the others, too.
    """

    wanted = False  # until something below an alias is imported, `engine` is whatever Python finds

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name in LIBRARY and self.wanted:
            return PathFinder.find_spec(name, [str(ROOT)])
        alias = any(name == one or name.startswith(f"{one}.") for one in _ALIASES)
        return spec_from_loader(name, self) if alias else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        self._check()
        self.wanted = True
        module = importlib.import_module(spec.name.removeprefix(f"{__name__}."))
        importlib.import_module("studies")  # with what that adds to the engine: tasks, faults, a fast path
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Gives the module its own specification back: the import system has put the alias's in its place."""
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state

    @staticmethod
    def _check() -> None:
        for name in LIBRARY:
            other = sys.modules.get(name)
            if other is not None and ROOT / name not in map(Path, getattr(other, "__path__", ())):
                raise ImportError(
                    f"another package called {name} is loaded already ({getattr(other, '__file__', other)}):"
                    f" import glassformer.{name} before it, or in another process"
                )


sys.meta_path.insert(0, _LibraryFinder())
