"""abx shell as a person has it: a terminal of a sandbox inside a pseudo-terminal of ours; and abx watch."""
import atexit
import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time

from harness import ABX, abx, finish, step, wait_for

ID = abx("create", "--template", "base", "--timeout", "10m").stdout.decode().strip()
atexit.register(lambda: abx("kill", ID, check=False))


class Terminal:
    """abx in a pseudo-terminal of 100 columns and 30 rows; leaves as `code`."""

    def __init__(self, *words, program=ABX, rows=30, cols=100):
        self.master, self.slave = pty.openpty()
        self.resize(rows, cols)
        self.mode = termios.tcgetattr(self.slave)
        self.process = subprocess.Popen([program, *words], stdin=self.slave, stdout=self.slave, stderr=self.slave,
                                        start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.seen = b""
        atexit.register(self.process.kill)

    def resize(self, rows, cols):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def type(self, text):
        os.write(self.master, text.encode())

    def read(self, seconds):
        if select.select([self.master], [], [], seconds)[0]:
            self.seen += os.read(self.master, 65536)

    def expect(self, text, seconds=20):
        end = time.monotonic() + seconds
        while text.encode() not in self.seen:
            assert time.monotonic() < end and self.process.poll() is None, (text, self.seen[-2000:])
            self.read(0.2)
        self.passed, self.seen = self.seen.split(text.encode(), 1)

    def prompt(self):
        """A prompt no command of ours has in it, and the shell's process id."""
        self.type("PS1='rea''dy> '; echo p''id $$.\r")
        self.expect("pid ")
        self.expect("ready> ")
        return self.passed.split(b".")[0].decode()

    def leave(self, seconds=20):
        end = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < end, self.seen[-2000:]
            self.read(0.1)
        self.read(0)
        assert termios.tcgetattr(self.slave) == self.mode, "the terminal is not as it was"
        os.close(self.master)
        os.close(self.slave)
        return self.process.returncode


def inside(*words):
    return subprocess.run([ABX, "exec", ID, "--", *words], stdin=subprocess.DEVNULL, capture_output=True, timeout=60)


def alive(pid):
    return inside("test", "-d", "/proc/" + pid).returncode == 0


@step("shell: a login shell with its size, its terminal and its exit code")
def _():
    shell = Terminal("shell", ID)
    shell.prompt()
    shell.type("stty size; tty; echo $TERM; whoami; pwd\r")
    for text in ("30 100", "/dev/pts/", "xterm-256color", "user", "/home/user", "ready> "):
        shell.expect(text)
    shell.type("exit 7\r")
    assert shell.leave() == 7


@step("shell: what is typed is not shown twice, and nothing is done to it on the way")
def _():
    shell = Terminal("shell", ID)
    shell.prompt()
    shell.type("cat -v\r")
    shell.expect("cat -v\r\n")
    shell.type("a\u00e9\x16\x03b\r")
    shell.expect("aM-CM-)^Cb")
    shell.type("\x04")
    shell.expect("ready> ")
    shell.type("\x04")
    assert shell.leave() == 0


@step("shell: Ctrl-C goes to what runs inside, not to abx")
def _():
    shell = Terminal("shell", ID)
    shell.prompt()
    shell.type("sleep 600\r")
    wait_for("sleep runs", lambda: inside("pgrep", "-x", "sleep").returncode == 0)
    shell.type("\x03")
    shell.expect("ready> ")
    shell.type("echo code $?\r")
    shell.expect("code 130")
    shell.type("exit\r")
    assert shell.leave() == 0


@step("shell: a new size of our terminal is the new size inside")
def _():
    shell = Terminal("shell", ID)
    shell.prompt()
    shell.type("until stty size | grep '41 132'; do sleep 0.1; done\r")
    shell.resize(41, 132)
    shell.expect("\r41 132")
    shell.type("exit\r")
    assert shell.leave() == 0


@step("shell: ~. ends it, ~~ is a tilde, ~? tells; only at the begin of a line")
def _():
    shell = Terminal("shell", ID)
    shell.prompt()
    shell.type("echo a~.b\r")
    shell.expect("a~.b\r\n")
    shell.expect("ready> ")
    shell.type("~?")
    shell.expect("ends this shell")
    shell.type("~~\x7fecho ok\r")
    shell.expect("ok\r\n")
    shell.type("sleep 601\r")
    wait_for("sleep runs", lambda: inside("pgrep", "-x", "sleep").returncode == 0)
    shell.type("\r~.")
    assert shell.leave() == 0
    assert b"left sandbox" in shell.seen, shell.seen
    wait_for("sleep is gone", lambda: inside("pgrep", "-x", "sleep").returncode == 1)


@step("shell: a command instead of the shell, with variables, user and cwd; signals are exit codes")
def _():
    shell = Terminal("shell", ID, "--user", "root", "--cwd", "/tmp", "--env", "GREETING=hello there", "--", "sh", "-c",
                     "echo \"$GREETING $(id -un) $(pwd)\"; exit 3")
    shell.expect("hello there root /tmp")
    assert shell.leave() == 3
    assert Terminal("shell", ID, "--", "sh", "-c", "kill -9 $$").leave() == 137


for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGSEGV):
    @step("shell: %s puts the terminal back and ends what ran inside" % number.name)
    def _():
        shell = Terminal("shell", ID)
        pid = shell.prompt()
        shell.process.send_signal(number)
        code = shell.leave()
        if number == signal.SIGSEGV:
            assert code == -number, code
        else:
            assert code == 128 + number, code
            wait_for("the shell is gone", lambda: not alive(pid))


# What a shell does for its jobs: abx in the foreground, told of when it stops, continued.
JOB = """
import os, signal, sys, termios
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
job = os.fork()
if job == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.argv[1], sys.argv[1:])
print("job %d." % job, flush=True)
os.waitpid(job, os.WUNTRACED)
print("stopped", "cooked" if termios.tcgetattr(0)[3] & termios.ICANON else "raw", flush=True)
os.kill(job, signal.SIGCONT)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(job, 0)[1]))
"""


@step("shell: stopped and continued, the terminal is as it was and then its again")
def _():
    shell = Terminal("-c", JOB, ABX, "shell", ID, program=sys.executable)
    shell.expect("job ")
    shell.expect(".")
    job = int(shell.passed)
    shell.prompt()
    os.kill(job, signal.SIGTSTP)
    shell.expect("stopped cooked")
    wait_for("raw again", lambda: termios.tcgetattr(shell.slave)[3] & termios.ICANON == 0)
    shell.type("exit 5\r")
    assert shell.leave() == 5


@step("shell: a sandbox that ends ends the shell, with an error on a terminal put back")
def _():
    other = abx("create", "--template", "base").stdout.decode().strip()
    shell = Terminal("shell", other)
    shell.prompt()
    abx("kill", other)
    assert shell.leave() == 1
    assert b"error: " in shell.seen, shell.seen


@step("shell: without a terminal, without a sandbox, with none such")
def _():
    done = abx("shell", ID, check=False)
    assert done.returncode == 1 and b"needs a terminal" in done.stderr and b"abx exec" in done.stderr, done
    shell = Terminal("shell", "nosuchsandbox0000000")
    assert shell.leave() == 1 and b"no sandbox" in shell.seen, shell.seen


def watch(*words):
    return subprocess.Popen([ABX, "watch", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def lines_until(process, last):
    found = []
    while last not in found:
        line = process.stdout.readline().decode()
        assert line, (found, process.stderr.read())
        found.append(line.rstrip("\n"))
    return found


def watched(process, make):
    """Runs `make` inside until the watch tells of it: it may not watch yet."""
    while not select.select([process.stdout], [], [], 0.5)[0]:
        assert process.poll() is None, process.stderr.read()
        inside("sh", "-c", make)


@step("watch: events as lines; below the directory only with --recursive")
def _():
    inside("sh", "-c", "rm -rf /tmp/w; mkdir -p /tmp/w/sub")
    flat = watch(ID, "/tmp/w")
    deep = watch("--recursive", ID, "/tmp/w")
    for each in (flat, deep):
        watched(each, "touch /tmp/w/begin")
    inside("sh", "-c", "echo x >/tmp/w/a; echo y >/tmp/w/sub/b; mv /tmp/w/a /tmp/w/c; rm /tmp/w/c; touch /tmp/w/end")
    seen = lines_until(flat, "create  end")
    for line in ("create  a", "write   a", "rename  a", "create  c", "remove  c"):
        assert line in seen, (line, seen)
    assert not any("sub/b" in line for line in seen), seen
    assert "create  sub/b" in lines_until(deep, "create  end")
    for each in (flat, deep):
        each.send_signal(signal.SIGINT)
        assert each.wait(10) == 128 + signal.SIGINT
        assert each.stderr.read() == b""


@step("watch --json: one object a line, with the file")
def _():
    process = watch("--json", ID, "/tmp/w")
    watched(process, "echo 12345 >/tmp/w/$(date +%N)")
    event = json.loads(process.stdout.readline())
    assert event["type"] == "create" and event["entry"]["path"].startswith("/tmp/w/"), event
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 128 + signal.SIGTERM


@step("watch: what is no directory is refused; a sandbox that ends ends the watch")
def _():
    done = abx("watch", ID, "/tmp/none", check=False)
    assert done.returncode == 1 and b"/tmp/none" in done.stderr, done
    process = watch(ID, "/tmp/w")
    watched(process, "touch /tmp/w/begin")
    abx("kill", ID)
    assert process.wait(20) == 1 and b"error: " in process.stderr.read()


finish()
