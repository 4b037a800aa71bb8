"""Every command of abx against a live instance, as a person and as a program would use it."""
import json
import os
import signal
import subprocess
import tempfile
import time

from harness import ABX, Skip, abx, abx_json, e2b, finish, running_ids, step, wait_for


class Held:
    id = None


@step("envs: a table for people, rows for programs")
def _():
    table = abx("envs").stdout.decode()
    assert table.startswith("env") and " total\n\n" in table and "templateName" in table and "base" in table, table
    rows = abx_json("envs")
    assert any(row["name"] == "base" for row in rows), rows
    one = abx_json("envs", "base")
    assert one["name"] == "base", one
    assert "replicas" in abx("envs", "base", "pools").stdout.decode()
    pool = abx_json("envs", "base", "pools")[0]
    assert pool["spec"]["replicas"] >= 1 and "idleReplicas" in pool["status"], pool
    assert abx_json("envs", "base", "pools", pool["name"])["name"] == pool["name"]


@step("templates")
def _():
    assert abx_json("templates")
    name = abx_json("templates")[0]["name"]
    assert name in abx("templates", name).stdout.decode()


@step("create prints the id alone; sandboxes lists it")
def _():
    out = abx("create", "--template", "base", "--env", "GREETING=hello", "--env", "TWO=a=b", "--metadata", "who=abx",
              "--timeout", "5m").stdout.decode()
    Held.id = out.strip()
    assert out == Held.id + "\n" and Held.id in running_ids(), out
    assert any(row["sandboxId"] == Held.id for row in abx_json("sandboxes"))
    assert abx_json("sandboxes", Held.id)["sandboxId"] == Held.id


@step("create --json")
def _():
    made = abx_json("create", "--template", "base")
    assert abx_json("kill", made["sandboxId"]) == [{"sandboxId": made["sandboxId"], "killed": True}]
    assert abx_json("kill", made["sandboxId"]) == [{"sandboxId": made["sandboxId"], "killed": False}]


def execute(*words, stdin=b"", **more):
    return subprocess.run([ABX, "exec", Held.id, *words], input=stdin, capture_output=True, timeout=60, **more)


@step("exec: output, stderr and exit code passed on, words kept apart")
def _():
    done = execute("--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (done.returncode, done.stdout, done.stderr) == (3, b"out\n", b"err\n"), done
    done = execute("--", "printf", "%s|", "a b", "$HOME", "*")
    assert done.stdout == b"a b|$HOME|*|", done
    assert execute("--", "true").returncode == 0


@step("exec: variables of the sandbox and of the call, cwd, user, a shell's line")
def _():
    done = execute("--env", "TWO=over", "--cwd", "/tmp", "--user", "root", "--", "echo \"$GREETING $TWO\"; pwd; id -un")
    assert done.stdout == b"hello over\n/tmp\nroot\n", done
    assert execute("--", "printenv", "TWO").stdout == b"a=b\n"


@step("exec: stdin is passed on to its end, 8 MiB of it unharmed")
def _():
    data = os.urandom(8 << 20)
    assert execute("--", "cat", stdin=data).stdout == data
    assert execute("--", "cat").stdout == b""


@step("exec: a command that ends before its stdin does not hang")
def _():
    start = time.monotonic()
    process = subprocess.Popen([ABX, "exec", Held.id, "--", "true"], stdin=subprocess.PIPE)
    assert process.wait(20) == 0 and time.monotonic() - start < 10
    process.stdin.close()


@step("exec: output is streamed, not kept to the end")
def _():
    process = subprocess.Popen([ABX, "exec", Held.id, "--", "echo one; sleep 5; echo two"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE)
    start = time.monotonic()
    assert process.stdout.readline() == b"one\n" and time.monotonic() - start < 3
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 128 + signal.SIGINT
    process.stdout.close()


@step("exec: Ctrl-C ended the command inside too")
def _():
    process = subprocess.Popen([ABX, "exec", Held.id, "--", "sleep", "987"], stdin=subprocess.DEVNULL)
    wait_for("sleep runs inside", lambda: execute("--", "pgrep", "-x", "sleep").returncode == 0, 10)
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 128 + signal.SIGTERM
    wait_for("sleep is gone inside", lambda: execute("--", "pgrep", "-x", "sleep").returncode == 1, 10)


@step("exec: --timeout ends a command with an error")
def _():
    start = time.monotonic()
    done = execute("--timeout", "1s", "--", "sleep", "60")
    assert done.returncode == 1 and b"error: " in done.stderr and time.monotonic() - start < 15, done


@step("cp: in, out, through stdin and stdout, into a directory; a directory is refused")
def _():
    with tempfile.TemporaryDirectory() as folder:
        here = os.path.join(folder, "data.bin")
        data = os.urandom(3 << 20)
        with open(here, "wb") as file:
            file.write(data)
        abx("cp", here, Held.id + ":/tmp/there.bin")
        abx("cp", here, Held.id + ":/tmp/")
        abx("cp", "-", Held.id + ":note.txt", stdin=b"from stdin")
        assert execute("--", "cat", "note.txt").stdout == b"from stdin"
        assert execute("--", "cmp", "/tmp/there.bin", "/tmp/data.bin").returncode == 0
        back = os.path.join(folder, "back")
        abx("cp", Held.id + ":/tmp/there.bin", back)
        with open(back, "rb") as file:
            assert file.read() == data
        assert abx("cp", Held.id + ":/tmp/data.bin", "-").stdout == data
        done = abx("cp", folder, Held.id + ":/tmp/x", check=False)
        assert done.returncode == 1 and b"is a directory" in done.stderr and b"tar" in done.stderr
        done = abx("cp", Held.id + ":/tmp", back, check=False)
        assert done.returncode == 1 and b"is a directory" in done.stderr
        done = abx("cp", Held.id + ":/tmp/none", os.path.join(folder, "none"), check=False)
        assert done.returncode == 1 and sorted(os.listdir(folder)) == ["back", "data.bin"]


@step("ls: a table and JSON")
def _():
    execute("--", "mkdir -p /tmp/dir/sub; echo 123 > /tmp/dir/file; ln -s file /tmp/dir/link")
    entries = {entry["name"]: entry for entry in abx_json("ls", Held.id, "/tmp/dir")}
    assert entries["file"]["size"] == 4 and entries["sub"]["type"] == "dir" and "link" in entries, entries
    table = abx("ls", Held.id, "/tmp/dir").stdout.decode()
    assert "permissions" in table and "file" in table, table


@step("pause and resume: what ran goes on; twice says so")
def _():
    execute("--", "sh", "-c", "setsid sh -c 'while :; do date +%s%N >/tmp/tick; sleep 0.05; done' >/dev/null 2>&1 &")
    wait_for("it ticks", lambda: execute("--", "cat", "/tmp/tick").stdout != b"")
    assert abx("pause", Held.id).stdout.decode() == "paused %s\n" % Held.id
    assert abx_json("pause", Held.id) == [{"sandboxId": Held.id, "paused": False}]
    assert b"already" in abx("pause", Held.id).stdout
    assert abx_json("resume", Held.id, "--timeout", "5m") == [{"sandboxId": Held.id, "resumed": True}]
    assert b"was resumed already" in abx("resume", Held.id).stdout
    before = execute("--", "cat", "/tmp/tick").stdout
    wait_for("it ticks on", lambda: execute("--", "cat", "/tmp/tick").stdout != before)
    execute("--", "pkill", "-f", "while :")
    done = abx("pause", "nosuchsandbox0000000", check=False)
    assert done.returncode == 1 and b"nosuchsandbox0000000" in done.stderr, done


@step("create --on-timeout pause: it is paused, not gone, and traffic resumes it")
def _():
    paused = abx("create", "--template", "base", "--timeout", "1s", "--on-timeout", "pause", "--auto-resume")
    id = paused.stdout.decode().strip()
    wait_for("paused", lambda: any(row["sandboxID"] == id and row["state"] == "paused"
                                   for row in e2b("GET", "/v2/sandboxes?state=paused").json))
    done = subprocess.run([ABX, "exec", id, "--", "echo", "awake"], stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=60)
    assert done.stdout == b"awake\n", done
    abx("kill", id)


@step("logs: what the platform did; -f goes on, and ends with a signal")
def _():
    entries = [json.loads(line) for line in abx("logs", "--json", Held.id).stdout.splitlines()]
    assert entries and all(entry["timestampMs"] > 0 and entry["level"] for entry in entries), entries
    assert abx("logs", Held.id).stdout.count(b"\n") == len(entries)
    process = subprocess.Popen([ABX, "logs", "-f", Held.id], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert process.stdout.readline()
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 128 + signal.SIGINT
    assert process.stdout.read().count(b"\n") == len(entries) - 1, "an entry twice, or one left out"
    done = abx("logs", "nosuchsandbox0000000", check=False)
    assert done.returncode == 1 and b"nosuchsandbox0000000" in done.stderr, done


def mounted(folder, size):
    """A file system of that many bytes at the folder; a step without the right to mount is skipped."""
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%d" % size, "tmpfs", folder], capture_output=True, check=False)
    if done.returncode != 0:
        raise Skip("cannot mount a small file system: %s" % done.stderr.decode().strip())


@step("cp onto a full disk names the file and the reason, and leaves no half file")
def _():
    with tempfile.TemporaryDirectory() as folder:
        mounted(folder, 256 << 10)
        try:
            assert execute("--", "sh", "-c", "head -c 4194304 /dev/zero >/tmp/big").returncode == 0
            done = abx("cp", Held.id + ":/tmp/big", folder + "/big", check=False)
            assert done.returncode == 1, done
            assert done.stderr.decode() == "error: %s/big: No space left on device\n" % folder, done.stderr
            assert os.listdir(folder) == [], os.listdir(folder)
        finally:
            subprocess.run(["umount", folder], check=True)


@step("cp refuses what is no file, both ways, and waits for none")
def _():
    with tempfile.TemporaryDirectory() as folder:
        fifo = os.path.join(folder, "fifo")
        os.mkfifo(fifo)
        done = abx("cp", fifo, Held.id + ":/tmp/x", check=False, timeout=20)
        assert done.returncode == 1 and b"fifo: not a regular file" in done.stderr and b"cat FILE" in done.stderr, done
        assert execute("--", "true").returncode == 0
        done = abx("cp", Held.id + ":/etc/hostname", fifo, check=False, timeout=20)
        assert done.returncode == 1 and b"fifo: not a regular file" in done.stderr, done
        assert os.listdir(folder) == ["fifo"]


@step("exec into a pipe nobody reads ends quietly with 141, and so does its command; onto a full disk with the reason")
def _():
    line = "\"%s\" exec %s -- yes | head -n 1; echo ${PIPESTATUS[0]}"
    done = subprocess.run(["bash", "-c", line % (ABX, Held.id)], stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    assert done.stdout.split()[-1] == b"141" and done.stderr == b"", done
    wait_for("the command to end", lambda: execute("--", "pgrep -x yes").returncode == 1, 10)
    with open("/dev/full", "wb") as full:
        done = subprocess.run([ABX, "exec", Held.id, "--", "yes"], stdin=subprocess.DEVNULL, stdout=full,
                              stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == 1 and done.stderr == b"error: the output could not be written: No space left on device\n", done
    wait_for("the command to end", lambda: execute("--", "pgrep -x yes").returncode == 1, 10)


@step("metrics of a new sandbox say that there is no sample yet")
def _():
    new = abx("create", "--template", "base").stdout.decode().strip()
    done = abx("metrics", new)
    assert done.stdout or b"no sample of " + new.encode() + b" yet" in done.stderr, done
    abx("kill", new)


@step("metrics: rows of time, processor, memory and disk")
def _():
    rows = wait_for("metrics", lambda: abx_json("metrics", Held.id), 30)
    assert rows[0]["memoryTotalBytes"] > 0 and "cpuUsedPct" in rows[0], rows[0]
    table = abx("metrics", Held.id).stdout.decode()
    assert "memory" in table and "MiB" in table, table


@step("snapshot, snapshots, create from one, delete")
def _():
    execute("--", "sh", "-c", "echo kept >/home/user/kept")
    snapshot = abx("snapshot", Held.id, "--name", "abx-test").stdout.decode().strip()
    assert any(row["snapshotId"] == snapshot for row in abx_json("snapshots"))
    assert any(row["snapshotId"] == snapshot for row in abx_json("snapshots", Held.id))
    assert snapshot in abx("snapshots", "--name", "abx-test").stdout.decode()
    second = abx("create", "--template", snapshot).stdout.decode().strip()
    done = subprocess.run([ABX, "exec", second, "--", "cat", "/home/user/kept"], stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=60)
    abx("kill", second)
    assert done.stdout == b"kept\n", done
    assert abx("delete", "snapshots", snapshot).stdout.decode() == "deleted %s\n" % snapshot
    done = abx("delete", "snapshots", snapshot, check=False)
    assert done.returncode == 1 and snapshot.encode() in done.stderr, done


@step("fork: more of it, each with its files")
def _():
    forks = abx("fork", Held.id, "--count", "2", "--timeout", "2m").stdout.decode().split()
    assert len(forks) == 2 and len({*forks, Held.id}) == 3, forks
    for each in forks:
        done = subprocess.run([ABX, "exec", each, "--", "cat", "/home/user/kept"], stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=60)
        assert done.stdout == b"kept\n", done
    abx("kill", *forks)


@step("run: a sandbox for one command, gone afterwards; the exit code passed on")
def _():
    before = sorted(running_ids())
    done = subprocess.run([ABX, "run", "--template", "base", "--env", "N=7", "--", "python3", "-c",
                           "import os,sys; print(int(os.environ['N']) * 6); sys.exit(5)"],
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout) == (5, b"42\n"), done
    done = subprocess.run([ABX, "run", "--", "cat"], input=b"through", capture_output=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, b"through"), done
    assert sorted(running_ids()) == before


@step("run: a command that ends while its stdin is still being closed, 20 times (once a use after free)")
def _():
    for _ in range(20):
        done = subprocess.run([ABX, "run", "--", "true"], stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, b""), done


@step("kill: once, and then it says there is none")
def _():
    assert abx("kill", Held.id).stdout.decode() == "killed %s\n" % Held.id
    done = abx("kill", Held.id, check=False)
    assert done.returncode == 1 and Held.id.encode() in done.stderr
    assert Held.id not in running_ids()


def resources():
    """Every resource as agent-context tells it, with the words that list it here; those of a parent nothing is in are left out."""
    for each in json.loads(abx("agent-context").stdout)["resources"]:
        words = [each["plural"]]
        if each.get("parent") == "envs":
            words = ["envs", "base", each["plural"]]
        elif "parent" in each:
            above = abx_json(each["parent"])
            if not above:
                continue
            words = [each["parent"], above[0], each["plural"]]
        yield each, words


@step("every resource this key may see is listed: as a table, as JSON, as CSV, with each of its filters")
def _():
    seen = set()
    for each, words in resources():
        done = abx(*words, check=False)
        if done.returncode == 1 and each["plural"].startswith("admin-") and b"admin" in done.stderr:
            continue
        assert done.returncode == 0, (words, done.stderr)
        assert done.stdout.decode().startswith(each["kind"] + " · ") and b"hint:" in done.stdout, done.stdout
        assert isinstance(abx_json(*words), list), words
        heads = [column["id"] for column in each["columns"] if not column["optional"]]
        assert abx(*words, "--csv").stdout.decode().splitlines()[0] == ",".join(heads), words
        for key in each["filters"]:
            abx(*words, "--filter", "%s=%s" % (key["key"], key.get("values", ["no such thing"])[0]))
        seen.add(each["plural"])
    assert {"envs", "pools", "scaling-groups", "events", "sandboxes", "templates", "api-keys", "approvals"} <= seen, seen


@step("what --editable prints, update takes; scale keeps the bounds")
def _():
    pool = abx_json("envs", "base", "pools")[0]["name"]
    for words in (["envs", "base"], ["envs", "base", "pools", pool]):
        before = json.loads(abx(*words, "--editable").stdout)
        abx("update", *words, "-f", "-", stdin=json.dumps(before).encode())
        after = json.loads(abx(*words, "--editable").stdout)
        assert {key: after[key] for key in before} == before, (before, after)
    before = json.loads(abx("envs", "base", "pools", pool, "--editable").stdout)
    done = abx("scale", "envs", "base", "pools", pool, "--replicas", str(before["replicas"]))
    assert done.stdout.decode() == "scaled %s to %d\n" % (pool, before["replicas"]), done
    assert json.loads(abx("envs", "base", "pools", pool, "--editable").stdout) == before


@step("contexts: set, used without any variable, removed")
def _():
    with tempfile.TemporaryDirectory() as home:
        env = {"PATH": os.environ["PATH"], "HOME": home}

        def run(*words):
            return subprocess.run([ABX, *words], env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=True).stdout
        run("context", "set", "here", "--cluster-api", os.environ["AGENTBOX_CLUSTER_API"], "--api-key", os.environ["AGENTBOX_API_KEY"])
        assert os.environ["AGENTBOX_API_KEY"].encode() not in run("context")
        assert b"base" in run("envs") and b"user" in run("whoami")
        assert run("context", "remove", "here") == b"removed here\n"


@step("completion, man page, schema and help need no platform")
def _():
    for words in (["completion", "bash"], ["completion", "zsh"], ["completion", "fish"], ["help", "man"], ["create", "envs", "--schema"],
                  ["update", "envs", "base", "--help"]):
        done = subprocess.run([ABX, *words], env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"}, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=60, check=False)
        assert done.returncode == 0 and done.stdout, (words, done)


@step("whoami and version")
def _():
    assert "user" in json.loads(abx("whoami").stdout)
    assert abx("--version").stdout.decode().strip() == abx("version").stdout.decode().strip() != ""


finish()
