"""Serves the app from $SERVERS processes: `SERVERS=2 sh deploy/start.sh`. nginx listens on $PORT and leads a
browser always to the same server, server N listens on port $PORT + N of this computer alone, and one process
more holds the runs of all, where $GLASSFORMER_RAY names no cluster for them.

A process that was killed is started again. One that gives up by itself ends the whole, and its last words say
why: what started this (Docker, systemd) starts it anew.
"""

from __future__ import annotations

import logging
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from engine.errors import ConfigError
from runs.process_guards import die_with
from ui.operate import log

CONF = Path(__file__).with_name("nginx.conf")
MOST = 64  # servers
AGAIN = 10.0  # seconds from a start of a process to the next one
END_SECONDS = 10.0  # in which a process that was told to end does so
TRUSTED = dict.fromkeys(("", "no", "false", "off"), 0) | dict.fromkeys(("yes", "true", "on"), 1)
NGINX = "/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin:/opt/homebrew/bin"
ARGUMENTS = ("-e", "stderr", "-g", "daemon off;")
TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")  # folders that nginx wants
LOG = logging.getLogger("glassformer.servers")


class Program(NamedTuple):
    """A process to run: its command, and what its environment has beside this one's."""

    command: list[str]
    more: Mapping[str, str]


def main() -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    try:
        log.arrange()
        with tempfile.TemporaryDirectory(prefix="glassformer-servers-") as folder:
            supervise(programs(Path(folder), os.environ))
    except (ConfigError, OSError, ValueError) as error:
        sys.exit(f"The servers cannot be started: {error}")


def programs(folder: Path, environment: Mapping[str, str]) -> dict[str, Program]:
    """Returns what to run by name, and writes nginx's configuration into the folder. Raises ValueError for a
    setting that does not go with several servers, OSError where nothing can be written.
    """
    count, port = number(environment, "SERVERS", "", MOST), number(environment, "PORT", "8501", 65535 - MOST)
    profile = environment.get("GLASSFORMER_PROFILE") or "hosted"
    if profile != "hosted":
        raise ValueError(f"GLASSFORMER_PROFILE={profile} has one server: several go with hosted")
    nginx = shutil.which("nginx", path=f"{environment.get('PATH', '')}:{NGINX}")
    if nginx is None:
        raise ValueError("install nginx, which leads a browser to its server (apt-get install nginx-light)")
    told = environment.get("GLASSFORMER_TRUST_PROXY", "").strip().lower()
    trust = str(TRUSTED.get(told, told))
    if trust.isdecimal():  # else the servers say what is wrong with it
        trust = str(int(trust) + 1)
    common, found = {"GLASSFORMER_PROFILE": profile, "GLASSFORMER_TRUST_PROXY": trust}, {}
    folder.chmod(0o711)  # started by root, nginx has another user's processes
    if not environment.get("GLASSFORMER_RAY", "").strip():
        (folder / "runs").mkdir(mode=0o700)
        common["GLASSFORMER_RUNS"] = str(folder / "runs")
        command = [sys.executable, "-m", "deploy.run_service", str(folder / "runs")]
        found["the process that holds the runs"] = Program(command, common)
    host, colon, metrics = environment.get("GLASSFORMER_METRICS", "").rpartition(":")
    ports = range(port + 1, port + count + 1)
    for at, own in enumerate(ports):
        command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(own)]
        command += ["--server.address", "127.0.0.1", "--server.headless", "true"]
        command += ["--logger.hideWelcomeMessage", "true"]
        said = {"GLASSFORMER_METRICS": f"{host}{colon}{int(metrics) + at}"} if metrics.isdecimal() else {}
        found[f"server {at + 1}"] = Program(command, common | said)
    address = environment.get("ADDRESS") or "0.0.0.0"
    listen = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
    (folder / "nginx.conf").write_text(configuration(listen, ports, folder, trust != "1"), "utf-8")
    found["nginx"] = Program([nginx, *ARGUMENTS, "-p", str(folder), "-c", str(folder / "nginx.conf")], {})
    return found


def number(environment: Mapping[str, str], name: str, default: str, most: int) -> int:
    """Returns the number in a variable. Raises ValueError for none, and for one not from 1 to `most`."""
    text = environment.get(name) or default
    if not (text.isascii() and text.isdecimal() and 0 < int(text) <= most):
        raise ValueError(f"{name}={text} is not a number from 1 to {most}")
    return int(text)


def configuration(listen: str, ports: Sequence[int], folder: Path, proxied: bool = False) -> str:
    """Returns deploy/nginx.conf for servers at ports of this computer, with nginx's files in a folder.
    `proxied` keeps what another proxy before this one says of a visitor's address and of TLS.
    """
    text = CONF.read_text("utf-8")
    examples = re.findall(r"^ +server 127\.0\.0\.1:\d+ .*\n", text, re.MULTILINE)
    # A server of this machine that is not there refuses at once. Were it left out for a while instead, one
    # that starts would be asked once in five seconds, and a 502 told where all are left out.
    upstream = (f"        server 127.0.0.1:{port} max_fails=0;\n" for port in ports)
    text = text.replace("".join(examples), "".join(upstream)).replace("listen 8080;", f"listen {listen};")
    paths = "".join(f'    {name}_temp_path "{folder}/{name}";\n' for name in TEMPORARY)
    text = text.replace("http {\n", "http {\n" + paths)
    if proxied:
        text = text.replace("-For $remote_addr;", "-For $proxy_add_x_forwarded_for;")
    else:
        text = text.replace("-Proto $forwarded_proto;", "-Proto $scheme;")
    return f'pid "{folder}/pid";\n{text}'


def supervise(programs: Mapping[str, Program]) -> None:
    """Runs programs, those that were killed again, until one gives up or this process is told to end."""
    running: dict[str, subprocess.Popen[bytes]] = {}
    started = dict.fromkeys(programs, -math.inf)
    try:
        while True:
            for name, program in programs.items():
                process = running.get(name)
                code = None if process is None else process.poll()
                if code is not None and code > 0:
                    LOG.error("%s ended with code %d: so do the others", name, code)
                    sys.exit(code)
                if (process is None or code is not None) and time.monotonic() - started[name] >= AGAIN:
                    if code is not None:
                        LOG.warning("%s was killed (%d) and is started again", name, -code)
                    running[name], started[name] = start(program), time.monotonic()
            time.sleep(0.2)
    finally:
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, signal.SIG_IGN)
        end(list(running.values()))


def start(program: Program) -> subprocess.Popen[bytes]:
    """Starts a program that ends with this process, in a session of its own: Ctrl-C in a terminal reaches
    this process alone.
    """
    with_us = partial(die_with, os.getpid(), signal.SIGTERM)
    environment = os.environ | program.more
    return subprocess.Popen(program.command, env=environment, start_new_session=True, preexec_fn=with_us)


def end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Tells all to end, and kills what does not."""
    for process in processes:
        process.terminate()
    until = time.monotonic() + END_SECONDS
    for process in processes:
        try:
            process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()
