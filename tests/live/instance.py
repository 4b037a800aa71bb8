"""An instance that is a test's own, where the machine or its disk must be out of the ordinary.

start() points harness.py's variables to it, so it comes before harness.py is imported. Needs AGENTBOX_BIN and root.
It is ended when the process is, and its state removed.
"""
import atexit
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

folder = ""  # its state directory, in a folder of its own
words = []  # that it was started with


def agentboxd(*more):
    program = os.path.join(os.environ["AGENTBOX_BIN"], "..", "sbin", "agentboxd")
    return subprocess.run([program, "--state-dir", folder, *more], capture_output=True, text=True)


def again():
    """Starts it, anew or after it was killed."""
    done = agentboxd(*words)
    assert done.returncode == 0, done.stderr


def stop():
    """True when it said that it ended well."""
    if not os.path.isdir(folder):
        return True
    done = agentboxd("--stop", "--purge")
    subprocess.run(["rm", "-rf", "--one-file-system", folder], check=False)
    return done.returncode == 0


def start(port, parent="/var/tmp"):
    global folder
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was registered runs
    folder = tempfile.mkdtemp(prefix="agentbox-test.", dir=parent)
    os.chmod(folder, 0o755)
    atexit.register(stop)
    words[:] = ["--supervise", "--daemon", "--engine", "local", "--listen", "127.0.0.1:%d" % port]
    again()
    keys, end = os.path.join(folder, "keys.json"), time.monotonic() + 20
    while not os.path.exists(keys) and time.monotonic() < end:
        time.sleep(0.1)
    with open(keys, encoding="ascii") as file:
        key = json.load(file)
    # Nothing of another instance's is left to fall back to.
    for name in [name for name in os.environ if name.startswith(("AGENTBOX_", "E2B_")) and name != "AGENTBOX_BIN"]:
        del os.environ[name]
    base = "http://127.0.0.1:%d" % port
    os.environ.update({"AGENTBOX_STATE_DIR": folder, "AGENTBOX_CLUSTER_API": base, "E2B_API_KEY": key["e2b"],
                       "E2B_API_URL": base + "/agent-sandbox/api/e2b", "AGENTBOX_API_KEY": key["agbx"],
                       "AGENTBOX_SOCKET": os.path.join(folder, "agentboxd.sock")})


def make_base():
    """The template and env `base` of the samples."""
    top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    for what in ("template", "env"):
        subprocess.run([os.path.join(os.environ["AGENTBOX_BIN"], "abx"), "create", what + "s", "-f",
                        "%s/deploy/samples/base_sandbox%s.yaml" % (top, what)], check=True, capture_output=True)
