"""The small scripts of deploy/, each by itself, and what docs/hosting.md says to add to the image."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from deploy import servers
from tests.operating import answering, wait
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
def test_a_server_starts_warm_in_the_frame_of_its_space_with_all_descriptors_and_two_pools_of_memory(
    tmp_path: Path, given: dict[str, str], frames: list[str]
) -> None:
    told = _started(tmp_path, says='echo "$@"; env; ulimit -Sn; ulimit -Hn', **given).stdout.splitlines()
    found = [line.partition("=")[2] for line in told if line.startswith("GLASSFORMER_FRAME_ANCESTORS=")]
    assert found == frames and "--logger.hideWelcomeMessage true" in told[0]
    assert told[-2] == told[-1] and "MALLOC_ARENA_MAX=2" in told
    assert (
        "GLASSFORMER_WARM=1" in told
        and "GLASSFORMER_WARM=no" in _started(tmp_path, says="env", GLASSFORMER_WARM="no").stdout
    )
    assert "MALLOC_ARENA_MAX=4" in _started(tmp_path, says="env", MALLOC_ARENA_MAX="4").stdout


def test_health_is_asked_of_the_server_whatever_proxy_leads_to_the_world(tmp_path: Path) -> None:
    with answering(lambda _: b"well") as port:
        own = {"PATH": os.environ["PATH"], "http_proxy": "http://127.0.0.1:9"}
        own |= {"PORT": str(port), "GLASSFORMER_METRICS": str(port)}
        for script, said in (("healthy.py", b""), ("metrics.py", b"well")):
            command = [sys.executable, str(ROOT / "deploy" / script)]
            ended = subprocess.run(command, env=own, capture_output=True, check=False)
            assert (ended.returncode, ended.stdout) == (0, said), ended.stderr


def test_health_and_numbers_are_those_of_all_servers(tmp_path: Path) -> None:
    with answering(lambda _: b"well") as port, answering(lambda _: b"") as ill:
        own = {"PATH": os.environ["PATH"], "PORT": str(ill), "SERVERS": "1", "GLASSFORMER_METRICS": str(port)}
        command = [sys.executable, str(ROOT / "deploy" / "healthy.py")]
        ended = subprocess.run(command, env=own, capture_output=True, check=False, text=True)
        assert ended.returncode == 1 and f"port {ill}" in ended.stderr
        ended = subprocess.run(
            command,
            env=own | {"PORT": str(port), "SERVERS": "2"},
            capture_output=True,
            check=False,
            text=True,
        )
        assert ended.returncode == 1 and f"port {port + 1}" in ended.stderr, "its first server is not there"


@pytest.fixture
def nginx(tmp_path: Path) -> dict[str, str]:
    """An environment with a program called nginx in its path."""
    (tmp_path / "nginx").write_text("#!/bin/sh\n")
    (tmp_path / "nginx").chmod(0o755)
    return {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SERVERS": "2"}


def test_several_servers_have_their_addresses_and_what_they_share_written_for_them(
    nginx: dict[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "site"
    folder.mkdir(mode=0o700)
    own = {
        "PORT": "9000",
        "ADDRESS": "::",
        "GLASSFORMER_METRICS": "0.0.0.0:9464",
        "GLASSFORMER_TRUST_PROXY": "yes",
    }
    found = servers.programs(folder, nginx | own)
    assert list(found) == ["the process that holds the runs", "server 1", "server 2", "nginx"]
    one, two = found["server 1"], found["server 2"]
    assert [program.command[program.command.index("--server.port") + 1] for program in (one, two)] == [
        "9001",
        "9002",
    ]
    assert all("127.0.0.1" in program.command for program in (one, two))
    assert one.more == {
        "GLASSFORMER_PROFILE": "hosted",
        "GLASSFORMER_TRUST_PROXY": "2",
        "GLASSFORMER_RUNS": str(folder / "runs"),
        "GLASSFORMER_METRICS": "0.0.0.0:9464",
    }
    assert two.more == {**one.more, "GLASSFORMER_METRICS": "0.0.0.0:9465"}
    assert (folder / "runs").stat().st_mode & 0o777 == 0o700, "nobody else may come to the socket"
    written = (folder / "nginx.conf").read_text()
    assert "listen [::]:9000;" in written and "X-Forwarded-For $proxy_add_x_forwarded_for;" in written
    assert [line.split()[1] for line in written.splitlines() if "max_fails" in line] == [
        "127.0.0.1:9001",
        "127.0.0.1:9002",
    ]


def test_without_a_proxy_before_them_and_on_a_cluster_they_need_less(
    nginx: dict[str, str], tmp_path: Path
) -> None:
    found = servers.programs(tmp_path, nginx | {"GLASSFORMER_RAY": "auto"})
    assert list(found) == ["server 1", "server 2", "nginx"]
    assert found["server 1"].more == {"GLASSFORMER_PROFILE": "hosted", "GLASSFORMER_TRUST_PROXY": "1"}
    written = (tmp_path / "nginx.conf").read_text()
    assert "listen 0.0.0.0:8501;" in written and "X-Forwarded-For $remote_addr;" in written


@pytest.mark.parametrize(
    ("own", "says"),
    [
        ({"SERVERS": "two"}, "SERVERS=two is not a number from 1 to 64"),
        ({"SERVERS": "0"}, "SERVERS=0 is not a number"),
        ({"PORT": "65535"}, "PORT=65535 is not a number"),
        ({"GLASSFORMER_PROFILE": "small"}, "GLASSFORMER_PROFILE=small has one server"),
        ({"PATH": "/nowhere"}, "install nginx"),
        ({"GLASSFORMER_LOG": "loud"}, "must be json, or not set"),
        ({"TMPDIR": "/proc/1"}, "may not write to /proc/1"),
    ],
)
def test_what_does_not_go_with_several_servers_is_a_sentence(
    nginx: dict[str, str], tmp_path: Path, own: dict[str, str], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if says == "install nginx":
        monkeypatch.setattr(servers, "NGINX", "/nowhere")
        with pytest.raises(ValueError, match=says):
            servers.programs(tmp_path, nginx | own)
        return
    environment = nginx | {"PYTHON": sys.executable, "HOME": str(tmp_path), "TMPDIR": str(tmp_path)} | own
    command = ["sh", str(ROOT / "deploy" / "start.sh")]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stdout) == (1, "") and says in ended.stderr
    assert ended.stderr.count("\n") == 1 and not list(tmp_path.glob("glassformer-servers-*"))


SITE = """
import signal, sys
from deploy import servers
servers.AGAIN = 0.1
def program(line):
    return servers.Program([sys.executable, "-c", "import os, time, sys; " + line], {})
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda *_: sys.exit(0))
servers.supervise({"long": program("print(os.getpid(), flush=True); time.sleep(600)"), "other": program(sys.argv[1])})
"""


def _site(other: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SITE, other]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_what_was_killed_is_started_again_until_all_are_told_to_end() -> None:
    site = _site("time.sleep(600)")
    assert site.stdout is not None and site.stderr is not None
    first = int(site.stdout.readline())
    os.kill(first, signal.SIGKILL)
    second = int(site.stdout.readline())
    assert second != first and "long was killed (9)" in site.stderr.readline()
    site.terminate()
    assert site.wait(20) == 0
    with pytest.raises(ProcessLookupError):
        os.kill(second, 0)
    site.communicate()


def test_who_gives_up_ends_the_others() -> None:
    site = _site("time.sleep(1); sys.exit(3)")
    assert site.stdout is not None
    other = int(site.stdout.readline())
    assert "other ended with code 3" in site.communicate(timeout=60)[1] and site.returncode == 3
    with pytest.raises(ProcessLookupError):
        os.kill(other, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with the one that started it")
def test_a_site_whose_first_process_is_killed_leaves_nothing_behind() -> None:
    site = _site("time.sleep(600)")
    assert site.stdout is not None
    left = int(site.stdout.readline())
    site.kill()
    site.communicate()
    wait(lambda: not Path(f"/proc/{left}").exists() or "Z (" in Path(f"/proc/{left}/status").read_text())


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
