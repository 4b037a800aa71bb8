"""The code interpreter from outside, by its own protocol: on demand and warm, tokens, pauses and forks, what is not inherited,
ends of every kind. The released SDKs: tests/e2b/interpreter.py and .mjs, run by releases.py.
"""
import http.client
import json
import threading
import time
import urllib.parse

from harness import BASE, KEY, Sandbox, e2b, finish, pools, request, sample_env, step, wait_for, wait_warm

ENV = "code-interpreter-v1"
PORT = 49999


class Cell:
    def __init__(self, lines):
        self.lines = [json.loads(line) for line in lines]

    @property
    def text(self):
        return next((line.get("text") for line in self.lines if line["type"] == "result"), None)

    @property
    def stdout(self):
        return "".join(line["text"] for line in self.lines if line["type"] == "stdout")

    @property
    def error(self):
        return next((line["name"] for line in self.lines if line["type"] == "error"), None)


def call(sandbox, method, path, body=None, headers=None):
    return request(method, sandbox.url(path, PORT), body, headers=headers)


def run(sandbox, code, headers=None, **more):
    answer = call(sandbox, "POST", "/execute", {"code": code, **more}, headers)
    assert answer.status == 200, str(answer)
    return Cell(answer.text.splitlines())


def open_cell(sandbox, code):
    """A running cell: (connection, answer), lines to be read from the answer."""
    parts = urllib.parse.urlsplit(sandbox.url("/execute", PORT))
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    connection.request("POST", parts.path, body=json.dumps({"code": code}), headers={"X-API-KEY": KEY})
    answer = connection.getresponse()
    assert answer.status == 200
    return connection, answer


def state_of(sandbox):
    return e2b("GET", "/sandboxes/" + sandbox.id).json["state"]


sample_env(ENV)
wait_warm(ENV)


@step("on demand: an env that does not name it has it with the first connection, and nothing before")
def _():
    sandbox = Sandbox("base")
    assert "interpreter.pyz" not in sandbox.sh("ps -eo args | grep '[p]ython3' || true")
    assert run(sandbox, "x = 20; x + 1").text == "21"
    assert run(sandbox, "import os; x, os.getcwd(), os.getuid()").text == "(20, '/home/user', 0)"
    sandbox.kill()


@step("an image without it: 404 that names what is missing, at once; another path is 502 as ever")
def _():
    sandbox = Sandbox("base//runtime:")
    for method, path in (("POST", "/execute"), ("GET", "/contexts"), ("POST", "/contexts")):
        answer = call(sandbox, method, path, {"code": "1"} if method == "POST" else None)
        assert answer.status == 404 and "python3-ipykernel" in answer.json["message"], str(answer)
    assert call(sandbox, "GET", "/health").status == 502
    sandbox.kill()


@step("variables of the sandbox and of the cell")
def _():
    sandbox = Sandbox(ENV, envVars={"OF_SANDBOX": "s"})
    code = "import os; os.environ.get('OF_SANDBOX'), os.environ.get('OF_CELL')"
    assert run(sandbox, code, env_vars={"OF_CELL": "c"}).text == "('s', 'c')"
    assert run(sandbox, code).text == "('s', None)"
    sandbox.kill()


@step("a secure sandbox: its token or 401; with its ports closed, the traffic token as well")
def _():
    answer = e2b("POST", "/sandboxes", {"templateID": ENV, "timeout": 120, "secure": True,
                                        "network": {"allowPublicTraffic": False}}, timeout=120)
    assert answer.status == 201, str(answer)
    sandbox = Sandbox.of(answer.json["sandboxID"])
    traffic = {"e2b-traffic-access-token": answer.json["trafficAccessToken"]}
    token = {"X-Access-Token": answer.json["envdAccessToken"]}
    assert call(sandbox, "POST", "/execute", {"code": "1"}, token).status == 403
    for headers in ({}, {"X-Access-Token": "wrong"}):
        answer = call(sandbox, "POST", "/execute", {"code": "1"}, {**traffic, **headers})
        assert (answer.status, answer.text) == (401, "unauthorized: the X-Access-Token of this sandbox is needed"), str(answer)
    assert run(sandbox, "1 + 1", {**traffic, **token}).text == "2"
    assert call(sandbox, "GET", "/contexts", headers=traffic).status == 200
    sandbox.kill()


@step("bad input: exact bodies through the gateway")
def _():
    sandbox = Sandbox(ENV)
    for body, status, text in (({}, 400, "code: missing"), ({"code": "1", "x": 1}, 400, "x: unknown field"),
                               ({"code": "1", "context_id": "none"}, 404, "Context none not found"),
                               ({"code": 1}, 400, "code: expected a string")):
        answer = call(sandbox, "POST", "/execute", body)
        assert (answer.status, answer.text) == (status, text), str(answer)
    answer = call(sandbox, "POST", "/contexts", {"cwd": "/not/there"})
    assert (answer.status, answer.text) == (400, "cwd: there is no folder /not/there"), str(answer)
    sandbox.kill()


@step("nothing is inherited: Pods that ran a cell and were returned know nothing of it")
def _():
    count = sum(pool["spec"]["replicas"] for pool in pools(ENV))
    for _ in range(2):
        wait_warm(ENV)
        held = [Sandbox(ENV) for _ in range(count)]
        for sandbox in held:
            assert run(sandbox, "secret").error == "NameError"
            assert run(sandbox, "secret = 1; open('/home/user/left', 'x').close(); secret").text == "1"
        for sandbox in held:
            sandbox.kill()


@step("paused in the middle of a cell, it goes on where it was")
def _():
    sandbox = Sandbox(ENV)
    connection, answer = open_cell(sandbox, "kept = 7\nfor i in range(40): print(i, flush=True); __import__('time').sleep(0.1)")
    answer.readline()
    answer.readline()
    assert e2b("POST", "/sandboxes/%s/pause" % sandbox.id, {}).status == 204
    assert state_of(sandbox) == "paused"
    time.sleep(1)
    assert e2b("POST", "/sandboxes/%s/connect" % sandbox.id, {"timeout": 120}).status in (200, 201)
    rest = Cell(answer.read().splitlines())
    assert rest.stdout.split()[-1] == "39" and rest.error is None, rest.lines[-3:]
    connection.close()
    assert run(sandbox, "kept").text == "7"
    sandbox.kill()


@step("a fork has the files and a fresh kernel; the first one keeps its own")
def _():
    sandbox = Sandbox(ENV)
    assert run(sandbox, "open('/home/user/made', 'w').write('by a cell'); y = 5; y").text == "5"
    wait_warm(ENV)
    answer = e2b("POST", "/sandboxes/%s/fork" % sandbox.id, {"count": 1}, timeout=120)
    assert answer.status in (200, 201), str(answer)
    fork = Sandbox.of(answer.json[0]["sandbox"]["sandboxID"])
    assert run(fork, "open('/home/user/made').read()").text == "by a cell"
    assert run(fork, "y").error == "NameError"
    assert run(sandbox, "y").text == "5"
    fork.kill()
    sandbox.kill()


@step("a client that goes away interrupts its cell, through the gateway, and the next one runs")
def _():
    sandbox = Sandbox(ENV)
    connection, answer = open_cell(sandbox, "import time\ntry:\n    print('in', flush=True)\n    time.sleep(600)\n"
                                            "except KeyboardInterrupt:\n    told = True\n    raise")
    answer.readline()
    answer.readline()
    answer.close()
    connection.close()
    assert run(sandbox, "told").text == "True"
    sandbox.kill()


@step("50 MB of output to a reader that takes its time: all of it, in order, and bounded memory")
def _():
    sandbox = Sandbox(ENV)
    lines = 500000
    connection, answer = open_cell(sandbox, "for i in range(%d): print('%%099d' %% i)" % lines)
    answer.readline()
    time.sleep(4)
    held = sandbox.sh("cat /proc/$(pgrep -f '^[p]ython3 -B')/status", user="root")
    peak = next(int(line.split()[1]) for line in held.splitlines() if line.startswith("VmHWM"))
    assert peak < 250000, "%d kB" % peak
    out = Cell(answer.read().splitlines()).stdout
    assert len(out) == lines * 100 and out[:100] == "%099d\n" % 0 and out[-100:] == "%099d\n" % (lines - 1)
    connection.close()
    sandbox.kill()


@step("the interpreter killed: the next cell has a fresh one; a kernel killed between cells is told of")
def _():
    sandbox = Sandbox(ENV)
    assert run(sandbox, "z = 1; z").text == "1"
    sandbox.sh("kill -9 $(pgrep -f '[p]yz kernel')", user="root")
    wait_for("it is told", lambda: run(sandbox, "z").error == "ContextRestarting" or None, every=0.5)
    assert run(sandbox, "z").error == "NameError"
    sandbox.sh("kill -9 $(pgrep -f '^[p]ython3 -B')", user="root")
    wait_for("a new one", lambda: call(sandbox, "GET", "/health").status == 200)
    assert run(sandbox, "2").text == "2"
    sandbox.kill()


@step("a sandbox that is killed ends its cell at once")
def _():
    sandbox = Sandbox(ENV)
    connection, answer = open_cell(sandbox, "import time; time.sleep(600)")
    answer.readline()
    ended = threading.Event()

    def read():
        try:
            answer.read()
        except (OSError, http.client.HTTPException):
            pass
        ended.set()

    threading.Thread(target=read, daemon=True).start()
    assert not ended.wait(0.5)
    sandbox.kill()
    assert ended.wait(20)
    connection.close()


finish()
