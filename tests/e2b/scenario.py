"""The official Python E2B SDK, unmodified, against a live instance.

    scenario.py [--patch] [--env NAME] [--only-envd]

The instance is given by the E2B_* variables alone. With --patch, agent-sandbox-e2b's patch_e2b() runs before the SDK
is imported, as its documentation says. Prints TAP: 'ok N - what', 'not ok N - what'.
"""
import argparse
import hashlib
import os
import subprocess
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("--patch", action="store_true")
parser.add_argument("--env", default="base")
parser.add_argument("--connect", help="second process: connect to this sandbox, read its note")
parser.add_argument("--only-envd", action="store_true", help="E2B_DEBUG: no control API, one envd")
args = parser.parse_args()

if args.patch:
    from agent_sandbox_e2b import patch_e2b

    patch_e2b()

import e2b  # noqa: E402
from e2b import CommandExitException, Sandbox  # noqa: E402

from tap import finish, step  # noqa: E402

CREATE = {"timeout": 120, "metadata": {"scenario": "python", "run": str(os.getpid())}}
if args.patch:
    CREATE["secure"] = False


def second_process():
    """What a second program with the same key does: connect by id, use it."""
    sandbox = Sandbox.connect(args.connect)
    assert sandbox.files.read("note.txt") == "from the first process"
    sandbox.files.write("answer.txt", "from the second process")
    print(sandbox.commands.run("echo second").stdout.strip())


if args.connect:
    second_process()
    sys.exit(0)


class Held:
    """What the steps hand on to each other."""
    sandbox = None


def is_listed(sandbox_id):
    """Newer SDKs return a paginator, older ones a list."""
    listed = Sandbox.list()
    while True:
        items = listed.next_items() if hasattr(listed, "next_items") else listed
        if any(item.sandbox_id == sandbox_id for item in items):
            return True
        if not getattr(listed, "has_next", False):
            return False


print("# e2b %s, patch=%s" % (getattr(e2b, "__version__", None) or __import__("importlib.metadata").metadata.version("e2b"),
                              args.patch))


@step("create a sandbox from env %s" % args.env)
def _():
    Held.sandbox = Sandbox.create(args.env, **CREATE)
    assert Held.sandbox.sandbox_id


if Held.sandbox is None:
    finish()
sandbox = Held.sandbox


@step("is_running is true")
def _():
    assert sandbox.is_running() is True


@step("commands.run gives text")
def _():
    result = sandbox.commands.run("echo hello && python3 -c 'print(6 * 7)'")
    assert result.stdout == "hello\n42\n", repr(result.stdout)
    assert result.exit_code == 0
    assert result.stderr == ""


@step("commands.run gives the exit code and stderr")
def _():
    try:
        sandbox.commands.run("echo out; echo bad >&2; exit 7")
    except CommandExitException as error:
        assert error.exit_code == 7, error.exit_code
        assert error.stderr == "bad\n", repr(error.stderr)
        assert error.stdout == "out\n", repr(error.stdout)
    else:
        raise AssertionError("exit 7 was not reported")


@step("commands.run streams through callbacks, with env variables, cwd and UTF-8")
def _():
    seen = []
    result = sandbox.commands.run("echo \"$WORD\"; pwd", envs={"WORD": "grüße 你好"}, cwd="/tmp", on_stdout=seen.append)
    assert "".join(seen) == result.stdout == "grüße 你好\n/tmp\n", (seen, result.stdout)


@step("commands.run as root and as the default user")
def _():
    assert sandbox.commands.run("id -un", user="root").stdout.strip() == "root"
    assert sandbox.commands.run("id -un").stdout.strip() == "user"


@step("a background command is listed, connected to, killed")
def _():
    handle = sandbox.commands.run("echo started; sleep 600", background=True)
    pids = [process.pid for process in sandbox.commands.list()]
    assert handle.pid in pids, (handle.pid, pids)
    other = sandbox.commands.connect(handle.pid)
    assert other.pid == handle.pid
    assert sandbox.commands.kill(handle.pid) is True
    try:
        handle.wait()
    except CommandExitException:
        pass
    deadline = time.monotonic() + 5
    while handle.pid in [process.pid for process in sandbox.commands.list()]:
        assert time.monotonic() < deadline, "still listed five seconds after kill"
        time.sleep(0.05)
    assert sandbox.commands.kill(handle.pid) is False


@step("stdin is sent and read")
def _():
    handle = sandbox.commands.run("read line; echo \"got $line\"", background=True, stdin=True)
    sandbox.commands.send_stdin(handle.pid, "a line\n")
    result = handle.wait()
    assert result.stdout == "got a line\n", repr(result.stdout)


@step("a command's timeout ends it")
def _():
    start = time.monotonic()
    try:
        sandbox.commands.run("sleep 60", timeout=1)
    except e2b.TimeoutException:
        assert time.monotonic() - start < 10
    else:
        raise AssertionError("no TimeoutException")


@step("files: text is written and read")
def _():
    sandbox.files.write("note.txt", "from the first process")
    assert sandbox.files.read("note.txt") == "from the first process"
    assert sandbox.files.exists("note.txt") is True
    assert sandbox.commands.run("cat note.txt").stdout == "from the first process"


@step("files: 10 MB of bytes go in and come back")
def _():
    data = os.urandom(10 * 1024 * 1024)
    sandbox.files.write("/tmp/ten.bin", data)
    digest = hashlib.sha256(data).hexdigest()
    assert sandbox.commands.run("sha256sum < /tmp/ten.bin").stdout.split()[0] == digest
    back = sandbox.files.read("/tmp/ten.bin", format="bytes")
    assert hashlib.sha256(back).hexdigest() == digest


@step("files: directories are made, listed, files renamed and removed")
def _():
    sandbox.files.make_dir("/tmp/tree")
    sandbox.files.write("/tmp/tree/one", "1")
    sandbox.files.write("/tmp/tree/two", "22")
    assert sorted(entry.name for entry in sandbox.files.list("/tmp/tree")) == ["one", "two"]
    sandbox.files.rename("/tmp/tree/two", "/tmp/tree/three")
    assert sorted(entry.name for entry in sandbox.files.list("/tmp/tree")) == ["one", "three"]
    sandbox.files.remove("/tmp/tree/one")
    assert sandbox.files.exists("/tmp/tree/one") is False
    sandbox.files.remove("/tmp/tree")
    assert sandbox.files.exists("/tmp/tree") is False


@step("files: a missing file is the SDK's own error")
def _():
    try:
        sandbox.files.read("/tmp/nothing-here")
    except e2b.NotFoundException:
        pass
    else:
        raise AssertionError("no NotFoundException")


if not args.only_envd:
    @step("get_info carries the metadata and a future end")
    def _():
        info = sandbox.get_info()
        assert info.sandbox_id == sandbox.sandbox_id
        for key, value in CREATE["metadata"].items():
            assert info.metadata[key] == value
        assert info.end_at > info.started_at

    @step("the sandbox is listed")
    def _():
        assert is_listed(sandbox.sandbox_id)

    @step("a second process connects by id and uses it")
    def _():
        command = [sys.executable, os.path.abspath(__file__), "--connect", sandbox.sandbox_id]
        done = subprocess.run(command + (["--patch"] if args.patch else []), capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and done.stdout == "second\n", done.stdout + done.stderr
        assert sandbox.files.read("answer.txt") == "from the second process"

    @step("set_timeout moves the end")
    def _():
        sandbox.set_timeout(600)
        info = sandbox.get_info()
        left = info.end_at.timestamp() - time.time()
        assert 590 <= left <= 602, left

    @step("an unknown env is refused with its name")
    def _():
        try:
            Sandbox.create("no-such-env", timeout=60)
        except e2b.SandboxException as error:
            assert "no-such-env" in str(error), str(error)
        else:
            raise AssertionError("created from an env that does not exist")

    @step("kill is true, then false")
    def _():
        assert sandbox.kill() is True
        assert sandbox.kill() is False
        assert Sandbox.kill(sandbox.sandbox_id) is False

    @step("a killed sandbox is not running and not listed")
    def _():
        assert sandbox.is_running() is False
        assert not is_listed(sandbox.sandbox_id)

finish()
