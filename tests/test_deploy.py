"""What a server is set up with. Docker's daemon is not everywhere: its steps are walked here as a script, with a
checkout that nobody may write to, an empty home, one folder to write in and, where one may, another user.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from fnmatch import fnmatch
from pathlib import Path, PurePath

import pytest
import websockets
import yaml

from benchmarks import texts
from benchmarks.load import server
from benchmarks.visitor import Visitor
from engine.errors import RunError
from runs import cluster
from runs.profiles import GB, MB, PROFILES, Profile
from tests.aside import aside
from tests.browser.server import _free_port
from tests.operating import NOBODY, answers, folder_for_others, metric, trained, unprivileged, wait
from tests.source import ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
HOSTING = (ROOT / "docs" / "hosting.md").read_text("utf-8")
# of an environment that another user may enter, where that of the tests is in root's home
PYTHON = os.environ.get("GLASSFORMER_DEPLOY_PYTHON") or sys.executable


def test_the_image_takes_the_pinned_torch_for_processors_and_nobody_is_root() -> None:
    assert "https://download.pytorch.org/whl/cpu" in DOCKERFILE
    assert "grep '^torch==' requirements.txt" in DOCKERFILE and "requirements-models" not in DOCKERFILE
    assert "chromium" not in DOCKERFILE.replace("Chromium", "")
    assert re.search(r"^USER 1000$", DOCKERFILE, re.M) and re.search(r"^HEALTHCHECK ", DOCKERFILE, re.M)
    assert DOCKERFILE.index("USER 1000") < DOCKERFILE.index("CMD")
    # The base has an exact version, and may be named by its digest.
    assert re.search(r"^ARG BASE=python:3\.\d+\.\d+-slim-\w+\nFROM \$\{BASE\}$", DOCKERFILE, re.M)


def test_compose_keeps_the_root_read_only() -> None:
    (service,) = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"].values()
    assert service["read_only"] is True and service["cap_drop"] == ["ALL"] and service["mem_limit"]
    assert service["volumes"] == ["data:/data"] and "VOLUME /data" in DOCKERFILE
    for name in ("PROFILE", "SECRET", "TRUST_PROXY", "FRAME_ANCESTORS"):  # set where compose is called
        assert service["environment"][f"GLASSFORMER_{name}"].startswith(f"${{GLASSFORMER_{name}:-")
    assert service["environment"]["SERVERS"] == "${SERVERS:-1}" and " nginx-light " in DOCKERFILE
    assert service["tmpfs"] and all(port.startswith("127.0.0.1:") for port in service["ports"])


SECRETS = [
    ".env",
    ".env.production",
    "deploy/.env",
    ".streamlit/secrets.toml",
    "secrets.toml",
    "tls.pem",
    "deploy/x.key",
]


def test_no_secret_enters_the_image() -> None:
    rules = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    ignored = [rule for rule in rules if rule and not rule.startswith(("#", "!"))]
    names = [rule.removeprefix("**/") for rule in ignored if rule.startswith("**/")]
    for name in SECRETS:
        kept_out = [PurePath(name).match(rule) for rule in names] + [fnmatch(name, rule) for rule in ignored]
        assert any(kept_out), name


def test_ray_tells_nobody_of_the_cluster_and_the_page_says_where_it_listens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page = (ROOT / "docs" / "operating.md").read_text("utf-8")
    assert "RAY_USAGE_STATS_ENABLED=0" in page and "listens on all interfaces" in page
    started = re.findall(r"^ray start .*$", page, re.M)
    assert len(started) == 2 and all("--node-ip-address" in each for each in started)
    monkeypatch.delenv("RAY_USAGE_STATS_ENABLED", raising=False)
    monkeypatch.setitem(sys.modules, "ray", None)  # it is not needed for what is set before
    with pytest.raises(RunError, match="Ray is not installed"):
        cluster.connect("auto")
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"


def _rows(name: str) -> dict[str, list[str]]:
    """The table of docs/hosting.md that has this name: its rows, by their first cell."""
    lines = HOSTING.partition(f"<!-- {name} -->")[2].partition("<!-- end -->")[0].split("\n")
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return {row[0]: row[1:] for row in cells[2:]}


def test_the_page_tells_where_the_server_listens_and_what_a_proxy_must_not_pass_on() -> None:
    start = (ROOT / "deploy" / "start.sh").read_text("utf-8")
    listens = dict(re.findall(r"--server\.(?:port|address) \"\$\{(\w+):-([\w.]+)\}\"", start))
    assert listens == {"PORT": "8501", "ADDRESS": "0.0.0.0"}
    assert all(
        f"`{name}` (`{value}`)" in HOSTING or f"`{name}` ({value})" in HOSTING
        for name, value in listens.items()
    )
    assert "must be reachable by the proxy only" in HOSTING
    nginx = (ROOT / "deploy" / "nginx.conf").read_text("utf-8")
    assert re.findall(r"X-Forwarded-For (\S+);", nginx) == ["$remote_addr"], (
        "what a visitor writes there is lost"
    )
    assert "access_log off;" in nginx
    assert re.findall(r"X-Forwarded-Proto (\S+);", nginx) == ["$forwarded_proto"]
    rules = re.search(r"map \$http_x_forwarded_proto \$forwarded_proto \{([^}]*)\}", nginx)
    assert rules is not None and dict(re.findall(r"(\S+)\s+(\S+);", rules[1])) == {
        "default": "$scheme",
        "https": "https",
    }


LIMITS = {  # row of the table in docs/hosting.md -> field of a profile
    "parameters of a model": "max_parameters",
    "steps of a run": "max_steps",
    "characters of a text": "max_text",
    "context": "max_context",
    "tokens of a step": "max_batch_tokens",
    "entries of a BPE vocabulary": "max_vocabulary",
    "work of learning one": "max_merging",
    "waiting, all": "max_queued",
    "waiting, of one person": "max_queued_each",
    "runs kept, of one person": "max_runs_each",
    "paused processes kept": "max_paused",
    "processes that measure for pages; with none, threads of the server do": "measure_workers",
    "seconds unwatched until it pauses": "lease_seconds",
    "seconds unwatched until it is removed": "forget_seconds",
    "runs kept, all": "max_runs_total",
    "waiting, from one address": "max_queued_address",
    "started within a minute, from one address": "max_starts_address",
    "runs kept, from one address": "max_runs_address",
    "rooms that answer a stage, from one address": "max_rooms_address",
    "answers to one question or test in a room, from one address": "max_answers_address",
    "tabs open, from one address": "max_tabs_address",
    "runs of one race": "max_race",
    "seconds of a race that is run for a time": "max_race_seconds",
    "layers": "max_layers",
    "heads of a layer": "max_heads",
    "characters of a text whose merges are watched": "max_watched",
    "snapshots on disk, of a run": "snapshot_bytes",
    "snapshots on disk, all": "snapshot_bytes_total",
    "memory of a training": "max_worker_bytes",
    "own texts, all": "text_bytes_total",
    "weights that are packed for a download": "max_export",
    "results of measurements, of quick and of slow ones each": "measured_bytes",
    "models and texts that were read, without published ones": "loaded_bytes",
    "parameters of a published model": "max_pretrained",
    "one uploaded file": "max_upload_mb",
    "one message of a browser": "max_message_mb",
}
NOT_TOLD = {
    *("max_beside", "spares", "race_workers", "threads_per_run", "apart_bytes"),  # counted in the processes
    *("name", "public", "may_open_files", "max_download"),  # at home
}


def _told(profile: Profile, field: str) -> str:
    value = getattr(profile, field)
    if field.endswith("_mb"):
        return f"{value} MB"
    if "bytes" in field or field == "max_export":
        return f"{value / GB:g} GB" if value >= GB else f"{value // MB} MB"
    return "none" if field == "max_pretrained" and not value else f"{value:,.0f}"


def test_the_limits_in_the_page_are_those_of_the_profiles() -> None:
    rows = _rows("limits")
    hosted, small = (PROFILES[name] for name in ("hosted", "small"))
    for row, field in LIMITS.items():
        assert rows.pop(row) == [_told(hosted, field), _told(small, field)], row
    assert rows.pop("training at once") == ["cores - 1", "1"] and small.max_runs == 1
    beside = hosted.max_workers - hosted.max_runs - 1 + hosted.measure_workers
    processes = [f"cores + {beside}", f"{small.max_workers + small.measure_workers}"]
    assert rows.pop("processes beside the server, at most") == processes
    assert not rows, "rows that nothing holds"
    told = {*LIMITS.values(), "max_runs"} | NOT_TOLD
    assert not {field.name for field in fields(Profile)} - told, "a limit that the page does not name"


@pytest.fixture
def place() -> Iterator[Path]:
    with folder_for_others() as folder:
        yield folder


def _checkout(place: Path) -> Path:
    """What the image copies, prepared and closed."""
    command = ["git", "ls-files", "-z", "--", ":!tests", ":!benchmarks", ":!docs"]
    listed = subprocess.check_output(command, cwd=ROOT, text=True)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (place / "app" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, place / "app" / name)
    subprocess.run([sys.executable, "deploy/prepare.py"], cwd=place / "app", check=True)
    subprocess.run(["chmod", "-R", "a-w,a+rX", place / "app"], check=True)
    return place / "app"


@pytest.mark.exhaustive
def test_a_stranger_trains_on_a_server_that_may_write_to_one_folder(place: Path) -> None:
    app, data = _checkout(place), place / "data"
    data.mkdir()
    wrapper = unprivileged(PYTHON)
    if wrapper:
        os.chown(data, NOBODY, NOBODY)
    port, operator = _free_port(), _free_port()
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHON": PYTHON,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PORT": str(port),
        "ADDRESS": "127.0.0.1",
        "HOME": str(data),
        "TMPDIR": str(data / "tmp"),
        "XDG_CACHE_HOME": str(data / "cache"),
        "GLASSFORMER_PROFILE": "small",
        "GLASSFORMER_LOG": "json",
        "GLASSFORMER_METRICS": str(operator),
    }
    before = {path: path.stat().st_mtime_ns for path in app.rglob("*")}
    log = (place / "log").open("w+")
    server = subprocess.Popen(
        [*wrapper, "sh", str(app / "deploy" / "start.sh")],
        cwd="/",
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )

    def told(name: str) -> float:
        return metric(operator, name)

    visitor = Visitor(f"http://127.0.0.1:{port}")

    async def stranger() -> None:
        forged = websockets.connect(
            f"ws://127.0.0.1:{port}/_stcore/stream", origin=websockets.Origin("http://elsewhere.example")
        )
        with pytest.raises(websockets.InvalidStatus, match="403"):
            await forged
        await visitor.enter()
        await visitor.visit("", "")
        assert visitor.page.elements > 5 and not visitor.page.exceptions
        await trained(visitor, lambda: told("glassformer_steps"))
        wait(lambda: told("glassformer_sessions") == 1)  # one answer may be too late where others work
        await visitor.leave()

    try:
        wait(lambda: answers(f"http://127.0.0.1:{port}/healthz") or server.poll() is not None)
        healthy = subprocess.run(
            [sys.executable, app / "deploy" / "healthy.py"], env=environment, capture_output=True
        )
        assert healthy.returncode == 0, (healthy.stderr, (place / "log").read_text()[-2000:])
        if wrapper:
            status = Path(f"/proc/{server.pid}/status").read_text()
            assert f"Uid:\t{NOBODY}\t{NOBODY}" in status
        aside(stranger())
        assert told('glassformer_runs{state="finished"}') == 1, (place / "log").read_text()[-3000:]
        assert told("glassformer_rerun_seconds_count") >= 3
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(timeout=30)
        log.seek(0)
        said = log.read()
        log.close()
    assert {path: path.stat().st_mtime_ns for path in app.rglob("*")} == before
    assert "Traceback" not in said and "Permission denied" not in said
    assert "external IP" not in said, "it asked the world for its own address"
    events = [json.loads(line) for line in said.splitlines()]  # each line is one
    names = [event["event"] for event in events]
    assert names.index("server started") < names.index("run") < names.index("server ends")
    assert not list((data / "tmp").glob("glassformer-*/manager-*")), "what runs left is removed at the end"


def test_the_capacity_plan_follows_from_what_was_measured() -> None:
    first, second = (
        HOSTING.partition(f"<!-- {name} -->")[2].partition("<!-- end")[0] for name in ("measured", "plan")
    )
    one = dict(re.findall(r"^\| (.+) \| ([\d.,]+)%? \|$", first, re.MULTILINE))
    at_once, cores, runs = (int(one[name]) for name in ("people at once", "cores", "runs at once"))
    each = float(one["sent in 2 minutes to 51 tabs, MB"]) / 51 / 120 * 8  # Mbit/s
    rows = [[int(cell.replace(",", "")) for cell in row.split("|")[2:-1]] for row in second.split("\n")[3:-1]]
    assert [row[0] for row in rows] == [300, 1000, 10000]
    for people, *planned in rows:
        servers = -(-people // at_once)
        wanted = [servers, servers * cores, servers * runs, servers * 4, round(people * each)]
        assert planned == wanted, people


def _sums() -> dict[str, tuple[int, int]]:
    """MB of a server by what takes them, for `hosted` and for `small`, as docs/hosting.md promises."""
    rows = _rows("sums").items()
    return {name: (int(one.replace(",", "")), int(other.replace(",", ""))) for name, (one, other) in rows}


def test_the_sums_of_memory_are_those_of_the_profiles_and_fit_the_machines() -> None:
    sums = _sums()
    whole = sums.pop("the whole")
    assert whole == tuple(sum(column) for column in zip(*sums.values(), strict=True))
    assert whole[0] <= 4 * 1000 and whole[1] <= 1000, "4 GB and 1 GB, as the page says"
    for at, name in enumerate(("hosted", "small")):
        profile = PROFILES[name]
        assert (
            sums["results of measurements, of quick and of slow ones"][at] == 2 * profile.measured_bytes // MB
        )
        assert sums["models and texts that were read"][at] == profile.loaded_bytes // MB
        assert (sums["the process that measures"][at] > 0) == bool(profile.measure_workers)
        beside = sums["processes beside it: one that trains at its limit, one that waits"][at]
        assert beside >= profile.max_worker_bytes // MB + 310 * profile.spares, (
            "310 MB each, as measured above"
        )


def test_a_further_server_takes_what_the_page_says() -> None:
    """All but the trainings, which several servers share."""
    sums = _sums()
    shared = sums["processes beside it: one that trains at its limit, one that waits"][0]
    page = (ROOT / "docs" / "operating.md").read_text("utf-8")
    further = float(re.findall(r"Each further server takes up to ([\d.]+) GB", page)[0])
    memory = int(re.findall(r"SERVERS=2 GLASSFORMER_MEMORY=(\d+)g", page)[0])
    assert 0 <= further - (sums["the whole"][0] - shared) / 1000 < 0.1
    assert sums["the whole"][0] / 1000 + further + 0.27 <= memory, "with what holds the runs, and nginx"


@pytest.mark.exhaustive(day=1)
def test_ever_new_texts_in_eight_tabs_hold_no_more_than_the_page_promises() -> None:
    sums = _sums()
    promised = (
        sums["the whole"][1] - sums["processes beside it: one that trains at its limit, one that waits"][1]
    )
    with server("small") as (address, _, process):
        assert aside(texts.fill(address, process, 120.0)) <= promised
