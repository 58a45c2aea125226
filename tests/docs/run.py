#!/usr/bin/env python3
"""Run the examples of the documentation against a real server and compare.

    run.py --module ff.so --out build            the pages, the reference, the client examples
    run.py --module ff.so --write                put the real replies into the pages instead

Each page gets a server of its own, started as `make run` starts it. See pages.py for how an example
looks. A client example whose runtime or library cannot be had is named, and counts neither as
passed nor as failed."""
import argparse
import glob
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import closing

sys.dont_write_bytecode = True  # the checkout stays as it is
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path.insert(0, os.path.join(HERE, "..", "conformance"))
import clients
import pages
import reference
from plumbing import Server, ServerLost, ending_with_a_count

REFERENCE_PAGE = "docs/commands.md"
SETTINGS_PAGE = "README.md"


class LiveServer(Server):
    """A server whose clock runs."""

    def __init__(self, module):
        self.folder = tempfile.mkdtemp(prefix="ff-docs-")
        self.log = os.path.join(self.folder, "server.log")
        self.environment = dict(os.environ, LD_PRELOAD=os.environ.get("FF_SERVER_PRELOAD", ""))
        self.module, self.settings = module, []
        self.client = self.subscriber = None
        try:
            self.start_somewhere()
        except BaseException:
            self.close()
            raise

    def wait_until_up(self):
        """Somebody else's server may have got the port, and answer there."""
        return super().wait_until_up() and (
            "process_id:%d\r" % self.process.pid in self.client("INFO", "server"))

    def type(self, line):
        """What valkey-cli prints for the line, as it would for a person."""
        environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        done = subprocess.run(["valkey-cli", "-3", "--no-raw", "-p", str(self.port)],
                              input=line + "\n", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env=environment, text=True, timeout=60)
        if not self.alive():
            raise ServerLost("the server died of: %s\n%s" % (line, self.log_tail()))
        lines = [part.rstrip() for part in done.stdout.replace("\r", "").split("\n")]
        while lines and not lines[-1]:
            lines.pop()
        return lines


class Count:
    def __init__(self):
        self.passed = self.failed = 0

    def __call__(self, problem):
        """One thing was looked at; None: it is as it should be."""
        if problem is None:
            self.passed += 1
        else:
            self.failed += 1
            print("  " + problem)


def documented():
    found = glob.glob(os.path.join(ROOT, "docs", "**", "*.md"), recursive=True)
    return sorted(os.path.relpath(path, ROOT) for path in found) + ["README.md"]


def read_lines(page):
    with open(os.path.join(ROOT, page), encoding="utf-8") as file:
        return file.read().split("\n")


def indented(lines):
    return "".join("\n      " + line for line in lines)


def check_page(page, server, report):
    ids = pages.Ids()
    for example in pages.read(read_lines(page)):
        got = server.type(ids.to_real(example.command))
        if pages.agree(example.reply, got, ids):
            report(None)
            continue
        report("%s:%d: %s\n    expected%s\n    got%s"
               % (page, example.first + 1, example.command, indented(example.reply),
                  indented(ids.to_shown(line) for line in got)))
        pages.learn_in_order(example.reply, got, ids)


def write_page(page, server):
    ids, lines, done = pages.Ids(), read_lines(page), 0
    written = []
    for example in pages.read(lines):
        got = server.type(ids.to_real(example.command))
        reply = example.reply
        if not pages.agree(reply, got, ids):
            pages.learn_in_order(reply, got, ids)
            reply = [ids.to_shown(line) for line in got]
        command = example.command
        if "@" in command:
            command = ids.to_shown(ids.to_real(command))
        written += lines[done:example.first] + [pages.PROMPT + command] + reply
        done = example.last
    written += lines[done:]
    if page == REFERENCE_PAGE:
        written = reference.write_facts(server.client, written)
    with open(os.path.join(ROOT, page), "w", encoding="utf-8") as file:
        file.write("\n".join(written))


def check_reference(server, report):
    lines = read_lines(REFERENCE_PAGE)
    reference.check_commands(server.client, lines, pages.read(lines), report)
    reference.check_settings(server.client, read_lines(SETTINGS_PAGE), report)


def check_clients(server, prepared, report):
    trials = []
    try:
        for example in prepared:
            try:
                if isinstance(example, clients.Missing):
                    raise example
                example.ready()
                trials.append(clients.Trial(server, example))
            except clients.Missing as missing:
                print("  NOT RUN: the example of a client: %s" % missing)
        for trial in trials:
            trial.check(report)
    finally:
        for trial in trials:
            trial.stop()


def prepare_clients(out):
    prepared = []
    for kind in clients.ALL:
        example = kind(os.path.join(ROOT, "docs", "examples"), out)
        try:
            example.prepare()
        except clients.Missing as missing:
            example = missing
        prepared.append(example)
    return prepared


def check(module, out, only):
    total = Count()
    prepared = [] if only else prepare_clients(out)
    for page in documented():
        if only not in page or not pages.read(read_lines(page)):
            continue
        count = Count()
        with closing(LiveServer(module + " scanners yes")) as server:
            check_page(page, server, count)
        print("%s: %d of %d examples" % (page, count.passed, count.passed + count.failed))
        total.passed, total.failed = total.passed + count.passed, total.failed + count.failed
    if not only:
        with closing(LiveServer(module)) as server:
            check_reference(server, total)
        with closing(LiveServer(module + " scanners yes")) as server:
            check_clients(server, prepared, total)
    return total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--module", required=True)
    parser.add_argument("--out", help="where client libraries are kept; else a temporary folder")
    parser.add_argument("--only", default="", help="only pages with this in their name")
    parser.add_argument("--write", action="store_true", help="rewrite the pages")
    options = parser.parse_args()
    if options.write:
        for page in documented():
            if options.only in page and pages.read(read_lines(page)):
                with closing(LiveServer(options.module + " scanners yes")) as server:
                    write_page(page, server)
        return
    out = os.path.abspath(options.out or tempfile.mkdtemp(prefix="ff-docs-out-"))
    try:
        total = check(os.path.abspath(options.module), out, options.only)
    finally:
        if not options.out:
            shutil.rmtree(out, ignore_errors=True)
    print("%d passed, %d failed" % (total.passed, total.failed))
    sys.exit(1 if total.failed else 0)


ending_with_a_count(main)
