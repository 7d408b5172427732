"""The small scripts of deploy/, each by itself, and what docs/hosting.md says to add to the image."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.operating import answering
from tests.source import ROOT
from ui.server import heed_settings


def _started(
    place: Path, *wrapper: str, says: str = 'echo "$@"', **environment: str
) -> subprocess.CompletedProcess[str]:
    """deploy/start.sh, with a Python that only says something."""
    python = place / "python"
    python.write_text(f"#!/bin/sh\n{says}\n")
    python.chmod(0o755)
    return subprocess.run(
        [*wrapper, "sh", str(ROOT / "deploy" / "start.sh")],
        env={"PATH": os.environ["PATH"], "PYTHON": str(python), "HOME": str(place), "TMPDIR": str(place)}
        | environment,
        capture_output=True,
        text=True,
        check=False,
    )


SPACE = {"SPACE_ID": "me/glassformer"}
OWN = {"GLASSFORMER_FRAME_ANCESTORS": "https://a.example"}


@pytest.mark.parametrize(
    ("given", "frames"), [({}, []), (SPACE, ["https://huggingface.co"]), (SPACE | OWN, ["https://a.example"])]
)
def test_a_server_starts_in_the_frame_of_its_space_with_all_descriptors_and_two_pools_of_memory(
    tmp_path: Path, given: dict[str, str], frames: list[str]
) -> None:
    told = _started(tmp_path, says='echo "$@"; env; ulimit -Sn; ulimit -Hn', **given).stdout.splitlines()
    found = [line.partition("=")[2] for line in told if line.startswith("GLASSFORMER_FRAME_ANCESTORS=")]
    assert found == frames and "--logger.hideWelcomeMessage true" in told[0]
    assert told[-2] == told[-1] and "MALLOC_ARENA_MAX=2" in told
    assert "MALLOC_ARENA_MAX=4" in _started(tmp_path, says="env", MALLOC_ARENA_MAX="4").stdout


def test_health_is_asked_of_the_server_whatever_proxy_leads_to_the_world(tmp_path: Path) -> None:
    with answering(lambda _: b"well") as port:
        own = {"PATH": os.environ["PATH"], "http_proxy": "http://127.0.0.1:9"}
        own |= {"PORT": str(port), "GLASSFORMER_METRICS": str(port)}
        for script, said in (("healthy.py", b""), ("metrics.py", b"well")):
            command = [sys.executable, str(ROOT / "deploy" / script)]
            ended = subprocess.run(command, env=own, capture_output=True, check=False)
            assert (ended.returncode, ended.stdout) == (0, said), ended.stderr


@pytest.mark.parametrize("name", ["HOME", "TMPDIR", "XDG_CACHE_HOME"])
def test_a_volume_of_somebody_else_is_a_sentence(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()  # a folder cannot be made in it, by root either
    well = _started(tmp_path, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert well.returncode == 0 and (tmp_path / "cache").is_dir(), well.stderr
    closed = str(tmp_path / "file" / "below")
    ill = _started(tmp_path, **{"XDG_CACHE_HOME": str(tmp_path / "cache"), name: closed})
    assert (ill.returncode, ill.stdout, ill.stderr.count("\n")) == (1, "", 1)
    assert f"may not write to {closed}" in ill.stderr


def test_a_setting_that_means_nothing_ends_the_start_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    command, environment = [sys.executable, "-c", "import app"], os.environ | {"GLASSFORMER_SECRET": "short"}
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 1 and "Traceback" not in ended.stderr
    assert "choose at least 16" in ended.stderr.splitlines()[-1]
    monkeypatch.setenv("GLASSFORMER_PROFILE", "huge")
    with pytest.raises(SystemExit, match="must be one of local, hosted, small"):
        heed_settings()


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git checkout")
def test_a_space_gets_its_front_matter_and_stores_every_binary_file_by_lfs(tmp_path: Path) -> None:
    """Also the second time, when what is tracked here no longer goes; the Space's own attributes stay. Docker
    Spaces run user 1000 and read app_port.
    """
    (tmp_path / ".gitattributes").write_text("*.bin filter=lfs diff=lfs merge=lfs -text\n")
    (tmp_path / "gone.py").touch()
    for command in (["init", "--quiet"], ["add", "."]):
        subprocess.run(["git", "-C", tmp_path, *command], check=True)
    for _ in range(2):
        subprocess.run(["sh", ROOT / "deploy" / "space" / "publish.sh", tmp_path], check=True)
    assert not (tmp_path / "gone.py").exists()
    front = yaml.safe_load((tmp_path / "README.md").read_text("utf-8").split("---")[1])
    dockerfile = (tmp_path / "Dockerfile").read_text("utf-8")
    assert (
        front["sdk"] == "docker" and f"PORT={front['app_port']}" in dockerfile and "--uid 1000" in dockerfile
    )
    lines = (tmp_path / ".gitattributes").read_text().splitlines()
    assert len(lines) == len(set(lines)) and all(
        line.endswith("filter=lfs diff=lfs merge=lfs -text") for line in lines
    )
    files = [path for path in tmp_path.rglob("*") if path.is_file() and ".git" not in path.parts]
    binary = {f"*{path.suffix}" for path in files if b"\0" in path.read_bytes()[:8192]}
    assert binary <= {line.split()[0] for line in lines} and "*.bin" in lines[0]
