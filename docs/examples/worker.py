"""A worker in Python (pip install valkey): python worker.py [port lane]"""
import os, sys, threading, time
import valkey

PORT, LANE = sys.argv[1:3] or (6379, "orders")
LEASE_MS = 5000
server = valkey.Valkey(port=int(PORT), protocol=3, decode_responses=True)

def send(*command):
    try:
        return server.execute_command(*command)
    except valkey.ResponseError as refusal:  # such as a lease that was lost
        return refusal

def work(kind, payload):
    """What it raises makes the attempt fail."""
    if kind == "fail":
        raise RuntimeError(payload)
    if kind == "sleep":
        time.sleep(int(payload) / 1000)
    return payload

def renew(fence, done):
    while not done.wait(LEASE_MS / 3000):
        send("FF.RENEW", *fence, "LEASE", LEASE_MS)

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
        print(send(*end), flush=True)
