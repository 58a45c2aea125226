"""A RESP2 client and throw-away servers whose wall clock stands still.

Environment: FF_SERVER (default valkey-server), FF_CLOCK (a compiled clock.c;
compiled into a temporary folder when absent), FF_SERVER_PRELOAD (libraries to
load into every server before the clock, such as a sanitizer's run-time)."""
import argparse
import atexit
import ctypes
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
T0_MS = 1767225600000  # 2026-01-01T00:00:00Z: where the clock of every scenario starts
PR_SET_PDEATHSIG = 1
SYNC_CHANNEL = "ff-conformance-sync"


class ServerLost(Exception):
    """The server went away, or never came."""


def encode(argument):
    if isinstance(argument, bytes):
        return argument
    return str(argument).encode("utf-8", "surrogateescape")


class Client:
    """One RESP2 connection. Replies are values that JSON can hold: int, str, None, list,
    {"status": text} and {"error": text}; read(raw=True) leaves bulk strings as bytes."""

    def __init__(self, port):
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.sock.makefile("rb", buffering=1 << 18)
        self.out = []

    def queue(self, *args):
        out = self.out
        out.append(b"*%d\r\n" % len(args))
        for argument in args:
            data = encode(argument)
            out.append(b"$%d\r\n%s\r\n" % (len(data), data))

    def flush(self):
        data = b"".join(self.out)
        self.out = []
        try:
            self.sock.sendall(data)
        except OSError as error:
            raise ServerLost(str(error)) from error

    def read(self, raw=False):
        try:
            line = self.file.readline()
        except OSError as error:
            raise ServerLost(str(error)) from error
        if not line:
            raise ServerLost("connection closed by the server")
        kind, rest = line[:1], line[1:-2]
        if kind == b"$":
            size = int(rest)
            if size < 0:
                return None
            data = self.file.read(size + 2)[:-2]
            return data if raw else data.decode("utf-8", "surrogateescape")
        if kind == b":":
            return int(rest)
        if kind == b"*":
            count = int(rest)
            return None if count < 0 else [self.read(raw) for _ in range(count)]
        if kind == b"+":
            return {"status": rest.decode()}
        if kind == b"-":
            return {"error": rest.decode("utf-8", "surrogateescape")}
        raise ServerLost("unexpected reply %r" % line)

    def __call__(self, *args):
        self.queue(*args)
        self.flush()
        return self.read()

    def pipeline(self, commands, raw=False):
        for command in commands:
            self.queue(*command)
        self.flush()
        return [self.read(raw) for _ in commands]

    def close(self):
        try:
            self.file.close()
        finally:
            self.sock.close()


def clock_library():
    """The path of the compiled clock, compiled once per process when nobody gave one."""
    given = os.environ.get("FF_CLOCK")
    if given:
        return os.path.abspath(given)
    folder = tempfile.mkdtemp(prefix="ff-clock-")
    atexit.register(shutil.rmtree, folder, True)
    path = os.path.join(folder, "clock.so")
    source = os.path.join(HERE, "clock.c")
    subprocess.check_call(["cc", "-shared", "-fPIC", "-O2", "-o", path, source, "-ldl"])
    os.environ["FF_CLOCK"] = path
    return path


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def module_parser(description):
    """What every tool that tests a module can be told."""
    parser = argparse.ArgumentParser(description=description.split("\n\n")[0])
    parser.add_argument("--module", default=os.environ.get("FF_MODULE"),
                        help="the module, with its arguments if any")
    parser.add_argument("--set", nargs=2, action="append", default=[], metavar=("NAME", "VALUE"),
                        help="a configuration line")
    parser.add_argument("--only", default="", help="what has this in its name")
    parser.add_argument("-v", "--verbose", action="store_true", help="show every failure in full")
    return parser


def parsed_options(parser):
    options = parser.parse_args()
    if not options.module:
        parser.error("--module, or FF_MODULE in the environment, says which module to test")
    return options


def ending_with_a_count(main):
    """Run a tool, which returns how many tests passed and how many failed, or nothing if it made no
    tests. SIGTERM ends it as an exception does, so that its servers are cleaned up. Losing a server
    where no test can be blamed is a failure of its own."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    began = time.monotonic()
    try:
        counts = main()
    except ServerLost as error:
        print(error)
        counts = 0, 1
    if counts is None:
        return
    passed, failed = counts
    print("  %.1f s" % (time.monotonic() - began))
    print("%d passed, %d failed" % (passed, failed))
    sys.exit(1 if failed or not passed else 0)


class Clock:
    """The frozen time of one or more servers: a mapped file they all read."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="ff-time-")
        self.path = os.path.join(self.folder, "clock")
        with open(self.path, "wb") as file:
            file.write(struct.pack("q", 0))
        self.set(T0_MS)

    def set(self, ms):
        self.now_ms = ms
        with open(self.path, "r+b") as file:
            file.write(struct.pack("q", ms * 1000))

    def advance(self, ms):
        self.set(self.now_ms + ms)

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)


class Server:
    """A private server on a free port, with its data in a private folder. Without a clock its time
    runs as usual."""

    def __init__(self, clock, module=None, settings=(), folder=None):
        self.folder = tempfile.mkdtemp(prefix="ff-server-")
        self.log = os.path.join(self.folder, "server.log")
        if folder:
            shutil.copytree(folder, os.path.join(self.folder, os.path.basename(folder)))
        preload = [os.environ["FF_SERVER_PRELOAD"]] if os.environ.get("FF_SERVER_PRELOAD") else []
        self.environment = dict(os.environ)
        if clock:
            preload.append(clock_library())
            self.environment["FF_CLOCK_FILE"] = clock.path
        self.environment["LD_PRELOAD"] = ":".join(preload)
        self.module, self.settings = module, list(settings)
        self.client = self.subscriber = None
        try:
            self.start_somewhere()
        except BaseException:
            self.close()
            raise

    def start_somewhere(self):
        for _ in range(5):  # another process may take the port between our look and the bind
            self.start(free_port())
            if self.wait_until_up():
                return
        raise ServerLost("no server came up:\n" + self.log_tail())

    def start(self, port):
        self.port = port
        command = [os.environ.get("FF_SERVER", "valkey-server"), "--port", str(port),
                   "--bind", "127.0.0.1", "--save", "", "--dir", self.folder, "--logfile", self.log,
                   "--enable-debug-command", "local", "--repl-diskless-sync-delay", "0",
                   "--crash-memcheck-enabled", "no",
                   # It would give back memory after every FLUSHALL, of which there are thousands.
                   "--jemalloc-bg-thread", "no"]
        if self.module:
            command += ["--loadmodule"] + self.module.split()
        for name, value in self.settings:
            command += ["--" + name, value]
        self.output = open(self.log + ".out", "ab")
        self.process = subprocess.Popen(command, env=self.environment, stdout=self.output,
                                        stderr=subprocess.STDOUT, preexec_fn=die_with_parent)

    def wait_until_up(self):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                if "Address already in use" in self.log_tail():
                    return False
                raise ServerLost("the server did not start:\n" + self.log_tail())
            try:
                client = Client(self.port)
                if client("PING") == {"status": "PONG"}:
                    self.client = client
                    return True
                client.close()
            except (OSError, ServerLost):
                pass
            time.sleep(0.02)
        return False

    def log_tail(self, size=6000):
        text = ""
        for path in (self.log, self.log + ".out"):
            if os.path.exists(path):
                with open(path, errors="replace") as file:
                    text += file.read()[-size:]
        return text

    def listen(self):
        """From now on published() tells what was published."""
        self.subscriber = Client(self.port)
        self.subscriber("PSUBSCRIBE", "*")
        self.marks = 0

    def queue_mark(self):
        """Queue the message that ends published(); its reply is the client's next."""
        self.marks += 1
        self.client.queue("PUBLISH", SYNC_CHANNEL, str(self.marks))

    def published(self):
        """What was published since the last call, up to the mark, as [channel, payload]."""
        messages = []
        while True:
            message = self.subscriber.read()
            if not isinstance(message, list) or message[0] != "pmessage":
                continue
            channel, payload = message[2], message[3]
            if channel == SYNC_CHANNEL:
                if payload == str(self.marks):
                    return messages
            elif not channel.startswith("__key"):
                messages.append([channel, payload])

    def attach_to(self, primary):
        """Become a replica of another server, and wait for the first sync."""
        self.client("REPLICAOF", "127.0.0.1", primary.port)
        deadline = time.monotonic() + 60
        while "master_link_status:up" not in self.client("INFO", "replication"):
            if time.monotonic() > deadline:
                raise ServerLost("the replica did not sync:\n" + self.log_tail())
            time.sleep(0.02)

    def alive(self):
        return self.process.poll() is None

    def close(self):
        for connection in (self.client, self.subscriber):
            if connection:
                connection.close()
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.output.close()
        shutil.rmtree(self.folder, ignore_errors=True)
