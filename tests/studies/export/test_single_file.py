"""The one file runs alone: without the engine, in a folder of its own, and gives the same logits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, get_args, get_type_hints

import pytest
import torch

from engine import checkpoints, nano
from engine.config import ModelConfig
from engine.model import Transformer, build
from engine.parts.registry import parts_of
from studies.pairs.checkpoints import load_pair
from studies.pairs.generate import write_pair
from studies.pairs.seq2seq import Seq2Seq, build_pair
from studies.weights.export import pack
from studies.weights.export.gather import gather
from studies.weights.export.single_file import export_single_file, nano_sizes
from tests.engine.cases import for_each
from tests.engine.helpers import loud, some_tokens, tiny
from tests.studies.seq2seq_toys import loud_pair, pair_config, some

ROOT = Path(__file__).resolve().parents[3]
ALONE = """
import importlib.util, json, sys
import torch
found = {}
for name in sys.argv[2:]:
    spec = importlib.util.spec_from_file_location(name, f"{name}/model.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    tokens = [torch.tensor(ids) for ids in json.loads(sys.argv[1])]
    found[name] = module.load(f"{name}/model.safetensors")(*tokens).tolist()
print(json.dumps(found))
"""


def ran(folder: Path, *arguments: str, **more: Any) -> str:
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, **more)
    assert done.returncode == 0, done.stderr[-2000:] + done.stdout[-2000:]
    return done.stdout


def alone(folder: Path, *arguments: str) -> str:
    """What Python says in a folder, with nothing of this repository in reach."""
    return ran(folder, "-P", *arguments, env=bare())


def bare() -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return plain | {"OMP_NUM_THREADS": "1"}  # tests run side by side


Alone = Callable[..., str]  # what Python says in a folder, given a script and its arguments
# Each order is a program of its own in a copy of this one, which has imported torch, and nothing of this repository.
FORKS = """
import importlib.util, json, os, runpy, sys
assert importlib.util.find_spec("engine") is None
import torch
for order in sys.stdin:
    folder, sys.argv = json.loads(order)
    if not (child := os.fork()):
        os.chdir(folder)
        with open("said.txt", "w") as said:
            os.dup2(said.fileno(), 1), os.dup2(said.fileno(), 2)
        runpy.run_path(sys.argv[0], run_name="__main__")
        sys.exit()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def forked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alone]:
    """Like `alone`, but torch is imported once for all."""
    if not hasattr(os, "fork"):
        yield alone
        return
    command = [sys.executable, "-P", "-c", FORKS]
    forks = subprocess.Popen(
        command, cwd=tmp_path_factory.mktemp("forks"), env=bare(), text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert forks.stdin is not None and forks.stdout is not None
    orders, codes = forks.stdin, forks.stdout

    def run(folder: Path, *arguments: str) -> str:
        print(json.dumps([str(folder), arguments]), file=orders, flush=True)
        code, said = codes.readline().strip(), (folder / "said.txt").read_text("utf-8")
        assert code == "0", said[-2000:]
        return said

    yield run
    forks.communicate()


def lint(folder: Path) -> None:
    """ruff, as a stranger's linter: every name that a file reads is there."""
    ran(folder, "-m", "ruff", "check", "--isolated", "--select", "F,E9", ".")


def put(model: Transformer | Seq2Seq, folder: Path, tokenizer: Any = None, **more: str) -> str:
    folder.mkdir()
    text = export_single_file(model, 'A "model" \\ of\nmine', tokenizer, example=more.get("example", ""))
    (folder / "model.py").write_text(text)
    (folder / "model.safetensors").write_bytes(pack.engine_weights(model, more.get("dtype", "float32")))
    assert "engine" not in "".join(line for line in text.splitlines() if "import" in line)
    return text


def every_value() -> list[dict[str, Any]]:
    """Each name of each registry at least once, in several company."""
    hints = get_type_hints(ModelConfig)
    lists = {name: get_args(hints[name]) for name in ("norm", "wiring", "ffn", "position", "mixer")}
    extras: list[dict[str, Any]] = [
        {"causal": False}, {"window": 3, "n_heads": 2}, {"qk_norm": True, "tie_embeddings": False},
        {"attention_bias": True, "ffn_bias": True, "dropout": 0.1},
        {"mixer": "attention", "n_kv_heads": 2, "position": "rope", "rope_fraction": 0.5},
        {"mixer": "attention", "output_projection": False}, {"output_head": "masked", "token_types": 2},
        {"output_head": "none", "embedding_scale": True},
        {"mixer": "attention", "qk_norm": True, "qk_gain": True, "score_scale": False},
    ]  # fmt: skip
    count = max(map(len, lists.values())) + 1
    rows = [{name: values[i % len(values)] for name, values in lists.items()} for i in range(count)]
    return [row | extras[i % len(extras)] for i, row in enumerate(rows)]


PAIRS: dict[str, dict[str, Any]] = {
    "plain": {},
    "of 2017": {"wiring": "post", "position": "sinusoidal", "embedding_scale": True, "norm_bias": True},
    "t5": {"position": "t5", "norm": "rmsnorm", "score_scale": False, "output_head": "scaled"},
    "t5 1.1": {"position": "t5", "norm": "rmsnorm", "ffn": "geglu_tanh", "tie_embeddings": False},
    "ours": {"position": "rope", "qk_norm": True, "ffn": "relu2", "n_kv_heads": 1},
}


def unlike() -> Seq2Seq:
    """Halves of other parts: the file has to tell them apart."""
    config = pair_config()
    halves = {"norm": "rmsnorm", "ffn": "swiglu", "position": "alibi", "mixer": "similarity", "n_heads": 2}
    return build_pair(replace(config, encoder=replace(config.encoder, **halves))).eval()


def hold_alone(forked: Alone, models: dict[str, Any], tensors: list[torch.Tensor], tmp_path: Path) -> None:
    """All in one program give the logits they give here."""
    (tmp_path / "compare.py").write_text(ALONE)
    ids = json.dumps([each.tolist() for each in tensors])
    said = json.loads(forked(tmp_path, "compare.py", ids, *models))
    assert said.keys() == models.keys()
    for name, model in models.items():
        expected = model(*tensors)
        assert expected.std() > 1e-4, name
        assert torch.allclose(torch.tensor(said[name]), expected, atol=1e-5, rtol=1e-4), name
    lint(tmp_path)


@torch.no_grad()
def test_encoder_decoders_run_alone(forked: Alone, tmp_path: Path) -> None:
    models = {name.replace(" ", "-"): loud_pair(**fields) for name, fields in PAIRS.items()}
    models |= {"unlike": unlike(), "swapped": loud_pair(parts_of("swapped_masks"))}
    for name, model in models.items():
        put(model, tmp_path / name)
    source, target = some(3, 5, 1), some(3, 5, 2)  # as long as each other: masks that are swapped go on
    source[1, 3:] = 0  # padding
    hold_alone(forked, models, [source, target], tmp_path)


SOURCES = [("dates", "the 3rd of March 1999"), ("language", "the small dog sees a king")]


@for_each("task, source", SOURCES, fast=1)
def test_a_shipped_encoder_decoder_writes(task: str, source: str, forked: Alone, tmp_path: Path) -> None:
    """Letters and words; what is not known is said."""
    shipped = load_pair(ROOT / "checkpoints" / "paired" / task)
    text = put(shipped.model, tmp_path / "it", shipped.tokenizer, example=source)
    assert f"python model.py {source}" in text
    wanted = write_pair(shipped.model, shipped.tokenizer, source)
    assert len(wanted) > 5
    assert forked(tmp_path / "it", "model.py", *source.split()).strip() == wanted
    with pytest.raises(AssertionError, match="does not know"):
        forked(tmp_path / "it", "model.py", "語")


@torch.no_grad()
def test_every_part_runs_alone(forked: Alone, tmp_path: Path) -> None:
    models = {  # what nothing norms is quiet
        f"m{i}": loud(tiny(**fields), factor=20.0 if fields["norm"] == "none" else 6.0)
        for i, fields in enumerate(every_value())
    }
    models["faulty"] = build(tiny(), parts=parts_of("unscaled_scores")).eval()
    models["faulty"].embedding.mul_(40)
    for name, model in models.items():
        text = put(model, tmp_path / name)
        assert not any(f"def {tool}" in text for tool in ("formulas", "kept", "tensors"))
    hold_alone(forked, models, [some_tokens(tiny(), 2, 7)], tmp_path)


MODERN: dict[str, Any] = {"norm": "rmsnorm", "ffn": "swiglu", "position": "rope", "tie_embeddings": False}


def modern(seed: int) -> ModelConfig:
    """The design of nano.py in sizes drawn by chance."""
    dice = Random(seed)
    heads, half = dice.randint(1, 5), dice.randint(1, 6)
    return tiny(
        **MODERN, context=dice.randint(7, 12), d_model=2 * heads * half, n_layers=dice.randint(1, 4), n_heads=heads,
        d_ff=dice.randint(1, 40), rope_theta=dice.choice((100.0, 10_000.0)), norm_eps=dice.choice((1e-5, 1e-3)),
        dropout=dice.choice((0.0, 0.2)),
    )  # fmt: skip


@torch.no_grad()
def test_a_model_of_nanos_design_is_nanos_source_and_its_sizes(forked: Alone, tmp_path: Path) -> None:
    models = {f"m{seed}": loud(modern(seed)) for seed in range(6)}
    for name, model in models.items():
        text = put(model, tmp_path / name)
        definitions = text[text.index("@dataclass") : text.index("CONFIG = ")]
        assert definitions in Path(nano.__file__).read_text("utf-8")
        assert "class GPT(" in definitions and "def sample(" in definitions
        assert len(text.splitlines()) < 220
    hold_alone(forked, models, [some_tokens(tiny(), 2, 7)], tmp_path)


@for_each("fields", [
    {"norm": "layernorm"}, {"wiring": "post"}, {"ffn": "geglu"}, {"position": "alibi"}, {"mixer": "shared_qk"},
    {"n_kv_heads": 2}, {"d_head": 8}, {"d_model": 18, "d_head": 4}, {"rope_fraction": 0.5}, {"qk_norm": True},
    {"score_scale": False}, {"causal": False}, {"window": 3}, {"output_projection": False}, {"tie_embeddings": True},
    {"attention_bias": True}, {"ffn_bias": True}, {"norm_gain": False}, {"embedding_scale": True},
    {"embedding_norm": True}, {"token_types": 2}, {"output_head": "masked"}, {"pooler": True},
])  # fmt: skip
def test_any_other_choice_and_any_fault_is_not_nanos(fields: dict[str, Any]) -> None:
    config = tiny(**MODERN)
    assert nano_sizes(build(config, device="meta")) == nano.Config(11, 8, 16, 2, 4, 24)
    assert nano_sizes(build(replace(config, **fields), device="meta")) is None
    assert nano_sizes(build(config, device="meta", parts=parts_of("no_mask"))) is None


@for_each("name, design", [("shakespeare-modern", "GPT"), ("shakespeare-classic", "Transformer")])
def test_a_model_of_letters_writes(name: str, design: str, forked: Alone, tmp_path: Path) -> None:
    shipped = checkpoints.load(ROOT / "checkpoints" / name)
    assert f'def load(path: str | Path = "model.safetensors") -> {design}:' in put(
        shipped.model, tmp_path / "it", shipped.tokenizer
    )
    start = alone if name == "shakespeare-classic" else forked  # as a reader starts it
    text = start(tmp_path / "it", "model.py", "ROMEO:")
    assert text.startswith("ROMEO:") and len(text) > 180 and " the " in text + " the "
    assert sum(character in " etaoin" for character in text) > 60  # English, not noise


@for_each("fields", [{}, MODERN])
def test_a_model_of_words_says_the_likeliest(fields: dict[str, Any], forked: Alone, tmp_path: Path) -> None:
    model = loud(tiny(**fields))
    put(model, tmp_path / "it", dtype="bfloat16")
    lines = forked(tmp_path / "it", "model.py", "3", "1", "4").splitlines()
    assert len(lines) == 5
    with torch.no_grad():
        expected = int(model(torch.tensor([[3, 1, 4]]))[0, -1].argmax())
    assert lines[0].startswith(f"token {expected}: 0.")


def test_a_decorator_goes_along_unless_it_only_registers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "decorated.py").write_text(
        "def twice(f):\n    return lambda: 2 * f()\n\n\n@twice\ndef number():\n    return 3\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    gathered = gather([("decorated", "number")], frozenset())
    assert [name for _, name in gathered.order] == ["twice", "number"]
    assert gathered.sources()[-1] == "@twice\ndef number():\n    return 3"
    faulty = gather([("studies.lab.faults.masks", "no_mask")], frozenset())
    assert faulty.sources()[-1].startswith("def no_mask(")


def test_it_is_short_and_its_own_source() -> None:
    text = export_single_file(build(tiny(position="rope")), "m")
    assert "class Rope(" in text and "class Alibi" not in text and "class SwiGlu" not in text
    assert "Keeps the scores' spread near 1" in text, "comments go along"
