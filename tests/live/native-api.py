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

wait_warm("base")
sandbox = Sandbox("base")


def call(method, what, body=None, status=200, of=None):
    answer = native(method, "/sandboxes/%s%s" % ((of or sandbox).id, what), body)
    assert answer.status == status, "%s %s: %s, not %d" % (method, what, answer, status)
    return answer.json if answer.body else None


def sh(line, status=200, of=None, **more):
    return call("POST", "/exec", {"command": line, **more}, status, of)


def log(text):
    """A line of the container's own output."""
    assert sh("printf '%%s\\n' '%s' > /proc/1/fd/1" % text)["exitCode"] == 0


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
    answer = e2b("POST", "/sandboxes", {"templateID": "base", "timeout": 60, "secure": True})
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
    logs = call("GET", "/logs")
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
    other = Sandbox("base")
    sh("echo before > /proc/1/fd/1; echo last > /proc/1/fd/1", of=other)
    stream = Stream("?lines=1", other)
    wait_for("what was there", lambda: stream.logs() == ["last"])
    sh("echo after > /proc/1/fd/1", of=other)
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
    sh("head -c 300000 /dev/zero | tr '\\0' x > /proc/1/fd/1; echo > /proc/1/fd/1")
    wait_for("300,000 x", lambda: any(len(each) == 300000 for each in stream.logs()))
    lazy = http.client.HTTPConnection(urllib.parse.urlsplit(BASE).hostname, urllib.parse.urlsplit(BASE).port)
    lazy.request("GET", "/v1/sandboxes/%s/logs/stream" % sandbox.id, headers={"AGENTBOX-API-KEY": KEY})
    sh("head -c 700000 /dev/zero | tr '\\0' y | fold -w 100 > /proc/1/fd/1")
    assert sh("echo on")["stdout"] == "on\n"
    lazy.close()


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
        other = Sandbox("base")
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
    other = Sandbox("base")
    sh("echo kept > /proc/1/fd/1", of=other)
    assert e2b("POST", "/sandboxes/%s/pause" % other.id, {}).status == 204
    assert "Paused" in sh("true", 400, of=other)["error"]
    call("POST", "/exec-token", status=400, of=other)
    assert call("GET", "/is_ready", status=503, of=other)["ready"] is False
    assert native("GET", "/sandboxes/" + other.id).json["sandbox"]["status"] == "Paused"
    assert [entry["log"] for entry in call("GET", "/logs", of=other)["entries"]] == ["kept"]
    assert e2b("DELETE", "/sandboxes/" + other.id).status == 204


@step("the env's documentation has this server's addresses, and no key")
def _():
    docs = native("GET", "/envs/base").json["env"]["envDocs"]
    assert "${AGBX_ENV_NAME}" not in docs and "base" in docs and KEY not in docs, docs


sandbox.kill()
finish()
