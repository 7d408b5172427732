"""The notebooks: as their sources say, solved by their solutions, and not by their stubs."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from studies.exercises.notebooks import FIRST, FOLDER, NAMES, cells, notebook, source_of
from tests.engine.cases import for_each


def program(source: str, solved: bool) -> str:
    """A whole notebook as one program, with the solution in the place of its stubs or with these."""
    parts = cells(source)
    solution = next(cell.source for cell in parts if cell.kind == "solution")
    code = [cell for cell in parts if cell.kind in ("", "stub", "check")]
    return "\n\n".join(solution if cell.kind == "stub" and solved else cell.source for cell in code)


def fault_of(text: str) -> Exception | None:
    state = torch.get_rng_state()
    try:
        exec(compile(text, "notebook", "exec"), {"__name__": "notebook"})
    except Exception as error:
        return error
    finally:
        torch.set_rng_state(state)
    return None


def test_every_source_is_a_notebook_and_the_other_way_round() -> None:
    notebooks, sources = FOLDER.glob("*.ipynb"), FOLDER.glob("sources/*.md")
    assert {path.stem for path in notebooks} == {path.stem for path in sources} == set(NAMES)


@for_each("name", NAMES)
def test_a_notebook_is_up_to_date_and_can_be_read(name: str) -> None:
    """If not: python -m studies.exercises.notebooks."""
    assert (FOLDER / f"{name}.ipynb").read_text("utf-8") == notebook(name)
    made = json.loads(notebook(name))
    assert (made["nbformat"], made["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in made["cells"]]
    assert len(ids) == len(set(ids)) and all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", one) for one in ids)
    folded = [cell for cell in made["cells"] if cell["metadata"].get("jupyter")]
    assert [made["cells"][-1]] == folded and "NotImplementedError" not in "".join(folded[0]["source"])
    text = "".join("".join(cell["source"]) for cell in made["cells"])
    assert all(cell.source in text for cell in cells(source_of(name)))


@for_each("name", NAMES)
def test_every_check_says_what_is_wrong(name: str) -> None:
    checks = [ast.parse(cell.source) for cell in cells(source_of(name)) if cell.kind == "check"]
    asserts = [node for check in checks for node in ast.walk(check) if isinstance(node, ast.Assert)]
    assert asserts and not [ast.unparse(node.test) for node in asserts if node.msg is None]


def engine_of(folder: Path, *path: Path) -> Path:
    """The engine that a notebook in `folder` gets from its first cell, with the packages of `path` installed."""
    code = (
        FIRST.replace('PACKAGE = ""', 'PACKAGE = "glassformer"') + "\nimport engine; print(engine.__file__)"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, path))}
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return Path(ended.stdout.strip()).resolve().parent


def test_the_first_cell_takes_the_checkout_that_it_lies_in() -> None:
    assert engine_of(FOLDER / "sources") == FOLDER.parent / "engine"


def test_the_first_cell_takes_the_installed_package(tmp_path: Path) -> None:
    (installed := tmp_path / "installed").mkdir()
    (installed / "glassformer").symlink_to(FOLDER.parent / "glassformer")
    assert engine_of(tmp_path, installed) == FOLDER.parent / "engine"


def test_the_first_cell_installs_the_package_where_it_is_not(tmp_path: Path) -> None:
    """A pip of the test's own stands for the real one, which tests/test_package.py runs."""
    (pip := tmp_path / "packages" / "pip").mkdir(parents=True)
    link = f"Path({str(pip.parent)!r}, sys.argv[-1]).symlink_to({str(FOLDER.parent / 'glassformer')!r})"
    (pip / "__init__.py").touch()
    (pip / "__main__.py").write_text(f"import sys; from pathlib import Path; {link}")
    assert engine_of(tmp_path, pip.parent) == FOLDER.parent / "engine"


def test_the_first_cell_installs_nothing_by_itself(tmp_path: Path) -> None:
    """A stranger may own the name `glassformer`."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [sys.executable, "-c", FIRST]
    ended = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1 and ended.stderr.startswith(
        "Write the path or the address of Glassformer's wheel"
    )


@for_each("name", NAMES)
def test_a_stub_does_not_pass(name: str) -> None:
    assert isinstance(fault_of(program(source_of(name), solved=False)), NotImplementedError)


@for_each("name", NAMES, fast=[name for name in NAMES if name not in ("schemes", "nanogpt")])  # these train
def test_a_solution_passes_all_checks(name: str) -> None:
    assert fault_of(program(source_of(name), solved=True)) is None


def test_the_reference_of_gpt2_is_the_published_one() -> None:
    """Transformers' GPT-2 under the notebook's own names gives the notebook's logits, and those of the solution."""
    transformers = pytest.importorskip("transformers")
    space: dict[str, Any] = {"__name__": "notebook"}
    exec(compile(program(source_of("gpt2-weights"), solved=True), "notebook", "exec"), space)
    sizes = transformers.GPT2Config(vocab_size=37, n_positions=16, n_embd=24, n_layer=2, n_head=4)
    model = transformers.GPT2LMHeadModel(sizes).eval()
    named = {name.removeprefix("transformer."): tensor for name, tensor in model.state_dict().items()}
    named.pop("lm_head.weight")
    published = space["published"](3)
    assert {n: t.shape for n, t in named.items()} == {n: t.shape for n, t in published.items()}
    full = {f"transformer.{name}": tensor for name, tensor in published.items()}
    model.load_state_dict(full | {"lm_head.weight": published["wte.weight"]})
    tokens = torch.tensor([7, 1, 30, 2, 36])
    with torch.no_grad():
        theirs = model(tokens[None]).logits[0]
    assert float((space["reference"](tokens, published, 2, 4) - theirs).abs().max()) < 1e-4
    house = space["house"](37, 16, 24, 2, 4)
    house.load_state_dict(space["moved"](published, 2))
    assert float((house(tokens[None])[0] - theirs).abs().max()) < 1e-4


# a slip in the solution that the checks of each notebook must notice: what stands there -> what it becomes
SLIPS = {
    "pe-heatmap": [("-torch.arange(0, d, 2", "-torch.arange(0, d // 2"), ("-angle.sin(), angle.cos()", "angle.sin(), angle.cos()")],
    "block": [
        ("math.sqrt(d // heads)", "1"), ("triu(1)", "triu(2)"), ("return x + hidden", "return hidden"),
        ("length, d = x.shape", "length, d = x.shape\n    assert length in (5, 6)"),
    ],
    "sampling": [
        ("logits / tau", "logits * tau"), ("return left / left.sum()", "return left"), ("before < p", "before + chances < p"),
        ("[0, -1]", "[0, 0]"), ("[-model.config.context :]", ""), ("generator=drawn", "generator=None"),
        ("return tokens[len(prompt) :]", "return tokens"), ("== logits.argmax()", "== logits.argmin()"), ("entr(row)", "entr(row / 2)"),
    ],
    "cache": [
        ("/ math.sqrt(d)).softmax(0) @ self", ").softmax(0) @ self"), ("self.rows += 1", "self.rows += len(self.keys)"),
        ("unread = tokens if cache is None else tokens[cache.length :]", "unread = tokens"),
    ],
    "without-the-mask": [("[0, :-1]", "[0]"), ("> 0).sum()", ">= 0).sum()")],
    "tying": [("return vocab * d", "return 2 * vocab * d"), ("@ self.table.T", "@ self.table.detach().T * 2")],
    "round-trip": [
        ("return sorted(set(text))", "return sorted(text)"), ("len(data) - 64", "len(data) - 65"),
        ("splits[split]", 'splits["train"]'), ("ids[cut:]", "ids[cut + 1 :]"), ("* 9 // 10", "* 8 // 10"),
    ],
    "schemes": [
        ("-2 * torch.arange", "-torch.arange"),
        ("(places[:, None] - places[None, :])", "(places[None, :] - places[:, None])"),
        ("[:, 3:].transpose(1, 2), tokens[:, :-3]", "[:, 2:].transpose(1, 2), tokens[:, 2:]"),
        ("losses(model, 12, drawn)", "losses(model, 24, drawn)"),
    ],
    "gpt": [
        (' + w["positions.weight"][: len(tokens)]', ""), ("+ layers * one + d", "+ layers * one"),
        ("return float(-chances", "return float(chances"), ("tokens[-16:], w", "tokens[:16], w"),
    ],
    "gpt2-weights": [
        (".T.contiguous()", ""), ('"norm1": "ln_1", "norm2": "ln_2"', '"norm1": "ln_2", "norm2": "ln_1"'),
        (".abs().max()", ".max()"), (".abs().max()", "[-1].abs().max()"),
    ],
    "nanogpt": [
        ("len(data) - length", "len(data) - length - 1"), ("(step + 1) / warm", "step / warm"),
        ("optimizer.step()", "optimizer.zero_grad()"), ("(size,), generator=drawn", "(size,), generator=None"),
        ("[0, -1]", "[0, 0]"), ("return tokens[1:]", "return tokens"),
    ],
    "bpe-merge": [("+= counts[word]", "+= 1"), ("place += 2 if both else 1", "place += 1")],
}  # fmt: skip


EVERY = [(name, slip) for name, slips in SLIPS.items() for slip in slips]


@for_each(("name", "slip"), EVERY, fast=[(name, slips[0]) for name, slips in SLIPS.items()])
def test_a_slip_is_noticed_by_a_check(name: str, slip: tuple[str, str]) -> None:
    whole = source_of(name)
    before, fence, solution = whole.partition("```python solution")
    assert slip[0] in solution
    broken = program(before + fence + solution.replace(*slip), solved=True)
    assert isinstance(fault_of(broken), Exception)
