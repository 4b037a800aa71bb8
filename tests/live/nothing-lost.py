"""Show 6: kill -9 of agentboxd and of agentbox-podd at random moments of creates, swaps and returns.

After each restart every acknowledged sandbox is there and usable, none belongs to two, and what was not acknowledged
can still be killed and comes back to the pool.
    nothing-lost.py [ROUNDS [SANDBOXES [SEED]]]
"""
import http.client
import os
import random
import signal
import sys
import threading
import time
import uuid

import daemons
import oci
from harness import BASE, STATE_DIR, Sandbox, abx, e2b, finish, native, note, pools, ready_idle, request, running_ids, step, wait_for, wait_warm

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 50
SANDBOXES = int(sys.argv[2]) if len(sys.argv) > 2 else 50
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else random.SystemRandom().randrange(1 << 32)
LAYOUT = os.path.join(STATE_DIR, "images", "swapped")
IMAGE = "oci:" + LAYOUT
oci.write_layout(LAYOUT, [list(oci.busybox_files())])
chance = random.Random(SEED)
note("seed %d, %d rounds, %d sandboxes, swaps to %s" % (SEED, ROUNDS, SANDBOXES, IMAGE))

ENV = "crash"
MANIFEST = """
apiVersion: agents.navix.sh/v1alpha1
kind: SandboxEnv
metadata:
  name: crash
spec:
  templateRef:
    name: base
  mode: WarmPool
  overrides:
    podCreationImagePolicy: PoolDefaultImage
  clusters:
    - clusterID: %s
      members:
        - name: crash-1c256mi
          config:
            scalingGroup: 1c256mi
            inlineResources:
              requests: {cpu: "1", memory: 256Mi}
              limits: {cpu: "1", memory: 256Mi}
          spec:
            replicas: %d
"""


class Ledger:
    """What the platform acknowledged: id -> the word written into it."""

    def __init__(self):
        self.lock = threading.Lock()
        self.held, self.killed, self.dropped = {}, set(), set()


ledger = Ledger()
stop = threading.Event()


def churn(number):
    """Creates, swaps and returns without pause; whatever breaks on the way is not acknowledged."""
    mine = random.Random(SEED + number)
    while not stop.is_set():
        template = ENV + ("//" + IMAGE if mine.random() < 0.3 else "")
        sandbox = None
        try:
            sandbox = Sandbox(template, timeout=600)
            with ledger.lock:
                ledger.held[sandbox.id] = None
            if mine.random() < 0.9:
                with ledger.lock:
                    ledger.held.pop(sandbox.id)
                    ledger.dropped.add(sandbox.id)  # asked to end; may or may not have been heard
                if sandbox.kill() in (204, 404):
                    with ledger.lock:
                        ledger.dropped.discard(sandbox.id)
                        ledger.killed.add(sandbox.id)
        except (OSError, http.client.HTTPException, AssertionError, ValueError):
            time.sleep(0.05)


def up():
    try:
        return request("GET", BASE + "/ping", timeout=5).status == 200 and e2b("GET", "/v2/sandboxes", timeout=10).status == 200
    except (OSError, http.client.HTTPException):
        return False


def kill_one(name):
    pids = daemons.workers(name)
    assert pids, "no %s runs" % name
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    return pids


def check_all(words):
    """Every acknowledged sandbox is listed once, answers, and still holds its own word."""
    listed = running_ids()
    assert len(listed) == len(set(listed)), "an id is listed twice"
    with ledger.lock:
        held = dict(ledger.held)
    lost = [each for each in held if each not in listed]
    assert not lost, "acknowledged and gone: %s" % lost
    undead = [each for each in listed if each in ledger.killed]
    assert not undead, "killed and back: %s" % undead
    for each, word in words.items():
        assert Sandbox.of(each).sh("cat /tmp/word") == word, "sandbox %s holds another's word" % each
    pods = [row["podName"] for row in native("GET", "/sandboxes?status=Running&limit=1000").json["items"] if row.get("podName")]
    assert len(pods) == len(set(pods)), "a Pod belongs to two sandboxes"


words = {}


@step("an env with room for %d sandboxes is warm" % (SANDBOXES + 10))
def _():
    cluster = native("GET", "/clusters").json["clusters"][0]["id"]
    abx("create", "envs", "-f", "-", stdin=(MANIFEST % (cluster, SANDBOXES + 10)).encode())
    wait_warm(ENV, 300)


streams = []


def stream(sandbox, seen):
    """A stream that stays open: counts what it hears until it breaks."""
    try:
        seen.append(sandbox.start("/bin/sh", ["-c", "while sleep 0.2; do echo tick; done"]))
    except (OSError, http.client.HTTPException, AssertionError, ValueError):
        seen.append(None)


@step("%d sandboxes run, each with its word and an open stream" % SANDBOXES)
def _():
    for _ in range(SANDBOXES):
        sandbox = Sandbox(ENV, timeout=1800)
        word = str(uuid.uuid4())
        sandbox.sh("printf %s " + word + " > /tmp/word")
        words[sandbox.id] = word
        ledger.held[sandbox.id] = word
        threading.Thread(target=stream, args=(sandbox, streams), daemon=True).start()


threads = [threading.Thread(target=churn, args=(number,), daemon=True) for number in range(4)]


@step("%d times kill -9 at a random moment: nothing acknowledged is lost, none belongs to two" % ROUNDS)
def _():
    for thread in threads:
        thread.start()
    slowest = 0
    for number in range(ROUNDS):
        name = ("agentboxd", "agentbox-podd")[number % 2]
        time.sleep(chance.uniform(0.02, 0.6))
        start = time.monotonic()
        old = kill_one(name)
        wait_for("%s is back" % name, lambda: daemons.workers(name) and daemons.workers(name) != old and up(), 30, 0.02)
        slowest = max(slowest, time.monotonic() - start)
        if number % 5 == 4 or number == ROUNDS - 1:
            check_all(words if number == ROUNDS - 1 else dict(list(words.items())[:8]))
    note("slowest return to service %.2f s; %d killed on the way" % (slowest, len(ledger.killed)))


@step("afterwards all can be killed, and every Pod comes back idle")
def _():
    stop.set()
    for thread in threads:
        thread.join(150)
        assert not thread.is_alive(), "a create or kill never returned"
    check_all(words)
    for each in running_ids():
        assert Sandbox.of(each).kill() in (204, 404)
    assert running_ids() == []
    wait_for("all Pods idle", lambda: all(ready_idle(pool) == pool["spec"]["replicas"] and
                                          pool["status"].get("runningReplicas", 0) == 0 for pool in pools(ENV)), 120)


@step("the env can be deleted, and its Pods go")
def _():
    abx("delete", "envs", ENV)
    wait_for("env %s is gone" % ENV, lambda: native("GET", "/envs/" + ENV).status == 404, 60)


finish()
