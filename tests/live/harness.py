"""What the live tests share: a running instance, HTTP, abx, and TAP on stdout.

Standard library only. The instance is given by the variables `./quickstart --env` prints (AGENTBOX_* and E2B_*), and
AGENTBOX_BIN, the folder with abx. A test file is a program: `step("what")` runs the function below it at once.
"""
import base64
import http.client
import json
import os
import socket
import struct
import subprocess
import sys
import time
import traceback
import urllib.parse

STATE_DIR = os.environ.get("AGENTBOX_STATE_DIR", "")
BASE = os.environ.get("AGENTBOX_CLUSTER_API", "")
E2B = os.environ.get("E2B_API_URL", "")
KEY = os.environ.get("AGENTBOX_API_KEY", "")
ABX = os.path.join(os.environ.get("AGENTBOX_BIN", ""), "abx")
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

if not (STATE_DIR and BASE and E2B and KEY):
    sys.exit("no instance: eval \"$(./quickstart --env)\" first")

count = failures = 0


class Skip(Exception):
    """Raised by a step that cannot run here; its text says what is missing."""


def step(what):
    """Decorator: runs the function at once as one TAP test; True in its place when it passed."""
    def run(function):
        global count, failures
        count += 1
        start = time.monotonic()
        try:
            function()
        except Skip as reason:
            print("ok %d - %s # SKIP %s" % (count, what, reason), flush=True)
            return False
        except Exception:  # whatever a step raises is its failure
            failures += 1
            print("not ok %d - %s" % (count, what), flush=True)
            for line in traceback.format_exc(limit=8).splitlines():
                print("#   " + line)
            return False
        print("ok %d - %s (%.0f ms)" % (count, what, (time.monotonic() - start) * 1000), flush=True)
        return True
    return run


def finish():
    print("1..%d" % count)
    sys.exit(1 if failures else 0)


def note(text):
    print("# " + text, flush=True)


def wait_for(what, condition, seconds=30, every=0.1):
    """The first true value of condition(), or a failure naming what was waited for."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, "not within %s s: %s" % (seconds, what)
        time.sleep(every)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def text(self):
        return self.body.decode("utf-8", "replace")

    @property
    def json(self):
        return json.loads(self.body)

    def __str__(self):
        return "%d %s" % (self.status, self.text[:400])


def request(method, url, body=None, headers=None, key=KEY, timeout=60):
    """One request on a connection of its own. A dict or list goes as JSON."""
    parts = urllib.parse.urlsplit(url)
    sent = {}
    if key is not None:
        sent.update({"AGENTBOX-API-KEY": key, "X-API-KEY": key})
    if isinstance(body, (dict, list)):
        body = json.dumps(body).encode()
        sent["Content-Type"] = "application/json"
    sent.update(headers or {})
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout)
    try:
        path = parts.path + ("?" + parts.query if parts.query else "")
        connection.request(method, path, body=body, headers=sent)
        answer = connection.getresponse()
        return Answer(answer.status, dict(answer.getheaders()), answer.read())
    finally:
        connection.close()


def native(method, path, body=None, **more):
    return request(method, BASE + "/v1" + path, body, **more)


def e2b(method, path, body=None, **more):
    return request(method, E2B + path, body, **more)


def abx(*words, stdin=None, check=True, timeout=60):
    """Runs abx; stdin is bytes. With check, a failure raises with what it said."""
    done = subprocess.run([ABX, *words], input=stdin if stdin is not None else b"", capture_output=True, timeout=timeout)
    if check and done.returncode != 0:
        raise AssertionError("abx %s: exit %d\n%s%s" % (" ".join(words), done.returncode,
                                                        done.stdout.decode("utf-8", "replace")[-2000:],
                                                        done.stderr.decode("utf-8", "replace")[-2000:]))
    return done


def abx_json(*words):
    return json.loads(abx("--json", *words).stdout)


class Sandbox:
    """A sandbox by the raw E2B API and envd's own protocol, so that tests can send what no SDK would."""

    def __init__(self, template="base", timeout=300, **more):
        body = {"templateID": template, "timeout": timeout, "secure": False}
        body.update(more)
        answer = e2b("POST", "/sandboxes", body, timeout=120)
        if answer.status != 201:
            raise AssertionError("create from %s: %s" % (template, answer))
        self.id = answer.json["sandboxID"]

    @classmethod
    def of(cls, sandbox_id):
        self = cls.__new__(cls)
        self.id = sandbox_id
        return self

    def kill(self):
        return e2b("DELETE", "/sandboxes/" + self.id).status

    def url(self, path, port=49983):
        return "%s/sandboxes/%s/%d%s" % (BASE, self.id, port, path)

    def request(self, method, path, body=None, port=49983, user="user", **more):
        headers = {"Authorization": "Basic " + base64.b64encode((user + ":").encode()).decode()}
        headers.update(more.pop("headers", {}))
        return request(method, self.url(path, port), body, headers=headers, **more)

    def rpc(self, method, body, user="user"):
        return self.request("POST", "/" + method, json.dumps(body).encode(), user=user,
                            headers={"Content-Type": "application/json", "Connect-Protocol-Version": "1"})

    def start(self, cmd, args=(), user="user", **config):
        """process.Process/Start to its end: (exit code or None, stdout, stderr, error dict or None)."""
        message = json.dumps({"process": {"cmd": cmd, "args": list(args), **config}, "stdin": False}).encode()
        answer = self.request("POST", "/process.Process/Start", struct.pack(">BI", 0, len(message)) + message, user=user,
                              headers={"Content-Type": "application/connect+json", "Connect-Protocol-Version": "1"})
        if answer.status != 200:  # refused before a stream was opened
            return None, b"", b"", answer.json
        return read_stream(answer.body)

    def sh(self, line, **more):
        """A line for sh that must succeed; its output."""
        code, out, err, error = self.start("/bin/sh", ["-c", line], **more)
        assert error is None and code == 0, "%r in %s: code=%s error=%s stderr=%r" % (line, self.id, code, error, err)
        return out.decode()


def read_stream(data):
    code, out, err, error, at = None, b"", b"", None, 0
    while at < len(data):
        flags, size = struct.unpack_from(">BI", data, at)
        message = json.loads(data[at + 5:at + 5 + size])
        at += 5 + size
        if flags & 2:
            error = message.get("error", error)
            continue
        event = message.get("event", {})
        if "data" in event:
            out += base64.b64decode(event["data"].get("stdout", ""))
            err += base64.b64decode(event["data"].get("stderr", ""))
        if "end" in event:
            code = event["end"].get("exitCode", 0)
            if not event["end"].get("exited", False):
                code = -1
    return code, out, err, error


def sample_env(name):
    """The template and env of deploy/samples of that name, unless they are there."""
    for kind, file, path in (("templates", "template", "/sandbox-templates/"), ("envs", "env", "/envs/")):
        if native("GET", path + name).status == 404:
            abx("create", kind, "-f", os.path.join(TOP, "deploy", "samples", "%s_sandbox%s.yaml" % (name, file)))


def running_ids():
    """Ids of all sandboxes, through every page."""
    ids, token = [], None
    while True:
        answer = e2b("GET", "/v2/sandboxes?limit=100" + ("&nextToken=" + urllib.parse.quote(token) if token else ""))
        assert answer.status == 200, str(answer)
        ids += [each["sandboxID"] for each in answer.json]
        token = next((value for name, value in answer.headers.items() if name.lower() == "x-next-token"), None)
        if not token:
            return ids


def pools(env):
    answer = native("GET", "/envs/%s/sandboxpools" % env)
    assert answer.status == 200, str(answer)
    return answer.json["items"]


def ready_idle(pool):
    """Idle Pods that can be claimed at once: those that still start count as idle, too."""
    return pool["status"].get("idleReplicas", 0) - pool["status"].get("unavailableIdleReplicas", 0)


def wait_warm(env, seconds=180):
    """Until every pool of an env has all its Pods idle and ready, but for those claimed."""
    def warm():
        state = [(pool["spec"]["replicas"], ready_idle(pool), pool["status"].get("runningReplicas", 0)) for pool in pools(env)]
        return state and all(idle + running >= replicas > 0 and idle > 0 for replicas, idle, running in state)
    wait_for("env %s is warm" % env, warm, seconds)
