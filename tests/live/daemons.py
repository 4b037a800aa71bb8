"""The processes of the instance under test, found by their command lines."""
import glob
import os

from harness import STATE_DIR


def daemons():
    """Name -> [(pid, parent pid)] of agentboxd and agentbox-podd of this state directory."""
    found = {}
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        pid = path.split("/")[2]
        try:
            with open(path, "rb") as file:
                words = file.read().split(b"\0")
            with open("/proc/%s/stat" % pid, encoding="ascii", errors="replace") as file:
                parent = int(file.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        name = os.path.basename(words[0].decode("utf-8", "replace"))
        if name in ("agentboxd", "agentbox-podd") and any(STATE_DIR.encode() in word for word in words):
            found.setdefault(name, []).append((int(pid), parent))
    return found


def workers(name):
    """Without the supervisor: those whose parent is one of the instance's processes, or all when there is none."""
    everyone = daemons()
    pids = {pid for each in everyone.values() for pid, _ in each}
    mine = everyone.get(name, [])
    return sorted(pid for pid, parent in mine if parent in pids) or sorted(pid for pid, _ in mine)
