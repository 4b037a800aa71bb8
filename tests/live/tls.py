"""The TLS listener of a running instance: certificate and names, HTTP/1.1 and HTTP/2, the host form, WebSockets, events,
half-close, and the official E2B SDKs with nothing but E2B_DOMAIN and the CA.

Names below the domain are resolved by names.py's name server; curl is told by --resolve.
"""
import base64
import hashlib
import json
import os
import signal
import socket
import ssl
import struct
import subprocess
import tempfile
import threading
import time

from names import E2B_KEY, run_named, serve_names
from harness import ABX, STATE_DIR, TOP, Sandbox, Skip, finish, note, step, wait_for

with open(os.path.join(STATE_DIR, "agentboxd.json"), encoding="utf-8") as file:
    instance = json.load(file)
if not instance.get("tlsListen") or not instance.get("ca"):
    print("ok 1 - # SKIP the instance has no TLS listener of its own CA")
    print("1..1")
    raise SystemExit(0)

ADDRESS, _, port_text = instance["tlsListen"][0].rpartition(":")
PORT = int(port_text)
CA = instance["ca"]
DOMAIN = instance["domain"]
work = tempfile.TemporaryDirectory(prefix="agentbox-tls-")
os.chmod(work.name, 0o755)


def curl(*words, check=True, **more):
    """curl with the CA and our names; its output as bytes."""
    done = subprocess.run(["curl", "-sS", "--max-time", "60", "--cacert", CA, "--resolve", "*:%d:%s" % (PORT, ADDRESS),
                           *words], capture_output=True, timeout=90, **more)
    assert not check or done.returncode == 0, "curl %s: exit %d %s" % (words, done.returncode, done.stderr.decode())
    return done.stdout


def host(port, sandbox_id):
    return "%d-%s.%s" % (port, sandbox_id, DOMAIN)


def url(name, path="/"):
    return "https://%s:%d%s" % (name, PORT, path)


def tls(name, protocols=("http/1.1",)):
    """A verified connection to the listener under that name."""
    context = ssl.create_default_context(cafile=CA)
    context.set_alpn_protocols(list(protocols))
    raw = socket.create_connection((ADDRESS, PORT), timeout=20)
    return context.wrap_socket(raw, server_hostname=name)


sandbox = Sandbox(timeout=600)
ENVD = host(49983, sandbox.id)

SERVERS = r'''
import asyncio, base64, hashlib

async def read_head(reader):
    return (await reader.readuntil(b"\r\n\r\n")).decode()

async def events(reader, writer):
    await read_head(reader)
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    for wait, text in ((0, b"data: first\n\n"), (3, b"data: second\n\n")):
        await asyncio.sleep(wait)
        writer.write(b"%x\r\n%s\r\n" % (len(text), text))
        await writer.drain()
    writer.write(b"0\r\nX-Trailer: behind\r\n\r\n")
    writer.close()

async def websocket(reader, writer):
    head = await read_head(reader)
    key = [line.split(":", 1)[1].strip() for line in head.split("\r\n") if line.lower().startswith("sec-websocket-key")][0]
    accept = base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest())
    writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                 b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n")
    while True:
        try:
            first, second = await reader.readexactly(2)
        except asyncio.IncompleteReadError:
            break
        mask = await reader.readexactly(4)
        data = bytes(b ^ mask[i % 4] for i, b in enumerate(await reader.readexactly(second & 127)))
        writer.write(bytes([first, len(data)]) + data)
        await writer.drain()
    writer.close()

async def raw(reader, writer):
    """Takes all that comes, then says how much it was: needs the client's end to be passed on."""
    await read_head(reader)
    writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: raw\r\nConnection: Upgrade\r\n\r\n")
    data = await reader.read()
    writer.write(b"got %d, and the answer comes behind your end" % len(data))
    await writer.drain()
    writer.close()

async def main():
    for port, what in ((8002, events), (8003, websocket), (8004, raw)):
        await asyncio.start_server(what, "127.0.0.1", port)
    print("ready", flush=True)
    await asyncio.sleep(3600)

asyncio.run(main())
'''
# A queue for 64 at once: with http.server's own of 5 the kernel drops what is too many, and each waits for its next try.
WWW = """from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
ThreadingHTTPServer.request_queue_size = 128
ThreadingHTTPServer(("", 8001), SimpleHTTPRequestHandler).serve_forever()
"""
sandbox.request("POST", "/files?path=/tmp/www.py", WWW.encode(), headers={"Content-Type": "application/octet-stream"})
sandbox.request("POST", "/files?path=/tmp/servers.py", SERVERS.encode(), headers={"Content-Type": "application/octet-stream"})
sandbox.sh("mkdir -p /tmp/www && echo from the sandbox >/tmp/www/index.html && cd /tmp/www && "
           "(setsid python3 /tmp/www.py >/dev/null 2>&1 &) && (setsid python3 /tmp/servers.py >/tmp/servers.log 2>&1 &)")
wait_for("the servers in the sandbox", lambda: "ready" in sandbox.sh("cat /tmp/servers.log 2>/dev/null || true"))


@step("the certificate is good for every name, and only with the CA")
def _():
    for name in ("localhost", "127.0.0.1", DOMAIN, "api." + DOMAIN, ENVD):
        with tls(name) as connection:
            assert connection.version() == "TLSv1.3", connection.version()
    for name in ("example.com", "a.b." + DOMAIN):
        try:
            tls(name)
        except ssl.SSLCertVerificationError:
            continue
        raise AssertionError("the certificate was taken for " + name)
    try:
        ssl.create_default_context().wrap_socket(socket.create_connection((ADDRESS, PORT), 10), server_hostname=DOMAIN)
    except ssl.SSLCertVerificationError:
        return
    raise AssertionError("it was trusted without the CA")


@step("plain HTTP on the TLS port is told so")
def _():
    with socket.create_connection((ADDRESS, PORT), timeout=10) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = b""
        while piece := plain.recv(4096):
            answer += piece
    assert answer.startswith(b"HTTP/1.1 400") and b"https" in answer, answer


@step("the E2B API answers at api.DOMAIN, over HTTP/1.1 and HTTP/2")
def _():
    for option, version in (("--http1.1", "1.1"), ("--http2", "2")):
        out = curl(option, "-H", "X-API-Key: " + E2B_KEY, "-w", "\n%{http_version}", url("api." + DOMAIN, "/v2/sandboxes"))
        listed, _, spoken = out.decode().rpartition("\n")
        assert spoken == version, spoken
        assert sandbox.id in [each["sandboxID"] for each in json.loads(listed)]


@step("a port of a sandbox is reached at PORT-ID.DOMAIN, over both")
def _():
    for option in ("--http1.1", "--http2"):
        assert curl(option, url(host(8001, sandbox.id))) == b"from the sandbox\n"
        assert curl(option, url(host(8001, sandbox.id + "-00000000"))) == b"from the sandbox\n"


@step("the host form wins over a path that looks like another sandbox's")
def _():
    status = curl("-o", "/dev/null", "-w", "%{http_code}", url(host(8001, sandbox.id), "/sandboxes/other/80/x"))
    assert status == b"404", status  # http.server's own


@step("shared host: headers name the sandbox at sandbox.DOMAIN, localhost and an IP address")
def _():
    for name in ("sandbox." + DOMAIN, "localhost", "127.0.0.1"):
        out = curl("-H", "E2b-Sandbox-Id: " + sandbox.id, "-H", "E2b-Sandbox-Port: 8001", url(name))
        assert out == b"from the sandbox\n", (name, out)


@step("a sandbox that is not there is 502 with its words, over HTTP/2 too")
def _():
    out = curl("--http2", "-w", " %{http_code}", url(host(49983, "nosuchsandbox"), "/health"))
    assert b"The sandbox was not found" in out and out.endswith(b" 502"), out


@step("64 requests share one HTTP/2 connection")
def _():
    config = os.path.join(work.name, "many")
    with open(config, "w", encoding="utf-8") as lines:
        for i in range(64):
            lines.write('url = "%s"\noutput = "%s/many.%d"\n' % (url(host(8001, sandbox.id), "/?%d" % i), work.name, i))
    out = curl("--http2", "--parallel", "--parallel-max", "64", "-w", "%{num_connects}\n", "--config", config)
    connects = [int(line) for line in out.split()]
    assert len(connects) == 64 and sum(connects) <= 2, "%d connections" % sum(connects)
    for i in range(64):
        with open("%s/many.%d" % (work.name, i), "rb") as got:
            assert got.read() == b"from the sandbox\n"


@step("50 MB go up and come back unchanged, over both")
def _():
    data = os.urandom(50 << 20)
    path = os.path.join(work.name, "large")
    with open(path, "wb") as large:
        large.write(data)
    digest = hashlib.sha256(data).hexdigest()
    for option in ("--http1.1", "--http2"):
        curl(option, "-f", "-X", "POST", "-H", "Content-Type: application/octet-stream", "--data-binary", "@" + path,
             "-o", "/dev/null", url(ENVD, "/files?path=/tmp/large&username=user"))
        assert sandbox.sh("sha256sum < /tmp/large").split()[0] == digest
        start = time.monotonic()
        back = curl(option, "-f", url(ENVD, "/files?path=/tmp/large&username=user"))
        note("%s: 50 MB down in %.2f s" % (option, time.monotonic() - start))
        assert hashlib.sha256(back).hexdigest() == digest


@step("events come as they happen, with silence between, over both")
def _():
    for option in ("--http1.1", "--http2"):
        with subprocess.Popen(["curl", "-sSN", option, "--cacert", CA, "--resolve", "*:%d:%s" % (PORT, ADDRESS),
                               url(host(8002, sandbox.id))], stdout=subprocess.PIPE) as events:
            start = time.monotonic()
            assert events.stdout.readline() == b"data: first\n"
            assert time.monotonic() - start < 2.5, "the first event waited"
            assert events.stdout.read() == b"\ndata: second\n\n"
            assert time.monotonic() - start > 2.5
            assert events.wait(timeout=20) == 0


@step("trailers come through, over both")
def _():
    for option in ("--http1.1", "--http2"):
        out = curl(option, "-D", "-", "-o", "/dev/null", url(host(8002, sandbox.id))).decode().lower()
        assert "x-trailer: behind" in out, out


def upgrade(name, protocol):
    connection = tls(name)
    key = base64.b64encode(os.urandom(16)).decode()
    connection.sendall(("GET / HTTP/1.1\r\nHost: %s:%d\r\nConnection: Upgrade\r\nUpgrade: %s\r\n"
                        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n\r\n" % (name, PORT, protocol, key)).encode())
    head = b""
    while b"\r\n\r\n" not in head:
        piece = connection.recv(1)
        assert piece, head
        head += piece
    assert head.startswith(b"HTTP/1.1 101"), head
    return connection


@step("a WebSocket passes over TLS")
def _():
    with upgrade(host(8003, sandbox.id), "websocket") as connection:
        for text in (b"hello", b"again"):
            mask = os.urandom(4)
            connection.sendall(bytes([0x81, 0x80 | len(text)]) + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(text)))
            got = b""
            while len(got) < 2 + len(text):
                got += connection.recv(100)
            assert got == bytes([0x81, len(text)]) + text, got


@step("a client may end its side and still be answered")
def _():
    # Through buffers, because ssl's sockets cannot end one side alone.
    context = ssl.create_default_context(cafile=CA)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    side = context.wrap_bio(incoming, outgoing, server_hostname=host(8004, sandbox.id))
    with socket.create_connection((ADDRESS, PORT), timeout=20) as raw:
        def until(call):
            while True:
                try:
                    done = call()
                    raw.sendall(outgoing.read())
                    return done
                except ssl.SSLWantReadError:
                    raw.sendall(outgoing.read())
                    piece = raw.recv(65536)
                    if piece:
                        incoming.write(piece)
                    else:
                        incoming.write_eof()

        until(side.do_handshake)
        until(lambda: side.write(("GET / HTTP/1.1\r\nHost: %s:%d\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n"
                                  % (host(8004, sandbox.id), PORT)).encode()))
        got = b""
        while b"\r\n\r\n" not in got:
            got += until(lambda: side.read(1000))
        until(lambda: side.write(b"x" * 1000))
        try:
            side.unwrap()  # close_notify alone leaves; the peer's has not come
        except ssl.SSLWantReadError:
            pass
        raw.sendall(outgoing.read())
        end = time.monotonic() + 20
        while b"behind your end" not in got and time.monotonic() < end:
            got += until(lambda: side.read(1000))
        assert b"got 1000, and the answer comes behind your end" in got, got


@step("SIGHUP reads the certificate again and cuts no stream")
def _():
    with tls(host(8002, sandbox.id)) as events:
        events.sendall(("GET / HTTP/1.1\r\nHost: %s:%d\r\n\r\n" % (host(8002, sandbox.id), PORT)).encode())
        got = b""
        while b"first" not in got:
            got += events.recv(1000)
        os.kill(instance["pid"], signal.SIGHUP)
        assert curl(url(host(8001, sandbox.id))) == b"from the sandbox\n"
        while b"second" not in got:
            piece = events.recv(1000)
            assert piece, got
            got += piece


@step("abx, and so libagentbox, over TLS with the CA in SSL_CERT_FILE")
def _():
    env = {name: value for name, value in os.environ.items() if name != "AGENTBOX_SOCKET"}
    env["AGENTBOX_CLUSTER_API"] = "https://127.0.0.1:%d" % PORT
    words = [ABX, "exec", sandbox.id, "--", "echo", "through TLS"]
    assert subprocess.run(words, env=dict(env, SSL_CERT_FILE=CA), capture_output=True, check=True).stdout == b"through TLS\n"
    refused = subprocess.run(words, env=env, capture_output=True)
    assert refused.returncode != 0 and b"certificate" in refused.stderr, refused


# ---- the official SDKs, by E2B_DOMAIN and the CA alone ----

def sdk(program, **variables):
    """Its TAP lines as one step."""
    done, passed = run_named(program, E2B_DOMAIN="%s:%d" % (DOMAIN, PORT), **variables)
    assert done.returncode == 0 and passed > 0, "%d passed, exit %d\n%s" % (passed, done.returncode,
                                                                             done.stderr.decode("utf-8", "replace")[-2000:])
    note("%d steps of %s passed" % (passed, os.path.basename(program[-1])))


def need(path):
    if not os.path.exists(path):
        raise Skip("%s is missing; tests/e2b/run --install-only makes it" % os.path.relpath(path, TOP))
    return path


serve_names(ADDRESS)
scenario = os.path.join(TOP, "tests", "e2b", "scenario")
modules = os.path.join(TOP, "build", "sdk", "node")


@step("the Python SDK, unmodified, with E2B_DOMAIN and the CA in SSL_CERT_FILE")
def _():
    sdk([need(os.path.join(TOP, "build/sdk/plain/bin/python")), scenario + ".py"], SSL_CERT_FILE=CA)


@step("the JavaScript SDK, unmodified, with E2B_DOMAIN and the CA in NODE_EXTRA_CA_CERTS")
def _():
    need(os.path.join(modules, "node_modules", "e2b"))
    node = "node"
    for name in os.listdir(os.path.join(modules, "node_modules")):
        if name.startswith("node-linux-"):
            node = os.path.join(modules, "node_modules", name, "bin", "node")
    sdk([node, scenario + ".mjs"], NODE_EXTRA_CA_CERTS=CA, E2B_NODE_MODULES=modules)


sandbox.kill()
work.cleanup()
finish()
