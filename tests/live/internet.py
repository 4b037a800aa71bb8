"""A Pod's way out: TCP, UDP, names and large bodies through the host's address; nobody's way in, nor to a neighbour.

Its host and its internet are namespaces (outside.py), and so is its instance: it needs AGENTBOX_BIN and root alone.
"""
import concurrent.futures
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

MISSING = [name for name in ("nft", "ip", "nsenter", "curl") if not shutil.which(name)]
if os.geteuid() != 0 or MISSING:
    print("1..0 # SKIP needs %s" % (", ".join(MISSING) or "root"))
    sys.exit(0)

import outside  # noqa: E402 # makes the host
import instance  # noqa: E402

instance.start(8080)
from daemons import workers  # noqa: E402
from harness import STATE_DIR, Sandbox, finish, note, step, wait_for, wait_warm  # noqa: E402
from outside import GATEWAY, HOST, HTTP_PORT, MTU, NAME, NARROW, RESOLVER, UDP_PORT, WEB, WEB6, internet, run  # noqa: E402

TAG = hashlib.sha256(os.path.realpath(STATE_DIR).encode()).hexdigest()[:4]
TABLE = "agentbox-" + TAG
SIZE = 24 << 20

# In a sandbox: what came of an act, as JSON: its value, or the name of its errno.
TRY = """
import errno, hashlib, json, socket, sys, urllib.request
def tcp(host, port, family=socket.AF_INET):
    with socket.socket(family) as s:
        s.settimeout(%s)
        s.connect((host, port))
        return s.getpeername()[0]
def udp(host, port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(%s)
        s.sendto(b"hello", (host, port))
        return s.recv(100).decode()
def ping(host):  # an echo request, RFC 792; the kernel fills in the checksum
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP) as s:
        s.settimeout(20)
        s.sendto(b"\\x08\\0\\0\\0\\0\\0\\0\\1ping", (host, 0))
        return s.recv(100)[-4:].decode()
def get(url, data=None):
    with urllib.request.urlopen(url, data, timeout=60) as answer:
        return answer.read()
try:
    print(json.dumps(eval(sys.argv[1])))
except OSError as e:
    e = getattr(e, "reason", e)
    print(json.dumps({"error": "timed out" if isinstance(e, TimeoutError) else errno.errorcode.get(e.errno, str(e))}))
"""


def attempt(sandbox, act, seconds=20):
    code, out, err, error = sandbox.start("/usr/bin/python3", ["-c", TRY % (seconds, seconds), act])
    assert code == 0, "%s: %s %s %s" % (act, code, err.decode(), error)
    return json.loads(out)


def reached(sandbox, *acts):
    """Those of the acts that end well; at once, since each that does not waits its time out."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        values = list(pool.map(lambda act: attempt(sandbox, act, 2), acts))
    return [act for act, value in zip(acts, values) if not (isinstance(value, dict) and "error" in value)]


def podd_log():
    with open(os.path.join(STATE_DIR, "agentboxd.log"), encoding="utf-8") as file:
        return file.read()


def restart_podd():
    """Kills it; the supervisor starts it again. What the new one wrote to the log."""
    old, before = workers("agentbox-podd"), len(podd_log())
    os.kill(old[0], signal.SIGKILL)
    wait_for("another agentbox-podd", lambda: [pid for pid in workers("agentbox-podd") if pid not in old])
    wait_for("its being ready", lambda: "tag=%s network=1" % TAG in podd_log()[before:])
    wait_warm("base")
    return podd_log()[before:]


def rules():
    return run("nft", "list", "table", "inet", TABLE)


@step("the host reaches its internet, and serves it: what is tested against holds")
def _():
    with socket.create_connection((WEB, HTTP_PORT), 5):
        pass
    instance.make_base()
    wait_warm("base")
    assert "masquerade" in rules()
    listener = socket.create_server(("0.0.0.0", 9000))

    def serve():
        while True:
            connection, _ = listener.accept()
            connection.close()
    threading.Thread(target=serve, daemon=True).start()
    internet(sys.executable, "-c", "import socket; socket.create_connection(('%s', 9000), 5)" % HOST)


a, b = Sandbox(), Sandbox()


@step("TCP and HTTP by curl and Python: the server sees the host's address, not the Pod's")
def _():
    assert attempt(a, "tcp('%s', %d)" % (WEB, HTTP_PORT)) == WEB
    assert a.sh("curl -sS --max-time 20 http://%s/peer" % WEB) == HOST
    assert attempt(b, "get('http://%s/peer').decode()" % GATEWAY) == HOST


@step("UDP and ping")
def _():
    who, _, what = attempt(a, "udp('%s', %d)" % (WEB, UDP_PORT)).split()
    assert (who, what) == (HOST, "hello")
    assert attempt(a, "ping('%s')" % WEB) == "ping"


@step("names, by the host's resolver")
def _():
    assert RESOLVER in a.sh("cat /etc/resolv.conf")
    assert a.sh("getent hosts " + NAME).split()[0] == WEB
    assert a.sh("curl -sS --max-time 20 http://%s/peer" % NAME) == HOST
    assert attempt(a, "socket.gethostbyname('%s')" % NAME) == WEB
    assert a.start("/bin/sh", ["-c", "getent hosts nothing.example.test"])[0] == 2


@step("%d MiB each way arrive whole" % (SIZE >> 20))
def _():
    digest = hashlib.sha256(outside.pattern(SIZE)).hexdigest()
    assert attempt(a, "hashlib.sha256(get('http://%s/bytes/%d')).hexdigest()" % (WEB, SIZE)) == digest
    want = hashlib.sha256(b"0123456789abcdef" * (SIZE // 16)).hexdigest()
    assert attempt(a, "get('http://%s/', b'0123456789abcdef' * %d).decode()" % (WEB, SIZE // 16)) == want


@step("a link's MTU is the uplink's; a narrower path behind it is found out")
def _():
    assert a.sh("cat /sys/class/net/eth0/mtu").strip() == str(MTU)
    want = hashlib.sha256(b"x" * (4 << 20)).hexdigest()
    assert attempt(a, "get('http://%s/', b'x' * (4 << 20)).decode()" % NARROW) == want


@step("two sandboxes do not reach each other: not by their addresses, nor by the host's")
def _():
    a.start("/bin/sh", ["-c", "python3 -m http.server 8000 >/dev/null 2>&1 &"])
    wait_for("the server in the sandbox", lambda: attempt(a, "tcp('127.0.0.1', 8000)") == "127.0.0.1" or None)
    address = a.sh("hostname -I").split()[0]
    assert address.startswith("100."), address
    assert reached(a, "tcp('%s', 8000)" % address), "the server is there"
    # The port a's datagram left the host by leads back to a for the one it was sent to, and for nobody else.
    port = int(attempt(a, "udp('%s', %d)" % (WEB, UDP_PORT)).split()[1])
    assert reached(b, *("%s('%s', %d)" % each for each in (
        ("tcp", address, 8000), ("tcp", HOST, 8000), ("udp", HOST, port), ("udp", address, port)))) == []


@step("nor the host's services, by any address of it")
def _():
    gateway = a.sh("ip route").split("default via ")[1].split()[0]
    assert reached(a, *("tcp('%s', %d)" % (address, port) for address in (HOST, gateway) for port in (9000, 8080))) == []


@step("who has a route to the Pods from outside reaches none")
def _():
    address = a.sh("hostname -I").split()[0]
    internet("ip", "route", "add", "100.64.0.0/10", "via", HOST)
    try:
        done = subprocess.run(["nsenter", "--net=/proc/%d/ns/net" % outside.pid, sys.executable, "-c",
                               "import socket; socket.create_connection(('%s', 8000), 2)" % address], capture_output=True)
        assert done.returncode != 0
        assert b"timed out" in done.stderr, done.stderr
    finally:
        internet("ip", "route", "delete", "100.64.0.0/10")


@step("IPv6 leads nowhere, and says so at once, where the host has it")
def _():
    with socket.create_connection((WEB6, HTTP_PORT), 5):
        pass
    assert attempt(a, "tcp('%s', %d, socket.AF_INET6)" % (WEB6, HTTP_PORT)) == {"error": "ENETUNREACH"}


@step("a host that lost its internet: the sandbox is told, and served again when it is back")
def _():
    outside.link_down()
    try:
        assert attempt(a, "tcp('%s', %d)" % (WEB, HTTP_PORT)) == {"error": "ENETUNREACH"}
    finally:
        outside.link_up()
    assert a.sh("curl -sS --max-time 20 http://%s/peer" % WEB) == HOST


@step("a killed agentbox-podd: the rules are the same, sandboxes old and new reach out")
def _():
    before = rules()
    with open("/proc/sys/net/ipv4/ip_forward", "w", encoding="ascii") as file:
        file.write("0")
    assert not reached(a, "tcp('%s', %d)" % (WEB, HTTP_PORT)), "forwarding is what it goes by"
    restart_podd()
    assert rules() == before
    assert a.sh("curl -sS --max-time 20 http://%s/peer" % NAME) == HOST
    new = Sandbox()
    assert new.sh("curl -sS --max-time 20 http://%s/peer" % NAME) == HOST
    address = a.sh("hostname -I").split()[0]
    assert reached(new, "tcp('%s', 8000)" % address, "tcp('%s', 9000)" % HOST) == []
    assert new.kill() == 204


@step("a firewall of the host that drops what is forwarded, as Docker's: named in the log, with what lets Pods out")
def _():
    # As iptables-nft writes it.
    run("nft", "add table ip filter; add chain ip filter FORWARD { type filter hook forward priority filter; policy drop; }")
    try:
        assert not reached(a, "tcp('%s', %d)" % (WEB, HTTP_PORT))
        said = [line for line in restart_podd().splitlines() if "drops what it forwards" in line]
        assert len(said) == 1, said
        for word in ("ip filter", "FORWARD", "ab%s*" % TAG):
            assert word in said[0], said[0]
        note(said[0])
        run("nft", 'add rule ip filter FORWARD iifname "ab%s*" accept' % TAG)
        run("nft", 'add rule ip filter FORWARD oifname "ab%s*" ct state established,related accept' % TAG)
        assert a.sh("curl -sS --max-time 20 http://%s/peer" % WEB) == HOST
        address = a.sh("hostname -I").split()[0]
        assert not reached(b, "tcp('%s', 8000)" % address), "those rules do not open the way to a neighbour"
    finally:
        run("nft", "delete", "table", "ip", "filter")
    assert "drops what it forwards" not in restart_podd()


@step("a firewall that empties nftables when it reloads: podd's rules come back, and the log says so")
def _():
    before, said = rules(), len(podd_log())
    run("nft", "flush", "ruleset")
    wait_for("the rules", lambda: subprocess.run(["nft", "list", "table", "inet", TABLE], capture_output=True).returncode == 0, 60)
    assert rules() == before
    wait_for("a warning", lambda: "they are set again" in podd_log()[said:])
    assert a.sh("curl -sS --max-time 20 http://%s/peer" % WEB) == HOST
    assert not reached(a, "tcp('%s', 9000)" % HOST)


@step("the instance ends: no link, no rule, no namespace of it is left")
def _():
    assert a.kill() == 204 and b.kill() == 204
    assert instance.stop()
    links = [each["ifname"] for each in json.loads(run("ip", "-j", "link"))]
    assert sorted(links) == ["lo", outside.UPLINK], links
    assert run("nft", "list", "ruleset").strip() == ""
    mine, left = os.readlink("/proc/self/ns/net"), []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, encoding="utf-8", errors="replace") as file:
                words = file.read()
            if os.readlink("/proc/%s/ns/net" % pid) == mine and int(pid) != os.getpid() or STATE_DIR in words:
                left.append((pid, words))
        except OSError:
            pass
    assert not left, left


finish()
