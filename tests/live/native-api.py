"""The native API on real sandboxes: commands, logs and their stream, readiness, the terminal by a WebSocket client.

Run by the Python of build/live-venv, which has the client (tests/live/requirements.txt).
"""
import asyncio
import http.client
import json
import threading
import time
import urllib.parse

import websockets

from harness import BASE, KEY, Sandbox, e2b, finish, native, step, wait_for, wait_warm

# The sample's template, whose container also says whatever is written into a pipe, and an env of it.
SAY = "/tmp/say"
ENTRY = ("mkfifo -m 666 %s; while :; do cat %s; done & "
         "exec /bin/sh /mnt/agentbox/agentbox-entrypoint.sh") % (SAY, SAY)
crd = json.loads(native("GET", "/sandbox-templates/base").json["template"]["crdYaml"])
crd["metadata"] = {"name": "talker", "annotations": {"agentbox.navix.sh/docs": "${AGBX_ENV_NAME} ${AGBX_HOST} ${AGBX_API_KEY}"}}
crd.pop("status", None)
crd["spec"]["template"]["spec"]["containers"][0]["command"][3:] = ["/bin/sh", "-c", ENTRY]
crd["spec"]["runtimes"].append({"name": "side", "port": 7777, "logDir": "/tmp/side.log"})
for path, body in (("/admin/sandbox-templates", {"crdJson": json.dumps(crd)}),
                   ("/envs", {"name": "talker", "templateRef": {"name": "talker"},
                             "overrides": {"podCreationImagePolicy": "PoolDefaultImage"}}),
                   ("/envs/talker/sandboxpools",
                    {"inlineResources": crd["spec"]["template"]["spec"]["containers"][0]["resources"], "replicas": 3})):
    made = native("POST", path, body)
    assert made.status in (201, 202), str(made)
wait_warm("talker")
sandbox = Sandbox("talker")


def call(method, what, body=None, status=200, of=None):
    answer = native(method, "/sandboxes/%s%s" % ((of or sandbox).id, what), body)
    assert answer.status == status, "%s %s: %s, not %d" % (method, what, answer, status)
    return answer.json if answer.body else None


def sh(line, status=200, of=None, **more):
    return call("POST", "/exec", {"command": line, **more}, status, of)


def log(text):
    """A line of the container's own output."""
    assert sh("printf '%%s\\n' '%s' > %s" % (text, SAY))["exitCode"] == 0


def spoken(what, count, of=None):
    """The log once it has so many lines."""
    logs = call("GET", what, of=of)
    return logs if len(logs["entries"]) >= count else None


@step("a command: its output, its exit code, whoever it is")
def _():
    done = sh("echo out; echo err >&2; id -u; exit 3")
    assert done == {"exitCode": 3, "stdout": "out\n0\n", "stderr": "err\n"}, done
    assert sh("kill -9 $$")["exitCode"] == 137
    assert sh(r"printf '\377x'")["stdout"] == "\ufffdx", "bytes that are no text"
    assert sh("cat; echo end")["stdout"] == "end\n", "its input is empty"


@step("a command that does not end is killed, one that writes too much too")
def _():
    begin = time.monotonic()
    refused = sh("sleep 77", 504, timeoutSeconds=1)
    assert "1 s" in refused["error"] and time.monotonic() - begin < 20, refused
    assert "over" in sh("yes", 413)["error"]
    wait_for("both are gone", lambda: sh("ps ax -o args | grep -cE '^(sleep 77|yes)'")["stdout"].strip() == "0")


@step("a secure sandbox takes commands as well")
def _():
    answer = e2b("POST", "/sandboxes", {"templateID": "talker", "timeout": 60, "secure": True})
    assert answer.status == 201, str(answer)
    secure = Sandbox.of(answer.json["sandboxID"])
    assert sh("echo in", of=secure)["stdout"] == "in\n"
    secure.kill()


@step("it is ready, by its runtime's probe")
def _():
    ready = call("GET", "/is_ready")
    assert ready["ready"] is True and ready["endpoints"]["envd"]["ready"] is True, ready


@step("logs: all, the last lines, of the container that is asked for")
def _():
    for text in ("first", "second", "third"):
        log(text)
    logs = wait_for("three lines", lambda: spoken("/logs", 3))
    assert [entry["log"] for entry in logs["entries"]][-3:] == ["first", "second", "third"], logs
    assert logs["source"] == "live" and logs["truncated"] is False and logs["containers"] == ["sandbox"], logs
    assert [entry["log"] for entry in call("GET", "/logs?lines=2&container=sandbox")["entries"]] == ["second", "third"]
    call("GET", "/logs?container=nope", status=400)
    call("GET", "/logs?source=envd", status=400)


class Stream(threading.Thread):
    """GET .../logs/stream, a list of its objects."""

    def __init__(self, query, of):
        super().__init__(daemon=True)
        self.objects, self.over = [], False
        parts = urllib.parse.urlsplit(BASE)
        self.connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
        self.connection.request("GET", "/v1/sandboxes/%s/logs/stream%s" % (of.id, query), headers={"AGENTBOX-API-KEY": KEY})
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200 and self.answer.headers["Content-Type"] == "application/x-ndjson"
        assert self.answer.headers["X-Accel-Buffering"] == "no" and self.answer.headers["Cache-Control"] == "no-cache"
        self.start()

    def run(self):
        for line in self.answer:
            self.objects.append(json.loads(line))
        self.over = True

    def logs(self):
        return [each["log"] for each in self.objects if "log" in each]


@step("the stream: what was there, what comes, and the end with the sandbox")
def _():
    other = Sandbox("talker")
    sh("(echo before; echo last) > " + SAY, of=other)
    wait_for("two lines", lambda: spoken("/logs", 2, other))
    stream = Stream("?lines=1", other)
    wait_for("what was there", lambda: stream.logs() == ["last"])
    sh("echo after > " + SAY, of=other)
    wait_for("what came", lambda: stream.logs() == ["last", "after"])
    entry = stream.objects[0]
    assert entry["container_name"] == "sandbox" and entry["pod_name"] and entry["namespace_name"] == "default", entry
    other.kill()
    wait_for("the end", lambda: stream.over)
    assert stream.objects[-1]["_meta"] is True and stream.objects[-1]["source"] == "live", stream.objects
    assert stream.logs() == ["last", "after"], "nothing of the Pod's next life"


@step("a long line comes whole, and a stream that is not read holds nobody up")
def _():
    stream = Stream("?lines=1", sandbox)
    sh("(head -c 300000 /dev/zero | tr '\\0' x; echo) > " + SAY)
    wait_for("300,000 x", lambda: any(len(each) == 300000 for each in stream.logs()))
    lazy = http.client.HTTPConnection(urllib.parse.urlsplit(BASE).hostname, urllib.parse.urlsplit(BASE).port)
    lazy.request("GET", "/v1/sandboxes/%s/logs/stream" % sandbox.id, headers={"AGENTBOX-API-KEY": KEY})
    sh("head -c 500000 /dev/zero | tr '\\0' y | fold -w 100 > " + SAY)
    assert sh("echo on")["stdout"] == "on\n"
    lazy.close()


@step("the log of a runtime is the file its template names")
def _():
    assert "side.log" in call("GET", "/logs?source=side", status=500)["error"], "there is none yet"
    sh("seq 3 > /tmp/side.log")
    logs = call("GET", "/logs?source=side&lines=2")
    assert [entry["log"] for entry in logs["entries"]] == ["2", "3"], logs
    assert (logs["source"], logs["runtimeName"]) == ("runtime", "side"), logs
    stream = Stream("?source=side&lines=1", sandbox)
    wait_for("the last line", lambda: stream.logs() == ["3"])
    sh("echo 4 >> /tmp/side.log")
    wait_for("the next", lambda: stream.logs() == ["3", "4"])
    stream.connection.sock.shutdown(2)
    wait_for("nobody reads it any more", lambda: sh("pgrep -fc '^tail -n 1 -F'")["stdout"].strip() == "0")
    call("GET", "/logs?source=nope", status=400)


# ---- the terminal ----

def token(of=None):
    return call("POST", "/exec-token", of=of)["token"]


def address(text, path="/v1/sandboxes/%s/terminal"):
    return BASE.replace("http", "ws", 1) + path % sandbox.id + "?token=" + text


async def until(socket, wanted, seconds=20):
    """Reads binary frames until they have it."""
    out = b""
    while wanted not in out:
        frame = await asyncio.wait_for(socket.recv(), seconds)
        assert isinstance(frame, bytes), frame
        out += frame
    return out


async def refused(url):
    try:
        async with websockets.connect(url):
            return 101
    except websockets.InvalidStatus as error:
        return error.response.status_code


@step("the terminal: typing, sizes, its end")
def _():
    async def talk():
        async with websockets.connect(address(token())) as socket:
            await socket.send(json.dumps({"op": "resize", "cols": 123, "rows": 45}))
            await socket.send(b"stty size; echo $TERM; tty\n")
            out = await until(socket, b"/dev/pts/")
            assert b"45 123" in out and b"xterm-256color" in out, out
            await socket.send(json.dumps({"op": "stdin", "data": "echo a$((1+1))b\n"}))
            await until(socket, b"a2b")
            await socket.send(json.dumps({"op": "dance"}))  # ignored
            await socket.send("no json")
            pong = await socket.ping()
            await asyncio.wait_for(pong, 10)
            await socket.send(b"exit\n")
            try:
                while True:
                    await asyncio.wait_for(socket.recv(), 20)
            except websockets.ConnectionClosedOK as closed:
                assert closed.rcvd.code == 1000
    asyncio.run(talk())


@step("the terminal: much typed and much written arrives whole and in order")
def _():
    async def talk():
        async with websockets.connect(address(token()), max_size=None) as socket:
            await socket.send(b"stty -echo; PS1=; cat > /tmp/typed; wc -c < /tmp/typed; md5sum < /tmp/typed; seq 200000; echo do''ne\n")
            await asyncio.sleep(1)
            lines = b"".join(b"%060d\n" % n for n in range(4000))
            for at in range(0, len(lines), 5000):
                await socket.send(lines[at:at + 5000])
            await socket.send(b"\x04")
            out = await until(socket, b"done", 60)
            assert b"%d" % len(lines) in out, out[:200]
            numbers = [int(word) for word in out.split() if word.isdigit()]
            assert numbers[-200000:] == list(range(1, 200001)), "the output is not whole"
    asyncio.run(talk())


@step("the terminal: a token opens it once, its own sandbox alone, and not without one")
def _():
    used = token()

    async def talk():
        async with websockets.connect(address(used, "/ws/clusters/local/sandboxes/%s/terminal")) as socket:
            await socket.send(b"echo o''k\n")
            await until(socket, b"ok")
        assert await refused(address(used)) == 401
        assert await refused(address("")) == 401
        other = Sandbox("talker")
        assert await refused(address(token(other))) == 401
        other.kill()
    asyncio.run(talk())


@step("the terminal: when its client goes the shell goes, whatever runs in it")
def _():
    async def talk():
        async with websockets.connect(address(token())) as socket:
            await socket.send(b"exec sleep 4321\n")
            await until(socket, b"4321")
            await asyncio.sleep(0.3)
            assert sh("pgrep -fx 'sleep 4321' | wc -l")["stdout"].strip() == "1"
            socket.transport.abort()
    asyncio.run(talk())
    wait_for("the shell is gone", lambda: sh("pgrep -fx 'sleep 4321' | wc -l")["stdout"].strip() == "0", 30)


@step("a paused sandbox: no commands, no terminal, not ready, its log still there")
def _():
    other = Sandbox("talker")
    sh("echo kept > " + SAY, of=other)
    wait_for("a line", lambda: spoken("/logs", 1, other))
    assert e2b("POST", "/sandboxes/%s/pause" % other.id, {}).status == 204
    assert "Paused" in sh("true", 400, of=other)["error"]
    call("POST", "/exec-token", status=400, of=other)
    assert call("GET", "/is_ready", status=503, of=other)["ready"] is False
    assert native("GET", "/sandboxes/" + other.id).json["sandbox"]["status"] == "Paused"
    assert [entry["log"] for entry in call("GET", "/logs", of=other)["entries"]] == ["kept"]
    assert e2b("DELETE", "/sandboxes/" + other.id).status == 204


@step("the env's documentation has this server's addresses, and no key")
def _():
    docs = native("GET", "/envs/talker").json["env"]["envDocs"]
    assert docs == "talker %s ${AGBX_API_KEY}" % urllib.parse.urlsplit(BASE).netloc, docs
    docs = native("GET", "/sandbox-templates/talker").json["template"]["docs"]
    assert docs == "YOUR_ENV_NAME %s ${AGBX_API_KEY}" % urllib.parse.urlsplit(BASE).netloc, docs


sandbox.kill()
assert native("DELETE", "/envs/talker").status == 202
assert native("DELETE", "/admin/sandbox-templates/talker").status == 202
finish()
