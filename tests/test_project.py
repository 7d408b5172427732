"""The two commands, the pins, and what must not be in the repository."""

import importlib.metadata
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from tests import house, source
from tests.source import ROOT

needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def _make(*arguments: str, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    left_out = ("MAKE", "MFLAGS", "PORT", "VENV")
    plain = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    options: Any = {"capture_output": True, "text": True, "timeout": 60, "check": False}
    return subprocess.run(["make", *arguments], cwd=cwd, env=plain | environment, **options)


def _executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def _tracked(*patterns: str) -> list[Path]:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    names = subprocess.check_output(["git", "ls-files", "-z", *patterns], cwd=ROOT, text=True)
    return [ROOT / name for name in names.split("\0") if name and (ROOT / name).is_file()]


@needs_make
def test_a_taken_or_wrong_port_or_python_is_said_so(tmp_path: Path) -> None:
    old = _executable(
        tmp_path / "python3",
        f'#!/bin/sh\nCODE="$2" exec {sys.executable} -c \'import os, sys; sys.version_info = (3, 9, 1);'
        ' exec(os.environ["CODE"])\'\n',
    )
    right = f"PYTHON={sys.executable}"
    with socket.socket() as other:
        other.bind(("", 0))
        other.listen()
        port = other.getsockname()[1]
        taken = f"Port {port} is taken by another program: choose another, such as make run PORT=8502."
        for told, words in (
            ((right, f"PORT={port}"), taken),
            ((right, "PORT=abc"), "PORT = abc is not a port"),
            ((right, "PORT=70000"), "PORT = 70000 is not a port"),
            ((f"PYTHON={old}",), "Glassformer needs Python 3.11 or newer"),
            (("PYTHON=no-such-python",), "there is no no-such-python here"),
        ):
            result = _make("run", *told)
            assert result.returncode != 0 and words in result.stdout + result.stderr
            assert "Traceback" not in result.stderr


@needs_make
def test_requirements_are_installed_once_for_each_content(tmp_path: Path) -> None:
    for name in ("Makefile", "requirements.txt", "requirements.lock", "requirements-dev.txt"):
        shutil.copy(ROOT / name, tmp_path)
    log = tmp_path / "log"
    _executable(tmp_path / ".venv" / "bin" / "python", f'#!/bin/sh\necho "$@" >> {log}\n')

    def installs(target: str) -> list[str]:
        log.write_text("")
        result = _make(target, f"PYTHON={sys.executable}", cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        lines = [line for line in log.read_text().splitlines() if "pip install" in line and " -r " in line]
        return [line.rpartition(" ")[2] for line in lines]

    lock = tmp_path / "requirements.lock"
    assert installs("setup") == ["requirements.lock"]
    assert installs("setup") == []
    assert installs("setup-test") == ["requirements-dev.txt"]
    assert installs("setup-test") == installs("setup") == []
    os.utime(lock)  # touched, not changed
    assert installs("setup") == []
    lock.write_text(lock.read_text() + "# changed\n")
    assert installs("setup") == ["requirements.lock"]
    assert installs("setup-test") == ["requirements-dev.txt"]


def _pins(name: str) -> dict[str, str]:
    found = {}
    lines = [re.split("[#;]", line)[0].strip() for line in (ROOT / name).read_text().splitlines()]
    for line in filter(None, lines):
        if line == "-r requirements.txt":
            continue
        match = re.fullmatch(r"([A-Za-z0-9_-]+)==([0-9][0-9.]*)", line)
        assert match, f"{line!r} is not an exact pin"
        found[_plain(match[1])] = match[2]
    return found


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_requirement_is_pinned_and_installed() -> None:
    for name in ("requirements.txt", "requirements.lock", "requirements-dev.txt"):
        for package, version in _pins(name).items():
            assert importlib.metadata.version(package).partition("+")[0] == version, f"{name}: {package}"


def test_the_lock_holds_all_that_is_needed() -> None:
    lock = _pins("requirements.lock")
    assert _pins("requirements.txt").items() <= lock.items()
    assert all(lock.get(name, pin) == pin for name, pin in _pins("requirements-dev.txt").items())
    for package in lock:
        for text in importlib.metadata.requires(package) or []:
            needed = Requirement(text)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                left_out = needed.name.startswith(("nvidia-", "cuda-")) or needed.name == "triton"
                assert left_out or _plain(needed.name) in lock, f"{package} needs {text}"


FORBIDDEN = {
    "unsafe_allow_" + "html": "text on screen goes through Streamlit's own escaping",
    "use_container_" + "width": "Streamlit 1.67 calls it width='stretch'",
    "components." + "v1": "components are st.components.v2",
    "torch." + "load(": "checkpoints are safetensors",
    "torch." + "save(": "checkpoints are safetensors",
    "import " + "pickle": "checkpoints are safetensors",
    "/wo" + "rk/": "a path of one machine",
}


def test_what_has_no_place_in_the_source() -> None:
    wrong = []
    for path in _tracked("*.py", "*.js", "*.toml", "*.md", "Makefile", ".ci/run"):
        text = source.text(path)
        for words in (words for words in FORBIDDEN if words in text):
            line = text[: text.index(words)].count("\n") + 1
            wrong.append(f"{source.name(path)}:{line} has {words}: {FORBIDDEN[words]}")
    assert not wrong, "\n".join(wrong)


def test_nothing_large_or_private_is_tracked() -> None:
    for path in _tracked():
        assert path.stat().st_size < 8 * 2**20, f"{path} is too large to be tracked"
        assert path.suffix not in {".pt", ".pth", ".pkl", ".log", ".pem", ".key"}, path
        assert not path.name.startswith((".env", "secrets.toml", "tinyshakespeare.txt")), path


def test_modules_are_short() -> None:
    lines = {source.name(path): len(source.text(path).splitlines()) for path in source.EVERYTHING}
    assert not {name: count for name, count in lines.items() if count > 600}


def test_the_map_in_the_docs_is_the_tree() -> None:
    text = house.ARCHITECTURE.read_text("utf-8")
    assert house.updated(text) == text, "run `python -m tests.house`"


@pytest.mark.parametrize(("name", "most"), [("README.md", 1200), ("docs/hosting.md", 1700)])
def test_the_pages_that_are_read_first_stay_short(name: str, most: int) -> None:
    assert len((ROOT / name).read_text("utf-8").split()) <= most
