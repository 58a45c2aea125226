"""A worker in Python (pip install valkey): python worker.py [port [lane]]"""
import os
import sys
import threading
import time

import valkey

PORT = int(sys.argv[1]) if len(sys.argv) > 1 else 6379
LANE = sys.argv[2] if len(sys.argv) > 2 else "orders"
LEASE_MS = 3000
server = valkey.Valkey(port=PORT, protocol=3, decode_responses=True)


def work(kind, payload):
    """What it raises makes the attempt fail."""
    if kind == "fail":
        raise RuntimeError(payload)
    if kind == "sleep":
        time.sleep(int(payload) / 1000)
    return payload


def renew(fence, done):
    while not done.wait(LEASE_MS / 3000):
        server.execute_command("FF.RENEW", *fence, "LEASE", LEASE_MS)


while True:
    for job in server.execute_command("FF.CLAIM", LANE, "python", "python-%d" % os.getpid(),
                                      "LEASE", LEASE_MS, "BLOCK", 5000):
        fence = [job[name] for name in ("execution_id", "lease_id", "lease_epoch", "attempt_id")]
        done = threading.Event()
        threading.Thread(target=renew, args=(fence, done), daemon=True).start()
        try:
            end = ["FF.COMPLETE", *fence, "RESULT", work(job["kind"], job["payload"])]
        except Exception as error:
            end = ["FF.FAIL", *fence, str(error)]
        done.set()
        print(server.execute_command(*end))
