"""The direction of imports (DESIGN.md): down only, and no screen in the engine."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ENGINE = sorted((ROOT / "engine").rglob("*.py"))

# Lower layers come first. A module may import from its own layer or from one below it.
LAYERS = [
    {"errors"},
    {"config", "probe"},
    {"records", "presets", "tokenizers"},
    {"parts", "corpora", "tasks"},
    {"faults"},
    {"model", "seq2seq"},
    {"ledger", "numerics", "sample", "measure", "optim", "checkpoints", "reference", "train"},
    {
        "profiles",
        "history",
        "protocol",
        "snapshots",
        "processes",
        "run_state",
        "scheduler",
        "worker",
        "runs",
        "pretrain",
    },
]
LAYER = {name: level for level, names in enumerate(LAYERS) for name in names}


def _imports(path: Path) -> list[str]:
    """Every module that a file imports anywhere, at the top or inside a function."""
    found = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide the direction"
            found.append(str(node.module))
            found += [f"{node.module}.{alias.name}" for alias in node.names if node.module == "engine"]
    return found


@pytest.mark.parametrize("path", ENGINE, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_engine_has_no_screen(path: Path) -> None:
    for name in _imports(path):
        assert name.partition(".")[0] not in {
            "streamlit",
            "plotly",
            "ui",
            "pages",
            "app",
            "tests",
            "benchmarks",
        }, f"{path} imports {name}"
        assert name.partition(".")[0] not in {
            "pickle",
            "shelve",
            "marshal",
            "dill",
            "joblib",
        }, f"{path} imports {name}: checkpoints are never pickled"


@pytest.mark.parametrize("path", ENGINE, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_down_only(path: Path) -> None:
    own = path.relative_to(ROOT / "engine").with_suffix("").parts[0]
    if own == "__init__":
        assert not [name for name in _imports(path) if name.startswith("engine")]
        return
    assert own in LAYER, f"engine/{own} has no layer: give it one in this test"
    for name in _imports(path):
        parts = name.split(".")
        if parts[0] == "engine" and len(parts) > 1:
            assert LAYER.get(parts[1], 99) <= LAYER[own], f"{path} imports {name}, which lies above it"


@pytest.mark.parametrize(
    "path", sorted((ROOT / "ui").rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT))
)
def test_ui_imports_no_pages(path: Path) -> None:
    assert not {name.partition(".")[0] for name in _imports(path)} & {"pages", "app", "tests"}


def test_configs_need_no_torch() -> None:
    """A page can offer its controls before torch has been imported."""
    script = "import engine.config, engine.presets, engine.errors, sys; sys.exit('torch' in sys.modules)"
    assert (
        subprocess.run(
            [sys.executable, "-c", script], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False
        ).returncode
        == 0
    )


def test_no_pickle_in_the_engine() -> None:
    for path in ENGINE:
        source = path.read_text("utf-8")
        assert "torch.load" not in source and "torch.save" not in source, path
