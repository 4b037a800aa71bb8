"""What every release of PyPI e2b does against the platform: create, run, background, files, watch, PTY, kill. TAP."""
import threading
import time

import e2b

from tap import finish, step

TEMPLATE = "base"


def wait_for(what, ready, seconds=10):
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end, "not within %d s: %s" % (seconds, what)
        time.sleep(0.05)


class Held:
    sandbox = None


@step("create")
def _():
    # 1.x has the constructor alone; there Sandbox.create does not exist.
    make = getattr(e2b.Sandbox, "create", e2b.Sandbox)
    Held.sandbox = make(TEMPLATE, timeout=120, metadata={"release": "release"})
    assert Held.sandbox.is_running()


@step("run")
def _():
    done = Held.sandbox.commands.run("echo out; echo err >&2")
    assert (done.stdout, done.stderr, done.exit_code) == ("out\n", "err\n", 0), done
    try:
        Held.sandbox.commands.run("exit 3")
    except e2b.CommandExitException as error:
        assert error.exit_code == 3
    else:
        raise AssertionError("exit 3 raised nothing")


@step("background: listed, killed")
def _():
    handle = Held.sandbox.commands.run("sleep 600", background=True)
    assert handle.pid in [p.pid for p in Held.sandbox.commands.list()]
    assert handle.kill()
    wait_for("it is gone", lambda: handle.pid not in [p.pid for p in Held.sandbox.commands.list()])


@step("files: written, read, listed, removed")
def _():
    files = Held.sandbox.files
    files.write("release/text", "grüße\n")
    files.write("release/bytes", bytes(range(256)) * 64)
    assert files.read("release/text") == "grüße\n"
    assert bytes(files.read("release/bytes", format="bytes")) == bytes(range(256)) * 64
    assert sorted(entry.name for entry in files.list("release")) == ["bytes", "text"]
    files.remove("release/bytes")
    assert not files.exists("release/bytes")


@step("watch: a new file is told of")
def _():
    handle = Held.sandbox.files.watch_dir("release")
    Held.sandbox.files.write("release/seen", "x")
    events = []

    def told():
        events.extend(handle.get_new_events())
        return any(event.name == "seen" for event in events)

    wait_for("the event", told)
    handle.stop()


@step("PTY: input comes back, the size is right")
def _():
    size = e2b.PtySize(rows=24, cols=77) if hasattr(e2b, "PtySize") else None
    if size is None:
        from e2b.sandbox.commands.command_handle import PtySize
        size = PtySize(rows=24, cols=77)
    handle = Held.sandbox.pty.create(size)
    seen = []
    timer = threading.Timer(20, handle.kill)
    timer.daemon = True
    timer.start()
    Held.sandbox.pty.send_stdin(handle.pid, b"stty size; exit 5\n")
    try:
        handle.wait(on_pty=lambda data: seen.append(bytes(data)))
    except e2b.CommandExitException as error:
        assert error.exit_code == 5, error
    assert b"24 77" in b"".join(seen), seen


@step("kill")
def _():
    assert Held.sandbox.kill() is not False  # 1.x answers None
    assert not Held.sandbox.is_running()


finish()
