"""Issue 2: "link it, call create, get a sandbox": programs with no settings, and no engine that runs.

Each step has a state directory of its own; the instance of the other tests is left alone. The program is README's, built
as README says, with pkg-config against the installed library.
"""
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading

from harness import ABX, TOP, finish, note, step, wait_for

PREFIX = os.path.dirname(os.environ["AGENTBOX_BIN"])
AGENTBOXD = os.path.join(PREFIX, "sbin", "agentboxd")
WORK = tempfile.mkdtemp(prefix="agentbox-embed.", dir="/var/tmp")
os.chmod(WORK, 0o755)


def environment(state, **more):
    """What a newcomer's program has: nothing of ours, but the state directory."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("AGENTBOX_", "E2B_"))}
    env.update({"AGENTBOX_STATE_DIR": state, "HOME": WORK, "LD_LIBRARY_PATH": os.path.join(WORK, "lib")}, **more)
    return env


def run(state, *words, timeout=90, user=None, **more):
    return subprocess.run(words, env=environment(state, **more), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=timeout, user=user, cwd="/")


def build():
    """README's program, and embedded.c."""
    source = os.path.join(WORK, "readme.c")
    with open(os.path.join(TOP, "README.md"), encoding="utf-8") as file:
        code = re.search(r"```c\n(.*?)```", file.read(), re.S).group(1)
    with open(source, "w", encoding="utf-8") as file:
        file.write(code)
    shutil.copytree(os.path.join(PREFIX, "lib"), os.path.join(WORK, "lib"), symlinks=True)
    env = dict(os.environ, PKG_CONFIG_PATH=os.path.join(PREFIX, "lib", "pkgconfig"))
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "libagentbox"], env=env, check=True, capture_output=True,
                           text=True).stdout.split()
    for name, path in (("readme", source), ("embedded", os.path.join(TOP, "tests", "live", "embedded.c"))):
        subprocess.run([os.environ.get("CC", "cc"), "-Wall", "-Werror", "-o", os.path.join(WORK, name), path, *flags],
                       check=True)


README, EMBEDDED = os.path.join(WORK, "readme"), os.path.join(WORK, "embedded")


def fresh(name):
    return os.path.join(WORK, name)


def processes(state):
    """(pid, words) of every process that names the directory, but for ours."""
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        pid = int(path.split("/")[2])
        try:
            with open(path, "rb") as file:
                words = file.read().decode("utf-8", "replace").split("\0")
        except OSError:
            continue
        if pid != os.getpid() and any(word == state or word.startswith(state + "/") for word in words):
            found.append((pid, words))
    return found


def supervisors(state):
    return [pid for pid, words in processes(state) if "--supervise" in words]


def marks(state):
    """What the kernel holds of the instance (docs/architecture.md, Instance)."""
    tag = hashlib.sha256(os.path.realpath(state).encode()).hexdigest()[:4]
    tables = subprocess.run(["nft", "list", "tables"], capture_output=True, text=True, check=False).stdout
    return (glob.glob("/sys/fs/cgroup/agentbox-" + tag) + glob.glob("/sys/fs/cgroup/*/agentbox-" + tag) +
            [name for name in os.listdir("/sys/class/net") if name.startswith("ab" + tag)] +
            re.findall("agentbox-" + tag, tables))


def stop(state):
    """By the command every message names; nothing may be left."""
    assert marks(state), "nothing marks the instance: what is left could not be seen"
    done = run(state, AGENTBOXD, "--stop")
    assert done.returncode == 0, done.stderr
    assert not processes(state), processes(state)
    wait_for("nothing of %s in the kernel" % state, lambda: not marks(state), 10)
    assert os.path.exists(os.path.join(state, "store.db")), "--stop alone keeps the state"
    done = run(state, AGENTBOXD, "--stop", "--purge")
    assert done.returncode == 0 and not os.path.exists(state), done.stderr


def envs(state):
    return sorted(env["name"] for env in json.loads(run(state, ABX, "--json", "envs").stdout))


build()


@step("README's program, nothing running: the engine starts, the sandbox runs, the output is there")
def _():
    state = fresh("first")
    done = run(state, README)
    assert done.returncode == 0 and done.stdout.startswith("Python 3"), done
    assert done.stderr == "", "a library does not print: " + done.stderr
    first = supervisors(state)
    assert len(first) == 1, first
    again = run(state, README)
    assert again.returncode == 0 and again.stdout == done.stdout, again
    told = run(state, ABX, "run", "--", "echo", "hi")
    assert (told.returncode, told.stdout, told.stderr) == (0, "hi\n", ""), told
    assert supervisors(state) == first, "the others found the same engine"
    assert envs(state) == ["base"]
    left = [one["status"] for one in json.loads(run(state, ABX, "--json", "sandboxes").stdout)]
    assert left == ["Completed"] * 3, "each killed what it had: %s" % left
    stop(state)


@step("abx says once on stderr what it started and how to stop it, and that is true")
def _():
    state = fresh("told")
    done = run(state, ABX, "run", "--", "echo", "hi")
    assert (done.returncode, done.stdout) == (0, "hi\n"), done
    line = re.fullmatch(r'abx: started the local engine agentboxd: pid=(\d+) socket=(\S+) stop="(.*)"\n', done.stderr)
    assert line, done.stderr
    assert int(line[1]) in [pid for pid, words in processes(state) if "--supervise" not in words]
    assert line[2] == os.path.join(state, "agentboxd.sock")
    ended = run(fresh("elsewhere"), *line[3].split())
    assert ended.returncode == 0 and not processes(state), ended.stderr
    assert run(state, ABX, "run", "--", "echo", "again").stdout == "again\n", "the state starts again"
    stop(state)


@step("an asynchronous program that ignores SIGCHLD, blocks signals and leaks descriptors, and its log callback")
def _():
    state = fresh("async")
    done = run(state, EMBEDDED)  # ends when its stdout is closed everywhere: the daemon has not inherited it
    assert done.returncode == 0, done
    assert re.fullmatch(r"log 1 started the local engine agentboxd pid=\d+ socket=\S+ stop=\"[^\"]+\"\nfrom user\n",
                        done.stdout), done.stdout
    assert run(state, EMBEDDED).stdout == "from user\n"
    stop(state)


@step("eight programs at once: each has its sandbox, there is one engine, one of them started it")
def _():
    state = fresh("eight")
    results = []
    threads = [threading.Thread(target=lambda: results.append(run(state, ABX, "run", "--", "echo", "hi"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(r.returncode, r.stdout) for r in results] == [(0, "hi\n")] * 8, [r.stderr for r in results]
    assert sum("started the local engine" in r.stderr for r in results) == 1, [r.stderr for r in results]
    assert len(supervisors(state)) == 1, processes(state)
    stop(state)


@step("--with-base leaves a store alone that has an env, and makes the env again that an ended start left out")
def _():
    state = fresh("own")
    assert run(state, README).returncode == 0
    with open(os.path.join(TOP, "deploy", "samples", "base_sandboxenv.yaml"), encoding="utf-8") as file:
        own = file.read().replace("name: base\nspec", "name: own\nspec").replace("base-1c512mi", "own-1c512mi")
    path = os.path.join(WORK, "own.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(own)
    for words in (("delete", "envs", "base"), ("create", "envs", "-f", path)):
        done = run(state, ABX, *words)
        assert done.returncode == 0, done.stderr
    assert run(state, AGENTBOXD, "--stop").returncode == 0
    assert run(state, ABX, "run", "--template", "own", "--", "echo", "hi").stdout == "hi\n"
    assert envs(state) == ["own"]
    missing = run(state, ABX, "run", "--", "echo", "hi")
    assert missing.returncode == 1 and '"base" not found' in missing.stderr and "--with-base" in missing.stderr, missing.stderr
    # The template is there, no env is: as after a start that was killed between the two.
    assert run(state, ABX, "delete", "envs", "own").returncode == 0
    assert run(state, AGENTBOXD, "--stop").returncode == 0
    assert run(state, README).returncode == 0 and envs(state) == ["base"]
    stop(state)


def refused(state, program=EMBEDDED, **more):
    """(message, hint) of a start that fails; nothing may run after it."""
    done = run(state, program, **more)
    assert done.returncode == 1, done
    code, message = re.match(r"client: (-\d+) (.*)", done.stdout).groups()
    assert code == "-9" or message, done.stdout
    assert not supervisors(state), processes(state)
    return message, done.stdout.split("hint: ", 1)[1]


def script(name, text):
    path = os.path.join(WORK, name + ".sh")
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n" + text + "\n")
    os.chmod(path, 0o755)
    return path


@step("a daemon that is not there is named")
def _():
    message, hint = refused(fresh("missing"), AGENTBOX_DAEMON="/nonexistent/agentboxd")
    assert "/nonexistent/agentboxd" in message and "No such file" in message, message
    assert "AGENTBOX_DAEMON" in hint and "AGENTBOX_CLUSTER_API" in hint, hint


@step("a daemon that ends at once: what it said, or its status; the log and the command to see more")
def _():
    state = fresh("ends")
    message, hint = refused(state, AGENTBOX_DAEMON=script("says", "echo 'agentboxd: the disk is lava' >&2; exit 3"))
    assert message.endswith("did not start: the disk is lava"), message
    assert state + "/agentboxd.log" in hint and "--supervise" in hint and state in hint, hint
    # SIGCHLD is ignored by embedded.c, so only abx can tell the status of a silent one.
    done = run(state, ABX, "envs", AGENTBOX_DAEMON=script("silent", "exit 7"))
    assert done.returncode == 1 and "ended with status 7" in done.stderr, done.stderr


@step("a helper that cannot run is a start that failed, with its reason from the log")
def _():
    state = fresh("nopodd")
    daemon = script("nopodd", 'exec %s "$@" --podd-arg --crun --podd-arg /nonexistent/crun' % AGENTBOXD)
    message, hint = refused(state, AGENTBOX_DAEMON=daemon)
    assert "/nonexistent/crun" in message, message
    assert state + "/agentboxd.log" in hint, hint
    assert not marks(state)


@step("a helper that is not there is named with the reason")
def _():
    daemon = script("lostpodd", 'exec %s "$@" --podd /nonexistent/podd' % AGENTBOXD)
    message, _ = refused(fresh("lostpodd"), AGENTBOX_DAEMON=daemon)
    assert "cannot be run" in message and "/nonexistent/podd" in message and "No such file" in message, message


@step("a state directory that cannot be made, or is somebody else's, is named with the reason")
def _():
    blocked = os.path.join(script("file", ""), "state")
    message, _ = refused(blocked)
    assert os.path.dirname(blocked) in message and "did not start" in message, message
    other = fresh("other")
    os.mkdir(other)
    os.chown(other, 4711, 4711)
    message, _ = refused(other)
    assert "belongs to user 4711" in message and other in message, message


@step("without root nothing is started, and the error says what to do")
def _():
    state = fresh("user")
    message, hint = refused(state, user=65534)
    assert "only root can start one" in message and state in message, message
    assert "agentboxd --supervise --daemon --with-base" in hint and "AGENTBOX_API_KEY" in hint, hint
    assert not os.path.exists(state)


@step("agentboxd --help has --stop, --purge and --with-base; two starts by hand are refused with the way out")
def _():
    text = run(fresh("help"), AGENTBOXD, "--help").stdout
    for word in ("--stop ", "--purge ", "--with-base ", "$AGENTBOX_STATE_DIR"):
        assert word in text, word
    state = fresh("twice")
    words = (AGENTBOXD, "--supervise", "--daemon", "--with-base", "--listen", "none")
    assert run(state, *words).returncode == 0
    second = run(state, *words)
    assert second.returncode == 75 and "runs already; agentboxd --stop" in second.stderr, second
    assert run(state, ABX, "run", "--", "echo", "hi").stdout == "hi\n"
    stop(state)


for each in os.listdir(WORK):
    if os.path.isdir(fresh(each)) and supervisors(fresh(each)):
        note("a step left an engine in %s; stopped" % each)
        run(fresh(each), AGENTBOXD, "--stop")
shutil.rmtree(WORK, ignore_errors=True)
finish()
