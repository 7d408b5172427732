"""docs/python.md: its examples run as they stand, from outside a checkout, and each is short."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.source import ROOT

PAGE = (ROOT / "docs" / "python.md").read_text("utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
LONGEST = 8  # lines of an example, without the blank ones that the formatter puts around a function


def test_the_examples_are_nine_and_short() -> None:
    assert len(EXAMPLES) == 9 == len(re.findall(r"^## \d\. ", PAGE, re.MULTILINE))
    written = [[line for line in example.splitlines() if line.strip()] for example in EXAMPLES]
    assert max(map(len, written)) <= LONGEST


def run_outside(folder: Path, program: str) -> None:
    """Runs a program with the package alone on the path, as pip would have it."""
    (folder / "site").mkdir()
    (folder / "site" / "glassformer").symlink_to(ROOT / "glassformer")
    environment = os.environ | {
        "PYTHONPATH": str(folder / "site"),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
    }
    ended = subprocess.run(
        [sys.executable, "-"], input=program, cwd=folder, env=environment, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr[-3000:]


def test_the_examples_run_one_after_the_other_outside_a_checkout(tmp_path: Path) -> None:
    """What the last lines show is checked."""
    told = """
assert found.metrics["validation_loss"] < 2.9 and len(drawn) == 20
assert abs(without.logits - recording.logits).max() > 0 and sizes["blocks.0.attn_out"] > 0
from pathlib import Path
assert {"model.safetensors", "config.json", "tokenizer.json"} <= {path.name for path in Path("fox-hf").iterdir()}
"""
    run_outside(tmp_path, "\n".join(EXAMPLES[:-1]) + told)


def test_a_view_is_saved_and_shown_from_outside_a_checkout(tmp_path: Path) -> None:
    """The last example stands alone, and this process stays as light as it was."""
    told = """
import sys
from pathlib import Path
assert "gf-saved" in Path("heads.html").read_text("utf-8")
try:
    glassformer.show_view("nowhere")
except ValueError as error:
    assert "no view has the address" in str(error) and "\\n" not in str(error)
else:
    raise AssertionError
shown = glassformer.SavedView("<p>&</p>", 300)._repr_html_()
assert 'srcdoc="&lt;p&gt;&amp;&lt;/p&gt;"' in shown and "height: 300px" in shown
assert not {"engine", "torch", "streamlit", "ui"} & sys.modules.keys()
"""
    run_outside(tmp_path, EXAMPLES[-1] + told)
