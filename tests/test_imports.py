"""The direction of imports (docs/architecture.md): down only, no screen in the engine, no page in another."""

import ast
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

from tests import source
from tests.source import ENGINE, EVERYTHING, ROOT, SCREEN

# Lowest first. A module may import from its own layer and from those below it; of two names that fit, the longer counts.
LAYERS = [
    line.split()
    for line in """\
engine.errors engine.secret
engine.config engine.lifeline engine.machine engine.probe engine.progress engine.seq2seq_config
engine.tokenizers engine.presets engine.numerics engine.weights engine.training.records
engine.tasks
engine.corpora engine.paired engine.paired_data engine.parts
engine.faults
engine.model engine.seq2seq engine.classifier
engine.reader
engine.checkpoints engine.checkpoints_paired engine.ledger engine.sample engine.pretrained
engine.measure
engine.reference engine.export
engine.training
engine.doctor engine.exercises
engine.service engine.pretrain
engine.guesses
ui.text ui.site ui.layout ui.figures ui.identity ui.guard ui.uploads ui.bounded
ui.fields ui.reading
ui.state ui.explain ui.players ui.widgets ui.step ui.slow ui.here ui.stage.address
ui.controls ui.status ui.terms ui.stage ui.tour ui.operate
ui.fetching ui.guess
ui.families
ui.models ui.timeline
ui.subject
ui.race ui.race_desk ui.race_words ui.trained
ui.look ui.course ui.server
pages
app
""".splitlines()
]
LAYER = {name: level for level, names in enumerate(LAYERS) for name in names}
FOREIGN = {"streamlit", "plotly"}
UNSAFE = {"pickle", "shelve", "marshal", "dill", "joblib"}


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path) for path in EVERYTHING}


@cache
def imports(path: Path) -> frozenset[str]:
    """Every module that a file imports anywhere, at the top or inside a function; ours by their full names."""
    found: set[str] = set()
    for node in source.nodes(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative imports hide the direction"
            assert node.module is not None
            inside = {f"{node.module}.{alias.name}" for alias in node.names} & MODULES
            found |= inside or {node.module}
    return frozenset(found)


def line_of(path: Path, module: str) -> str:
    """`file:line` of the first import that names a module."""
    for node in source.nodes(path):
        if isinstance(node, ast.Import):
            names = {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names = {str(node.module)} | {f"{node.module}.{alias.name}" for alias in node.names}
        else:
            continue
        if any(f"{name}.".startswith(f"{module}.") for name in names):
            return f"{source.name(path)}:{node.lineno}"
    return source.name(path)


def layer_of(module: str) -> int:
    """Of the longest name in LAYERS that the module lies in."""
    parts = module.split(".")
    for end in range(len(parts), 0, -1):
        if (name := ".".join(parts[:end])) in LAYER:
            return LAYER[name]
    raise AssertionError(f"{module} has no layer: give it one in this test")


def ours(names: frozenset[str]) -> set[str]:
    return {name for name in names if name.partition(".")[0] in {"engine", "ui", "pages", "app"}}


def test_engine_imports_no_screen_and_nothing_that_unpickles() -> None:
    forbidden = FOREIGN | {"ui", "pages", "app", "tests", "benchmarks"}
    wrong = []
    for path in ENGINE:
        # Servers of one house, which share a secret, may pickle. Checkpoints never are.
        unsafe = set() if source.name(path) == "engine/service/shared.py" else UNSAFE
        tops = {name.partition(".")[0] for name in imports(path)}
        wrong += [f"{line_of(path, top)} imports {top}" for top in sorted(tops & (forbidden | unsafe))]
        wrong += [
            f"{source.name(path)}: {bad}" for bad in ("torch.load", "torch.save") if bad in source.text(path)
        ]
    assert not wrong, "\n".join(wrong)


def test_imports_go_down_only() -> None:
    wrong = []
    for path in EVERYTHING:
        own = module_of(path)
        level = (
            -1 if own in ("engine", "ui") else layer_of(own)
        )  # the packages themselves import nothing of ours
        above = (name for name in sorted(ours(imports(path))) if layer_of(name) > level)
        wrong += [f"{line_of(path, name)}: {own} imports {name}, which lies above it" for name in above]
    assert not wrong, "\n".join(wrong)


def test_no_page_imports_from_another() -> None:
    wrong = []
    for path in source.files("pages"):
        own = room(module_of(path))
        for name in sorted(ours(imports(path))):
            if name.startswith("pages.") and room(name) != own:
                wrong.append(f"{line_of(path, name)} imports {name}: what both pages need belongs to ui/")
    assert not wrong, "\n".join(wrong)


def room(module: str) -> str:
    """The page that a module of pages/ belongs to.

    >>> room("pages.inside.attention.heads")
    'inside.attention'
    """
    return ".".join(module.split(".")[1:3])


def rooms_of(module: str, users: dict[str, set[str]], seen: frozenset[str] = frozenset()) -> set[str]:
    """The rooms that use a module, themselves or through other modules of ui/; the app counts as one."""
    found: set[str] = set()
    for user in users[module] - seen:
        if user == "app":
            found.add("app")
        elif user.startswith("pages."):
            found.add(room(user))
        else:
            found |= rooms_of(user, users, seen | {module})
    return found


def test_modules_of_ui_are_used_by_several_pages() -> None:
    wrong = {}
    for module in sorted(name for name in MODULES if name.startswith("ui.")):
        rooms = rooms_of(module, users())
        if not (ROOT / Path(*module.split("."))).is_dir() and "app" not in rooms and len(rooms) < 2:
            wrong[module] = rooms
    assert not wrong, "\n".join(f"{module} belongs to {rooms}" for module, rooms in wrong.items())


@cache
def users() -> dict[str, set[str]]:
    """Module -> the modules of the screen that import it."""
    found: dict[str, set[str]] = {name: set() for name in MODULES}
    for path in SCREEN:
        for name in imports(path) & MODULES:
            found[name].add(module_of(path))
    return found


def test_every_layer_exists() -> None:
    """A name in LAYERS that nothing is called would let a misplaced module pass."""
    for name in LAYER:
        assert any(module == name or module.startswith(name + ".") for module in MODULES), name


def test_no_cycle() -> None:
    """Modules that import each other cannot be read one after the other."""
    graph = {module_of(path): {n for n in imports(path) & MODULES} for path in EVERYTHING}
    done: set[str] = set()

    def visit(module: str, road: tuple[str, ...]) -> None:
        assert module not in road, f"a cycle: {' -> '.join(road[road.index(module) :])} -> {module}"
        if module not in done:
            for below in sorted(graph[module]):
                visit(below, (*road, module))
            done.add(module)

    for module in sorted(graph):
        visit(module, ())


def test_configs_need_no_torch() -> None:
    """A page can offer its controls before torch has been imported."""
    script = "import engine.config, engine.presets, engine.errors, sys; sys.exit('torch' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=environment, check=False)
    assert done.returncode == 0
