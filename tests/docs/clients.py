"""The workers in docs/examples, each with a stock client, do what they are there to show: claim,
renew, complete, fail."""
import os
import shlex
import shutil
import subprocess
import sys
import time

LINES_MOST = 40
WORK_MS = 6000  # longer than the lease that the workers take
SECONDS = 40


class Missing(Exception):
    """A runtime or a library is not there, and could not be fetched."""


class Client:
    """A worker in one language. `prepare` starts what has to be fetched or built."""

    def __init__(self, examples, out):
        self.source = os.path.join(examples, self.file)
        self.out = os.path.join(out, "docs", self.name)
        self.process = None

    def run_before(self, command):
        """Begins a preparation; ready() waits for its end."""
        os.makedirs(self.out, exist_ok=True)
        self.process = subprocess.Popen(command, shell=True, cwd=self.out, text=True,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT)

    def ready(self):
        if self.process is None:
            return
        try:
            output, _ = self.process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise Missing("%s could not be fetched in time" % self.library)
        if self.process.returncode != 0:
            last = (output.strip().splitlines() or ["no reason given"])[-1]
            raise Missing("%s could not be had: %s" % (self.library, last))


class Python(Client):
    name, file, library = "python", "worker.py", "the PyPI package valkey"

    def prepare(self):
        for self.python in (sys.executable, os.path.join(self.out, "venv", "bin", "python")):
            if self.has_library():
                return
        self.run_before("%s -m venv venv && venv/bin/python -m pip install --quiet "
                        "--disable-pip-version-check valkey" % shlex.quote(sys.executable))

    def has_library(self):
        return os.path.exists(self.python) and subprocess.run(
            [self.python, "-c", "import valkey"], capture_output=True).returncode == 0

    def command(self):
        return [self.python, self.source]


class Node(Client):
    name, file, library = "node", "worker.mjs", "the npm package iovalkey"

    def prepare(self):
        if shutil.which("node") is None:
            raise Missing("there is no node")
        if os.path.isdir(os.path.join(self.out, "node_modules", "iovalkey")):
            return
        if shutil.which("npm") is None:
            raise Missing("there is no npm to fetch iovalkey")
        self.run_before("npm install --loglevel=error --no-audit --no-fund --no-save "
                        "--prefix . iovalkey")

    def command(self):
        # Imports are looked up from where the file is.
        copy = os.path.join(self.out, self.file)
        shutil.copy(self.source, copy)
        return ["node", copy]


class C(Client):
    name, file, library = "c", "worker.c", "hiredis"

    def prepare(self):
        if subprocess.run(["pkg-config", "--exists", "hiredis"]).returncode != 0:
            raise Missing("there is no hiredis")
        self.run_before("cc -std=c17 -O2 -Wall -Wextra -Werror -D_DEFAULT_SOURCE "
                        "$(pkg-config --cflags hiredis) -o worker %s $(pkg-config --libs hiredis)"
                        % shlex.quote(self.source))

    def command(self):
        return [os.path.join(self.out, "worker")]


ALL = [Python, Node, C]


def create(client, lane, kind, payload):
    reply = client("FF.CREATE", "*", lane, kind, "PAYLOAD", payload)
    return dict(zip(reply[::2], reply[1::2]))["execution_id"]


def get(client, execution):
    reply = client("FF.GET", execution, "WITH", "result")
    return dict(zip(reply[::2], reply[1::2]))


class Trial:
    """One worker at work on three executions that it must bring to their ends."""

    WORK = (("echo", "abc"), ("fail", "no such card"), ("sleep", str(WORK_MS)))

    def __init__(self, server, example):
        lane = "lane-" + example.name
        self.client, self.example = server.client, example
        self.work = {kind: create(self.client, lane, kind, payload) for kind, payload in self.WORK}
        os.makedirs(example.out, exist_ok=True)
        self.log = os.path.join(example.out, "worker.log")
        with open(self.log, "w") as log:
            self.worker = subprocess.Popen(example.command() + [str(server.port), lane],
                                           stdin=subprocess.DEVNULL, stdout=log,
                                           stderr=subprocess.STDOUT)

    def ended(self, kind, deadline):
        while True:
            found = get(self.client, self.work[kind])
            if found["state"] in ("completed", "failed") or time.monotonic() > deadline:
                return found
            time.sleep(0.05)

    def check(self, report):
        deadline = time.monotonic() + SECONDS
        echo, failed, slept = (self.ended(kind, deadline) for kind, _ in self.WORK)
        with open(self.example.source) as file:
            lines = len(file.readlines())
        # Work that took longer than the lease ends well only if the lease was renewed.
        for what, held in (
                ("has at most %d lines" % LINES_MOST, lines <= LINES_MOST),
                ("completes", echo["state"] == "completed" and echo["result"] == "abc"),
                ("fails", failed["state"] == "failed"
                 and failed["failure_reason"] == "no such card"),
                ("renews", slept["state"] == "completed" and slept["total_attempt_count"] == 1
                 and slept["completed_at"] - slept["started_at"] >= WORK_MS)):
            report(None if held else "%s: not so: it %s: %s, %s, %s\n%s" % (
                self.example.file, what, echo["state"], failed["state"], slept["state"],
                self.output()))

    def output(self):
        with open(self.log) as log:
            return log.read()[-2000:]

    def stop(self):
        self.worker.terminate()
        self.worker.wait()
