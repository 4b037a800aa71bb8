"""The processes of the instance under test, found by their command lines."""
import glob
import os

from harness import STATE_DIR


def daemons():
    """Name -> [(pid, parent pid, command line)] of agentboxd and agentbox-podd of this state directory."""
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
            found.setdefault(name, []).append((int(pid), parent, words))
    return found


def workers(name):
    """The one the supervisor keeps running; not what it forked for a moment, which has the same command line."""
    everyone = [one for each in daemons().values() for one in each]
    supervisors = {pid for pid, parent, words in everyone if b"--supervise" in words}
    return sorted(pid for pid, parent, words in daemons().get(name, []) if parent in supervisors)
