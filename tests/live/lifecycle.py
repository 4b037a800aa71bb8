"""Pause, resume, auto-pause, waking by traffic, snapshots and forks, with real sandboxes; the two daemons are killed in
between. Where build/sdk has the PyPI e2b package, its calls are made too.
"""
import json
import os
import signal
import struct
import subprocess
import threading
import time

import daemons
from harness import STATE_DIR, TOP, Sandbox, Skip, e2b, finish, read_stream, step, wait_for, wait_warm

PYTHON = os.path.join(TOP, "build", "sdk", "plain", "bin", "python")


def state(sandbox):
    answer = e2b("GET", "/sandboxes/" + sandbox.id)
    return answer.json["state"] if answer.status == 200 else str(answer.status)


def post(sandbox, what, body=None, expect=204):
    answer = e2b("POST", "/sandboxes/%s/%s" % (sandbox.id, what), body if body is not None else {})
    assert answer.status == expect, "%s of %s: %s" % (what, sandbox.id, answer)
    return answer.json if answer.body else None


def crash(name):
    """kill -9 of one of the two daemons; back when another one serves."""
    was = daemons.workers(name)
    for pid in was:
        os.kill(pid, signal.SIGKILL)

    def is_back():
        now = daemons.workers(name)
        try:
            return now and not set(now) & set(was) and e2b("GET", "/health").status == 204
        except OSError:
            return False
    wait_for(name + " is back", is_back)


def counter(sandbox):
    """Starts a program that counts in memory; gives a function that reads where it is."""
    sandbox.sh("nohup sh -c 'i=0; while :; do i=$((i+1)); echo $i >/tmp/n.new; mv /tmp/n.new /tmp/n; sleep 0.02; done' "
               ">/dev/null 2>&1 &")
    wait_for("the counter", lambda: sandbox.sh("cat /tmp/n 2>/dev/null || true").strip())
    return lambda: int(sandbox.sh("cat /tmp/n"))


def health(sandbox, **more):
    return sandbox.request("GET", "/health", **more).status


@step("a paused sandbox stands still, and goes on where it was")
def _():
    s = Sandbox()
    read = counter(s)
    before = read()
    post(s, "pause")
    assert state(s) == "paused"
    assert health(s) == 502
    listed = {each["sandboxID"]: each["state"] for each in e2b("GET", "/v2/sandboxes?state=paused").json}
    assert listed.get(s.id) == "paused", listed
    time.sleep(1)
    assert post(s, "connect", {"timeout": 300}, expect=201)["sandboxID"] == s.id
    after = read()
    assert before <= after < before + 40, "counted on while it was paused: %d, %d" % (before, after)
    wait_for("it counts again", lambda: read() > after)
    assert state(s) == "running"
    post(s, "pause")
    assert s.kill() == 204, "a paused one can be killed"


@step("a connection that is open stays open over a pause")
def _():
    s = Sandbox()
    done = []
    worker = threading.Thread(target=lambda: done.append(s.start("/bin/sh", ["-c", "for i in 1 2 3 4; do echo $i; sleep 0.3; done"])))
    worker.start()
    time.sleep(0.4)
    post(s, "pause")
    time.sleep(1.5)
    post(s, "resume", expect=201)
    worker.join(30)
    assert done and done[0][0] == 0 and done[0][1] == b"1\n2\n3\n4\n", done
    s.kill()


@step("pausing and resuming fast, and by many at once, ends where it was asked to")
def _():
    s = Sandbox()
    read = counter(s)
    for _ in range(30):
        post(s, "pause")
        post(s, "resume", expect=201)
    before = read()
    statuses = []
    threads = [threading.Thread(target=lambda: statuses.append(e2b("POST", "/sandboxes/%s/pause" % s.id, {}).status)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses.count(204) >= 1 and set(statuses) <= {204, 409}, statuses
    assert state(s) == "paused"
    threads = [threading.Thread(target=lambda: statuses.append(e2b("POST", "/sandboxes/%s/connect" % s.id, {"timeout": 60}).status)) for _ in range(8)]
    statuses.clear()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(statuses) <= {200, 201} and 201 in statuses, statuses
    wait_for("it counts again", lambda: read() > before)
    s.kill()


@step("files only: programs end, files stay, the runtime is armed again")
def _():
    s = Sandbox(secure=True, envVars={"LIFE": "two words"})
    token = e2b("GET", "/sandboxes/" + s.id).json["envdAccessToken"]
    with_token = {"X-Access-Token": token}

    def run(line):
        message = json.dumps({"process": {"cmd": "/bin/sh", "args": ["-c", line]}, "stdin": False}).encode()
        answer = s.request("POST", "/process.Process/Start", struct.pack(">BI", 0, len(message)) + message,
                           headers={"Content-Type": "application/connect+json", "Connect-Protocol-Version": "1", **with_token})
        assert answer.status == 200, str(answer)
        return read_stream(answer.body)[1].decode()

    assert run("echo kept >/home/user/f; echo $LIFE; nohup sleep 1000 >/dev/null 2>&1 &") == "two words\n"
    post(s, "pause", {"memory": False})
    assert state(s) == "paused"
    crash("agentboxd")
    post(s, "resume", {"timeout": 120}, expect=201)
    assert run("cat /home/user/f; echo $LIFE; pgrep -x sleep || echo none") == "kept\ntwo words\nnone\n"
    assert health(s, headers={}) in (200, 204)
    assert s.request("GET", "/files?path=/home/user/f").status == 401, "the token is enforced again"
    s.kill()


@step("a timeout pauses, traffic wakes, and without leave it does not")
def _():
    s = Sandbox(timeout=1, autoPause=True, autoResume={"enabled": True})
    s.sh("cd /tmp && nohup python3 -m http.server 8000 >/dev/null 2>&1 &")
    wait_for("the server", lambda: s.request("GET", "/", port=8000).status == 200)
    wait_for("the auto-pause", lambda: state(s) == "paused", 20)
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(s.request("GET", "/", port=8000).status)) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [200] * 5, answers
    assert state(s) == "running"
    s.kill()
    t = Sandbox(timeout=1, autoPause=True)
    wait_for("the auto-pause", lambda: state(t) == "paused", 20)
    assert health(t) == 502
    assert state(t) == "paused"
    post(t, "connect", {"timeout": 60}, expect=201)
    assert health(t) in (200, 204)
    t.kill()


@step("agentboxd and agentbox-podd may be killed while sandboxes are paused")
def _():
    kept, files = Sandbox(), Sandbox()
    read = counter(kept)
    files.sh("echo here >/home/user/f")
    before = read()
    post(kept, "pause")
    post(files, "pause", {"memory": False})
    for name in ("agentboxd", "agentbox-podd"):
        crash(name)
        assert state(kept) == "paused" and state(files) == "paused"
        assert health(kept) == 502
    post(kept, "resume", expect=201)
    post(files, "resume", expect=201)
    assert before <= read() < before + 40
    assert files.sh("cat /home/user/f") == "here\n"
    kept.kill()
    files.kill()


@step("a snapshot is what the files were, for as many as want it")
def _():
    s = Sandbox()
    s.sh("echo one >/home/user/a; sudo sh -c 'echo sys >/usr/local/mine; rm -f /etc/motd; chown 1234 /home/user/a'")
    made = post(s, "snapshots", {}, expect=201)
    assert made["names"] == []
    s.sh("echo later >/home/user/b")
    copies = [Sandbox(made["snapshotID"]) for _ in range(2)]
    for copy in copies:
        assert copy.sh("cat /home/user/a /usr/local/mine; stat -c %u /home/user/a; ls /home/user/b 2>/dev/null || echo no") == \
            "one\nsys\n1234\nno\n"
    copies[0].sh("sudo sh -c 'echo changed >/home/user/a'")
    assert copies[1].sh("cat /home/user/a") == "one\n"
    assert s.sh("cat /home/user/a") == "one\n"
    second = post(copies[0], "snapshots", {"name": "life-second"}, expect=201)
    again = Sandbox(second["names"][0])
    assert again.sh("cat /home/user/a /usr/local/mine") == "changed\nsys\n"
    path = "/templates/" + made["snapshotID"].replace(":", "%3A")
    assert e2b("DELETE", path).status == 400, "in use"
    for each in [s, *copies]:
        each.kill()
    wait_for("nobody uses it", lambda: e2b("DELETE", path).status == 204)
    assert again.sh("cat /usr/local/mine") == "sys\n", "what stands on a deleted one lives on"
    again.kill()
    wait_for("it can be deleted", lambda: e2b("DELETE", "/templates/" + second["names"][0].replace("/", "%2F")).status == 204)
    assert not [each for each in e2b("GET", "/snapshots").json if "life-second" in each["snapshotID"]]


@step("a snapshot is whole while programs write")
def _():
    s = Sandbox()
    s.sh("mkdir /tmp/w; nohup sh -c 'i=0; cd /tmp/w; while :; do i=$((i+1)); echo $i >t; mv t x; echo $i >t; mv t y; done' "
         ">/dev/null 2>&1 &")
    time.sleep(0.5)
    made = post(s, "snapshots", {}, expect=201)
    copy = Sandbox(made["snapshotID"])
    x, y = (int(copy.sh("cat /tmp/w/" + name)) for name in "xy")
    assert 0 <= x - y <= 1, (x, y)
    copy.kill()
    s.kill()
    wait_for("it is deleted", lambda: e2b("DELETE", "/templates/" + made["snapshotID"].replace(":", "%3A")).status == 204)


@step("snapshots outlive both daemons")
def _():
    s = Sandbox()
    s.sh("echo durable >/home/user/d")
    made = post(s, "snapshots", {}, expect=201)
    s.kill()
    for name in ("agentboxd", "agentbox-podd"):
        crash(name)
    copy = Sandbox(made["snapshotID"])
    assert copy.sh("cat /home/user/d") == "durable\n"
    copy.kill()
    wait_for("it is deleted", lambda: e2b("DELETE", "/templates/" + made["snapshotID"].replace(":", "%3A")).status == 204)


@step("forks have the files and the variables, and their own life")
def _():
    s = Sandbox(envVars={"WHO": "origin"}, metadata={"kind": "forked"})
    s.sh("echo shared >/home/user/s")
    results = e2b("POST", "/sandboxes/%s/fork" % s.id, {"count": 2, "timeout": 60}, timeout=120)
    assert results.status == 201, str(results)
    forks = [Sandbox.of(each["sandbox"]["sandboxID"]) for each in results.json]
    assert len({s.id, *(fork.id for fork in forks)}) == 3
    for fork in forks:
        assert fork.sh("cat /home/user/s; echo $WHO") == "shared\norigin\n"
        assert e2b("GET", "/sandboxes/" + fork.id).json["metadata"] == {"kind": "forked"}
    forks[0].sh("echo other >/home/user/s")
    assert s.sh("cat /home/user/s") == forks[1].sh("cat /home/user/s") == "shared\n"
    post(forks[1], "pause", {"memory": False})
    post(forks[1], "resume", {"timeout": 60}, expect=201)
    assert forks[1].sh("cat /home/user/s") == "shared\n", "it can start from files of a snapshot that is gone"
    for each in [s, *forks]:
        each.kill()


@step("nothing of it is left")
def _():
    def leftovers():
        layers = os.path.join(STATE_DIR, "podd", "layers")
        try:
            return [name for name in os.listdir(layers) if name.startswith("snap-")] + os.listdir(os.path.join(STATE_DIR, "podd", "snapshots"))
        except PermissionError:
            raise Skip("needs root to look into " + layers) from None
    wait_for("the layers are gone", lambda: not leftovers(), 60)
    wait_warm("base")


@step("the released SDK pauses, connects, snapshots and forks")
def _():
    if not os.path.exists(PYTHON):
        raise Skip("no PyPI e2b package in build/sdk (tests/e2b/run --install-only)")
    program = """
import time
from e2b import Sandbox, SandboxState
s = Sandbox.create("base", timeout=60)
s.files.write("/home/user/t", "hello")
s.pause()
assert not s.is_running()
assert s.get_info().state == SandboxState.PAUSED
assert s.connect().is_running()
assert s.files.read("/home/user/t") == "hello"
shot = s.create_snapshot()
assert any(each.snapshot_id == shot.snapshot_id for each in Sandbox.list_snapshots(sandbox_id=s.sandbox_id).next_items())
copy = Sandbox.create(shot.snapshot_id)
assert copy.files.read("/home/user/t") == "hello"
copy.kill()
assert Sandbox.delete_snapshot(shot.snapshot_id) is True
assert Sandbox.delete_snapshot(shot.snapshot_id) is False
(fork,) = s.fork()
assert fork.files.read("/home/user/t") == "hello" and fork.sandbox_id != s.sandbox_id
fork.kill()
s.kill()
print("fine")
"""
    done = subprocess.run([PYTHON, "-c", program], capture_output=True, timeout=120)
    assert done.stdout == b"fine\n", done.stderr.decode()[-3000:]


finish()
