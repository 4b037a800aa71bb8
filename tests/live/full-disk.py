"""A sandbox that fills the disk of the state directory: others and it can be killed, agentboxd starts, room comes back.

The disk is a small file of its own, and so is the instance on it: it needs AGENTBOX_BIN and root alone.
"""
import atexit
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time

import instance

SIZE = 160  # MiB


def disk():
    """A file system in a file, mounted; None where the machine cannot."""
    folder = tempfile.mkdtemp(prefix="agentbox-disk.", dir="/var/tmp")
    image, mounted = os.path.join(folder, "image"), os.path.join(folder, "disk")
    atexit.register(subprocess.run, ["rm", "-rf", "--one-file-system", folder], check=False)
    os.mkdir(mounted)
    with open(image, "wb") as file:
        file.truncate(SIZE << 20)
    for words in (["mkfs.ext4", "-q", "-F", image], ["mount", "-o", "loop", image, mounted]):
        if subprocess.run(words, capture_output=True).returncode != 0:
            return None
    atexit.register(subprocess.run, ["umount", "-l", mounted], check=False)
    os.chmod(folder, 0o755)
    os.chmod(mounted, 0o755)
    return mounted


place = disk() if os.geteuid() == 0 else None
if not place:
    print("ok 1 - a full disk # SKIP needs root, mkfs.ext4 and a loop device\n1..1")
    sys.exit(0)
with socket.socket() as listener:
    listener.bind(("127.0.0.1", 0))
    free = listener.getsockname()[1]
instance.start(free, place)

from harness import STATE_DIR, Sandbox, e2b, finish, running_ids, step, wait_for, wait_warm  # noqa: E402

instance.make_base()
wait_warm("base")


def room():
    """Bytes that agentboxd's account may still write."""
    found = os.statvfs(STATE_DIR)
    return found.f_bavail * found.f_bsize


def answers():
    try:
        return e2b("GET", "/v2/sandboxes").status == 200
    except OSError:
        return False


filler, other, third = Sandbox(), Sandbox(), Sandbox()


@step("a sandbox fills the disk, and is told by its own error")
def _():
    size = os.statvfs(STATE_DIR)
    assert size.f_blocks * size.f_frsize < 2 * SIZE << 20 and os.stat(STATE_DIR).st_dev == os.stat(place).st_dev
    code, _, err, _ = filler.start("/bin/sh", ["-c", "dd if=/dev/zero of=$HOME/big bs=1M count=%d; sync" % (2 * SIZE)])
    assert b"No space left on device" in err, (code, err)
    filler.sh("dd if=/dev/zero of=$HOME/rest bs=4k count=10000 2>/dev/null; dd if=/dev/zero of=$HOME/last bs=1k count=10000 "
              "2>/dev/null; sync")
    assert room() < 64 << 10, room()


@step("another sandbox is killed, and a third still runs commands")
def _():
    assert other.kill() == 204
    assert other.id not in running_ids()
    assert third.sh("echo here") == "here\n"
    assert filler.sh("echo here") == "here\n"


@step("agentboxd starts on the full disk: killed, and stopped in order")
def _():
    pid = os.path.join(STATE_DIR, "supervise.pid")
    for how in (signal.SIGKILL, signal.SIGTERM):
        with open(pid, encoding="ascii") as file:
            supervisor = int(file.read() or 0)
        os.kill(supervisor, how)
        wait_for("its end", lambda: not os.path.exists("/proc/%d" % supervisor) or
                 open("/proc/%d/stat" % supervisor).read().rsplit(")", 1)[1].split()[0] == "Z")
        instance.again()
        wait_for("its answer", answers)
        assert sorted(running_ids()) == sorted([filler.id, third.id])
        assert filler.sh("echo here") == "here\n"


@step("while one writes on and on, it is killed all the same, and gives its room back")
def _():
    filler.start("/bin/sh", ["-c", "(while :; do cat /dev/zero >>$HOME/more; done) >/dev/null 2>&1 &"])
    time.sleep(0.5)
    assert third.kill() == 204
    assert filler.kill() == 204
    assert running_ids() == []
    wait_for("room on the disk", lambda: room() > SIZE << 19)
    wait_warm("base")
    new = Sandbox()
    assert new.sh("dd if=/dev/zero of=$HOME/some bs=1M count=10 2>/dev/null; stat -c %s $HOME/some") == "10485760\n"
    assert new.kill() == 204


@step("the instance ends, and leaves nothing on the disk")
def _():
    assert instance.stop()
    assert os.listdir(place) == ["lost+found"]


finish()
