"""A machine and an internet to test a Pod's way out with, made of network namespaces; nothing of this machine's own
network is touched, and all of it is gone when the process ends.

    Pod --- "host": this process, and the instance it starts next (instance.py) --- uplink --- "internet": a child with servers

The internet has no route back to the Pods' addresses: what it answers reached it from the host's address.
Importing this makes the host: it must come before anything that starts threads or opens sockets. Runs as root.
"""
import atexit
import ctypes
import hashlib
import http.server
import os
import signal
import socket
import socketserver
import struct
import subprocess
import sys
import tempfile
import threading

HOST, GATEWAY = "203.0.113.2", "203.0.113.1"  # the ends of the uplink: TEST-NET-3
WEB, NARROW, RESOLVER = "198.51.100.80", "198.51.100.81", "198.51.100.53"  # further away: TEST-NET-2
HOST6, WEB6 = "2001:db8::2", "2001:db8::1"
NAME = "www.example.test"
HTTP_PORT, UDP_PORT = 80, 7
MTU = 1400  # of the uplink; less than a veth's own
NARROW_MTU = 1000  # of the path to NARROW, behind the uplink
UPLINK = "uplink0"

NEWNS, NEWNET = 0x20000, 0x40000000
libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags):
    if libc.unshare(flags) != 0:
        raise OSError(ctypes.get_errno(), "unshare: " + os.strerror(ctypes.get_errno()))


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, "%s: %s" % (" ".join(words), done.stderr)
    return done.stdout


def pattern(size):
    """Bytes that no part of which looks like another."""
    block = b"".join(hashlib.sha256(b"%d" % number).digest() for number in range(2048))
    return (block * (size // len(block) + 1))[:size]


# ---- the internet's servers ----

class Web(http.server.BaseHTTPRequestHandler):
    """GET /peer: who asks. GET /bytes/N: N bytes. POST: the digest of what came."""
    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path.startswith("/bytes/"):
            self.answer(pattern(int(self.path[7:])))
        else:
            self.answer(self.client_address[0].encode())

    def do_POST(self):
        digest, left = hashlib.sha256(), int(self.headers["Content-Length"])
        while left:
            data = self.rfile.read(min(left, 65536))
            if not data:
                return
            digest.update(data)
            left -= len(data)
        self.answer(digest.hexdigest().encode())

    def log_message(self, *_):
        pass


class Web6Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6


class Echo(socketserver.BaseRequestHandler):
    """A datagram comes back with the address it came from before it."""
    def handle(self):
        data, sock = self.request
        sock.sendto(b"%s %d %s" % (self.client_address[0].encode(), self.client_address[1], data), self.client_address)


class Names(socketserver.BaseRequestHandler):
    """DNS (RFC 1035): an A record for NAME, nothing else of it; no other name exists."""
    def handle(self):
        query, sock = self.request
        at, labels = 12, []
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]].decode("ascii", "replace"))
            at += query[at] + 1
        question, kind = query[12:at + 5], struct.unpack_from(">H", query, at + 1)[0]
        known = ".".join(labels).lower() == NAME
        answer = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 60, 4) + socket.inet_aton(WEB) if known and kind == 1 else b""
        head = query[:2] + struct.pack(">HHHHH", 0x8180 | (0 if known else 3), 1, 1 if answer else 0, 0, 0)
        sock.sendto(head + question + answer, self.client_address)


def serve(ready, stop):
    """In the internet's process: its interface is here once a byte comes from `stop`; ends with the parent."""
    libc.prctl(1, signal.SIGKILL)
    unshare(NEWNET)
    os.write(ready, b"n")
    os.read(stop, 1)
    http.server.ThreadingHTTPServer.request_queue_size = 64
    for server in (http.server.ThreadingHTTPServer(("0.0.0.0", HTTP_PORT), Web), Web6Server((WEB6, HTTP_PORT), Web),
                   socketserver.ThreadingUDPServer((WEB, UDP_PORT), Echo),
                   socketserver.ThreadingUDPServer((RESOLVER, 53), Names)):
        threading.Thread(target=server.serve_forever, daemon=True).start()
    os.write(ready, b"s")
    os.read(stop, 1)
    os._exit(0)


# ---- the host ----

def internet(*words):
    """Runs a command on the internet's machine."""
    return run("nsenter", "--net=/proc/%d/ns/net" % pid, *words)


def link_up():
    """The uplink with its addresses and routes; again after link_down()."""
    run("ip", "link", "set", UPLINK, "up")
    run("ip", "route", "replace", "default", "via", GATEWAY)
    run("ip", "route", "replace", NARROW + "/32", "via", GATEWAY, "mtu", "lock", str(NARROW_MTU))


def link_down():
    run("ip", "link", "set", UPLINK, "down")


def make():
    global pid
    unshare(NEWNS | NEWNET)
    run("mount", "--make-rprivate", "/")
    ready, ready_end = os.pipe()
    stop_end, stop = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(stop)
        serve(ready_end, stop_end)
    atexit.register(os.kill, pid, signal.SIGKILL)
    os.close(ready_end)
    assert os.read(ready, 1) == b"n", "the internet's process ended"
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", UPLINK, "mtu", str(MTU), "type", "veth", "peer", "name", "far0", "mtu", str(MTU), "netns", str(pid))
    internet("ip", "link", "set", "lo", "up")
    for address in (WEB, NARROW, RESOLVER):
        internet("ip", "address", "add", address + "/32", "dev", "lo")
    internet("ip", "address", "add", GATEWAY + "/24", "dev", "far0")
    internet("ip", "address", "add", WEB6 + "/64", "dev", "far0", "nodad")
    internet("ip", "link", "set", "far0", "up")
    run("ip", "address", "add", HOST + "/24", "dev", UPLINK)
    run("ip", "address", "add", HOST6 + "/64", "dev", UPLINK, "nodad")
    link_up()
    os.write(stop, b"g")
    assert os.read(ready, 1) == b"s", "the internet's servers did not start"
    with tempfile.NamedTemporaryFile("w", suffix=".resolv.conf") as file:
        file.write("nameserver %s\noptions timeout:2 attempts:2\n" % RESOLVER)
        file.flush()
        run("mount", "--bind", file.name, "/etc/resolv.conf")


signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was registered runs
make()
