"""Show 7: bad input, each with its clear error and nothing changed."""
import http.client
import json
import os
import socket
import urllib.parse

from harness import ABX, BASE, STATE_DIR, Sandbox, abx, e2b, finish, native, running_ids, step, request, KEY

before = sorted(running_ids())
envs_before = sorted(item["name"] for item in native("GET", "/envs").json["items"])


def says(answer, status, *words):
    assert answer.status == status, "expected %s: %s" % (status, answer)
    for word in words:
        assert word in answer.text, "the error does not say %r: %s" % (word, answer)
    assert "application/json" in answer.headers.get("Content-Type", answer.headers.get("content-type", "")), answer.headers


@step("unknown env: 400 naming it, on both creates")
def _():
    for path in ("/sandboxes", "/v2/sandboxes"):
        says(e2b("POST", path, {"templateID": "no-such-env", "timeout": 60}), 400, "no-such-env")


@step("timeout 0 and negative: 400")
def _():
    for timeout in (0, -1):
        says(e2b("POST", "/sandboxes", {"templateID": "base", "timeout": timeout}), 400, "timeout")


@step("a body that is no JSON, and a wrong type: 400")
def _():
    says(e2b("POST", "/sandboxes", b"{\"templateID\": ", headers={"Content-Type": "application/json"}), 400)
    says(e2b("POST", "/sandboxes", {"templateID": 7}), 400, "templateID")


@step("bad key and no key: 401, on every surface")
def _():
    for key in ("agbx_wrong", "e2b_0123456789abcdef", "", None):
        says(e2b("GET", "/v2/sandboxes", key=key), 401)
        says(native("GET", "/envs", key=key), 401)


@step("an unknown field in an env body: 400 naming it, nothing made")
def _():
    says(native("POST", "/envs", {"name": "bad-env", "templateRef": {"name": "base"}, "nonsense": 1}), 400, "nonsense")
    assert native("GET", "/envs/bad-env").status == 404


@step("an unknown field in a manifest: refused by abx naming it, nothing made")
def _():
    manifest = (b"apiVersion: agents.navix.sh/v1alpha1\nkind: SandboxEnv\nmetadata:\n  name: bad-env\nspec:\n"
                b"  templateRef:\n    name: base\n  nonsense: 1\n")
    done = abx("create", "envs", "-f", "-", stdin=manifest, check=False)
    assert done.returncode == 1 and b"error: " in done.stderr and b"nonsense" in done.stderr, done.stderr
    assert native("GET", "/envs/bad-env").status == 404


@step("negative replicas: 400 naming the field, nothing made")
def _():
    body = {"replicas": -1, "inlineResources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}}
    pools = native("GET", "/envs/base/sandboxpools").json["items"]
    says(native("POST", "/envs/base/sandboxpools", body), 400, "replicas")
    assert len(native("GET", "/envs/base/sandboxpools").json["items"]) == len(pools)


@step("an oversized body: 413 or 400, said at once")
def _():
    body = b"{\"templateID\": \"" + b"a" * (8 << 20) + b"\"}"
    try:
        answer = e2b("POST", "/sandboxes", body, headers={"Content-Type": "application/json"})
    except (BrokenPipeError, ConnectionResetError):
        return  # refused before it was read to its end
    assert answer.status in (400, 413), str(answer)


@step("requests that are no HTTP: 400 or closed, the listener lives")
def _():
    parts = urllib.parse.urlsplit(BASE)
    for junk in (b"\0\1\2\3" * 64 + b"\r\n\r\n", b"GET / HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
                 b"GET /" + b"a" * 200000 + b" HTTP/1.1\r\n\r\n", b"POST /sandboxes HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"):
        with socket.create_connection((parts.hostname, parts.port), timeout=10) as connection:
            try:
                connection.sendall(junk)
                connection.shutdown(socket.SHUT_WR)
                first = connection.recv(64)
            except ConnectionError:
                first = b""
            assert first == b"" or b" 4" in first[:16] or b" 501" in first[:16], first
    assert request("GET", BASE + "/ping").status == 200


sandbox = Sandbox("base")


@step("a truncated multipart upload: refused, no file left")
def _():
    parts = urllib.parse.urlsplit(sandbox.url("/files?path=/tmp/cut&username=user"))
    body = b"--edge\r\nContent-Disposition: form-data; name=\"file\"; filename=\"cut\"\r\n\r\nhalf of it"
    answer = sandbox.request("POST", "/files?path=/tmp/cut&username=user", body,
                             headers={"Content-Type": "multipart/form-data; boundary=edge"})
    assert answer.status == 500 and "multipart" in answer.text, str(answer)  # the status envd's contract gives it
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=10)
    connection.putrequest("POST", parts.path + "?" + parts.query)
    connection.putheader("AGENTBOX-API-KEY", KEY)
    connection.putheader("Content-Type", "multipart/form-data; boundary=edge")
    connection.putheader("Content-Length", "1000000")
    connection.endheaders(body)
    connection.close()  # the peer is gone in the middle
    assert sandbox.sh("sleep 0.3; ls /tmp/cut 2>/dev/null || echo none").strip() == "none"


@step("a path outside: no file of the host is reached")
def _():
    secret = next(os.path.join(folder, name) for folder, _, names in os.walk(STATE_DIR) for name in names)
    for path in (secret, "/" + "../" * 20 + secret.lstrip("/"), "../" * 30 + secret.lstrip("/"), "/proc/1/root" + secret):
        answer = sandbox.request("GET", "/files?username=root&path=" + urllib.parse.quote(path))
        assert answer.status == 404, "%s: %s" % (path, answer)


@step("an unknown user: an error naming it, from processes and files")
def _():
    code, _, _, error = sandbox.start("/bin/true", user="nobody-here")
    assert error and "nobody-here" in json.dumps(error), (code, error)
    answer = sandbox.request("GET", "/files?path=/tmp/x&username=nobody-here")
    assert answer.status in (400, 401) and "nobody-here" in answer.text, str(answer)


@step("a cwd that does not exist: an error naming it")
def _():
    code, _, _, error = sandbox.start("/bin/true", cwd="/no/such/folder")
    assert error and "/no/such/folder" in json.dumps(error), (code, error)


@step("a command that does not exist: an error, not a hang")
def _():
    code, _, _, error = sandbox.start("/no/such/program")
    assert error or code not in (0, None), (code, error)


@step("a 1 MB command line: refused or run, never cut")
def _():
    code, out, _, error = sandbox.start("/bin/sh", ["-c", "printf %s \"$0\" | wc -c", "a" * (1 << 20)])
    assert error is not None or (code == 0 and out.strip() == b"1048576"), (code, out[:100], error)
    assert sandbox.sh("echo alive") == "alive\n"


@step("a NUL in a path: 400, in files and in processes")
def _():
    answer = sandbox.request("GET", "/files?username=user&path=/tmp/a%00b")
    assert answer.status == 400, str(answer)
    answer = sandbox.rpc("filesystem.Filesystem/Stat", {"path": "/tmp/a\0b"})
    assert answer.status == 400, str(answer)
    _, _, _, error = sandbox.start("/bin/echo", ["a\0b"])
    assert error, "a NUL in an argument went through"


@step("a port nobody listens on: 502 with its JSON body; an unknown sandbox: 404 or 502")
def _():
    answer = sandbox.request("GET", "/", port=4999)
    assert answer.status == 502 and answer.json, str(answer)
    answer = Sandbox.of("a" * 20).request("GET", "/health")
    assert answer.status in (404, 502) and answer.json, str(answer)


@step("abx: each mistake exits 1 and says what to do")
def _():
    for words, said in ((["envs", "nope"], b"nope"), (["exec", "a" * 20, "--", "true"], b"a" * 20),
                        (["create", "--template", "no-such-env"], b"no-such-env"),
                        (["create", "--template", "base", "--timeout", "0"], b"timeout"), (["nonsense"], b"resources:"),
                        (["cp", sandbox.id + ":/no/such/file", "/tmp/x"], b"/no/such/file"),
                        (["ls", sandbox.id, "/no/such/folder"], b"/no/such/folder"),
                        (["kill", "b" * 20], b"b" * 20)):
        done = abx(*words, check=False)
        assert done.returncode == 1 and done.stderr.startswith(b"error: ") and said in done.stderr, (words, done)


@step("nothing changed: the same sandboxes and envs as before")
def _():
    assert sandbox.kill() == 204
    assert sandbox.kill() == 404
    assert sorted(running_ids()) == before
    assert sorted(item["name"] for item in native("GET", "/envs").json["items"]) == envs_before


assert ABX
finish()
