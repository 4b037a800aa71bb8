"""Show 6: 300 create/kill cycles leave no process, mount, namespace, cgroup, folder or descriptor behind."""
import glob
import hashlib
import os
import sys
import time

from daemons import daemons
from harness import STATE_DIR, Sandbox, e2b, finish, note, running_ids, step, wait_warm

CYCLES = int(sys.argv[1]) if len(sys.argv) > 1 else 300


# What podd marks as this instance's (docs/architecture.md): other instances may run on the machine.
TAG = hashlib.sha256(os.path.realpath(STATE_DIR).encode()).hexdigest()[:4]


def read(path):
    try:
        with open(path, errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def cgroups():
    for top in glob.glob("/sys/fs/cgroup/agentbox-" + TAG) + glob.glob("/sys/fs/cgroup/*/agentbox-" + TAG):
        for folder, _, _ in os.walk(top):
            yield folder


def processes():
    """Those in the instance's cgroups, and those that name its state directory."""
    pids = {pid for folder in cgroups() for pid in read(folder + "/cgroup.procs").split()}
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        if STATE_DIR in read(path) and int(path.split("/")[2]) != os.getpid():
            pids.add(path.split("/")[2])
    return pids


def namespaces(pids):
    seen = {}
    for kind in ("net", "mnt", "pid", "ipc", "uts", "user", "cgroup"):
        ids = set()
        for pid in pids:
            try:
                ids.add(os.readlink("/proc/%s/ns/%s" % (pid, kind)))
            except OSError:
                pass
        seen["namespaces " + kind] = len(ids)
    return seen


def measure():
    """What the instance holds, as counts that must come back to where they were."""
    pids = processes()
    result = namespaces(pids)
    result["processes"] = len(pids)
    result["mounts"] = read("/proc/self/mountinfo").count("\n")
    result["cgroups"] = sum(1 for _ in cgroups())
    assert result["cgroups"], "no cgroup agentbox-%s: the instance would not be counted" % TAG
    result["network devices"] = sum(name.startswith("ab" + TAG) for name in os.listdir("/sys/class/net"))
    for folder, names, files in os.walk(STATE_DIR):
        if os.path.relpath(folder, STATE_DIR).count(os.sep) <= 1:
            result["folder " + os.path.relpath(folder, STATE_DIR)] = len(names) + len(files)
    for name, pids in daemons().items():
        for number, (pid, _, _) in enumerate(sorted(pids)):
            result["descriptors %s %d" % (name, number)] = len(os.listdir("/proc/%d/fd" % pid))
            maps = open("/proc/%d/smaps_rollup" % pid).read()
            result["memory %s %d" % (name, number)] = int(maps.split("Pss:")[1].split()[0])
    return result


def cycle():
    sandbox = Sandbox("base", timeout=60)
    assert sandbox.sh("echo cycle") == "cycle\n"
    assert sandbox.kill() == 204


def grown(before, after):
    worse = []
    for name, value in after.items():
        if name.startswith("memory "):
            allowed = max(4096, before.get(name, 0) // 4)  # KiB: an allocator's own growth, not 300 leaks
        else:
            allowed = 2 if name.startswith("descriptors ") else 0  # kept connections come and go
        if value > before.get(name, 0) + allowed:
            worse.append("%s: %d, was %d" % (name, value, before.get(name, 0)))
    return worse


@step("%d create/kill cycles leave nothing behind" % CYCLES)
def _():
    assert running_ids() == [], "sandboxes of others run here: the counts would be theirs"
    assert daemons(), "no daemon with %s in its command line" % STATE_DIR
    wait_warm("base")
    for _ in range(10):
        cycle()  # what is made once is made before the counting
    wait_warm("base")
    before = measure()
    for _ in range(CYCLES):
        cycle()
    wait_warm("base")
    for _ in range(40):  # returns end off the caller's path
        if not grown(before, measure()):
            break
        time.sleep(0.5)
    after = measure()
    for name in sorted(after):
        if after[name] != before.get(name):
            note("%s: %s -> %s" % (name, before.get(name), after[name]))
    worse = grown(before, after)
    assert not worse, "; ".join(worse)


@step("kill twice is 204, then 404")
def _():
    sandbox = Sandbox("base", timeout=60)
    assert e2b("DELETE", "/sandboxes/" + sandbox.id).status == 204
    assert e2b("DELETE", "/sandboxes/" + sandbox.id).status == 404


finish()
