"""engine/nano.py is engine.model's modern GPT: the same logits, the same text, and it trains by itself."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
from functools import partial
from itertools import islice
from pathlib import Path

import pytest
import torch

from engine import checkpoints, nano
from tests.engine.cases import for_each

MODERN = Path(__file__).parents[2] / "checkpoints" / "shakespeare-modern"
PROMPT = "ROMEO:\nWhat light through yonder window breaks"


def test_logits_are_those_of_the_engine() -> None:
    ours, alphabet = nano.load(MODERN)
    ours, theirs = ours.double(), checkpoints.load(MODERN).model.double()
    ids = torch.randint(len(alphabet), (2, 128), generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        torch.testing.assert_close(ours(ids), theirs(ids), atol=1e-5, rtol=0)
        expected = torch.nn.functional.cross_entropy(theirs(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        torch.testing.assert_close(ours.loss(ids[:, :-1], ids[:, 1:]), expected, atol=1e-5, rtol=0)


def test_a_sampled_text_is_that_of_the_engine_without_a_cache() -> None:
    ours, alphabet = nano.load(MODERN)
    theirs, generator = checkpoints.load(MODERN).model, torch.Generator().manual_seed(3)
    ids = [alphabet.index(character) for character in PROMPT]
    sampled = list(ours.sample(ids, 128 - len(ids), 0.8, seed=3))
    with torch.inference_mode():
        for new in sampled:
            probabilities = (theirs(torch.tensor([ids]))[0, -1] / 0.8).softmax(-1)
            assert new == int(torch.multinomial(probabilities, 1, generator=generator))
            ids.append(new)


def test_a_full_cache_starts_again_with_half_of_the_context() -> None:
    model = nano.GPT(nano.Config(vocab_size=5, context=8, d_model=8, n_layers=2, n_heads=2, d_ff=12))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(30)
    ids, read = [1, 2, 3], [1, 2, 3]
    for new in islice(model.sample(ids, 20, 1e-3), 20):
        read = read if len(read) <= 8 else ids[-4:]
        assert new == int(model(torch.tensor([read]))[0, -1].argmax())
        ids, read = [*ids, new], [*read, new]


def test_training_lowers_the_loss_and_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("the quick brown fox jumps over the lazy dog. " * 60)
    small = partial(nano.Config, context=32, d_model=64, n_layers=2, n_heads=2, d_ff=96)
    monkeypatch.setattr(nano, "Config", small)
    options = ["--text", str(text), "--steps", "3", "--prompt", "the", "--length", "40"]
    monkeypatch.setattr(sys, "argv", ["nano.py", *options])
    nano.main()
    written = capsys.readouterr().out.splitlines()
    losses = [float(line.split("train ")[1].split(",")[0]) for line in written if line.startswith("step")]
    assert len(losses) == 4 and losses[0] > 3.2 and losses[-1] < losses[0] - 0.5
    assert written[-1].startswith("the") and len(written[-1]) == 43


def test_as_a_program_it_writes_with_a_model_that_is_loaded() -> None:
    command = [sys.executable, nano.__file__, "--load", MODERN, "--prompt", PROMPT, "--length", "5"]
    model, alphabet = nano.load(MODERN)
    sampled = islice(model.sample([alphabet.index(c) for c in PROMPT], 5, 0.8, 0), 5)
    written = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert written == f"{PROMPT}{''.join(alphabet[i] for i in sampled)}\n"


def test_another_architecture_is_refused() -> None:
    with pytest.raises(SystemExit, match="another architecture"):
        nano.load(MODERN.with_name("shakespeare-classic"))


OTHER = {  # none of them shows in the shapes of the weights
    "causal": False, "window": 4, "rope_fraction": 0.5, "score_scale": False, "embedding_scale": True,
    "qk_norm": True, "output_head": "scaled", "parts": "unscaled_scores",
}  # fmt: skip


def test_a_model_that_is_saved_today_is_read(tmp_path: Path) -> None:
    """Whatever fields its configuration has by now."""
    ours = checkpoints.load(MODERN)
    checkpoints.save(tmp_path, ours.model, ours.tokenizer, ours.metrics)
    model, _ = nano.load(tmp_path)
    ids = torch.tensor([ours.tokenizer.encode(PROMPT)])
    with torch.no_grad():
        torch.testing.assert_close(model(ids), ours.model(ids), atol=1e-4, rtol=1e-4)


@for_each("name", OTHER)
def test_a_choice_that_nano_does_not_have_is_refused(name: str, tmp_path: Path) -> None:
    for path in MODERN.iterdir():
        shutil.copy(path, tmp_path)
    nano.load(tmp_path)
    config = json.loads((MODERN / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {name: OTHER[name]}))
    with pytest.raises(SystemExit, match=rf"another architecture \({name}\)"):
        nano.load(tmp_path)


def test_the_file_is_short_and_stands_alone() -> None:
    source = Path(nano.__file__).read_text("utf-8")
    nodes = list(ast.walk(ast.parse(source)))
    names = [each.name for node in nodes if isinstance(node, ast.Import) for each in node.names]
    names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    assert len(source.splitlines()) <= 300
    assert {name.partition(".")[0] for name in names} <= {*sys.stdlib_module_names, "torch", "safetensors"}


@for_each("options, sentence", [
    (["--temperature", "-1"], "--temperature -1.0 must be above 0"),
    (["--temperature", "nan"], "must be above 0"),
    (["--prompt", ""], "--prompt must hold at least one character"),
    (["--text", "nowhere.txt"], "nowhere.txt cannot be read as a text"),
    (["--load", "nowhere"], "cannot be read as a text"),
    (["--steps", "0"], "--steps must be at least 1"),
])  # fmt: skip
def test_a_wrong_option_is_one_sentence(
    options: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["nano.py", *options])
    with pytest.raises(SystemExit, match=re.escape(sentence)):
        nano.main()
