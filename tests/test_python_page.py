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


def test_the_examples_are_eight_and_short() -> None:
    assert len(EXAMPLES) == 8 == len(re.findall(r"^## \d\. ", PAGE, re.MULTILINE))
    written = [[line for line in example.splitlines() if line.strip()] for example in EXAMPLES]
    assert max(map(len, written)) <= LONGEST


def test_the_examples_run_one_after_the_other_outside_a_checkout(tmp_path: Path) -> None:
    """With the package alone on the path, as pip would have it; what the last lines show is checked."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "glassformer").symlink_to(ROOT / "glassformer")
    told = """
assert found.metrics["validation_loss"] < 2.9 and len(drawn) == 20
assert abs(without.logits - recording.logits).max() > 0 and sizes["blocks.0.attn_out"] > 0
from pathlib import Path
assert {"model.safetensors", "config.json", "tokenizer.json"} <= {path.name for path in Path("fox-hf").iterdir()}
"""
    environment = os.environ | {
        "PYTHONPATH": str(tmp_path / "site"),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
    }
    program = "\n".join(EXAMPLES) + told
    ended = subprocess.run(
        [sys.executable, "-"], input=program, cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
