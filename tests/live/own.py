"""A daemon of the test's own with the fake engine: API alone, nothing runs. For tests of the wire."""
import base64
import hashlib
import hmac
import http.client
import json
import os
import shutil
import socket
import subprocess
import tempfile
import urllib.parse

from harness import Answer, free_port

SECRET = "0123456789abcdef0123456789abcdef"
CONSOLE = "https://console.example"
PROGRAM = os.path.join(os.environ.get("AGENTBOX_BIN", ""), "..", "sbin", "agentboxd")


def session(**claims):
    """A console session's token."""
    def part(value):
        return base64.urlsafe_b64encode(value).rstrip(b"=").decode()
    text = part(b'{"alg":"HS256"}') + "." + part(json.dumps(claims).encode())
    return text + "." + part(hmac.new(SECRET.encode(), text.encode(), hashlib.sha256).digest())


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=30)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(30)
        self.sock.connect(self.path)


class Daemon:
    def __init__(self, *options, files=None):
        """`files`: documents by the option that names their file."""
        self.dir = tempfile.mkdtemp(prefix="agentbox-own.")
        os.chmod(self.dir, 0o755)
        secret = os.path.join(self.dir, "jwt")
        with open(os.open(secret, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as stream:
            stream.write(SECRET + "\n")
        options = list(options)
        for option, document in (files or {}).items():
            path = os.path.join(self.dir, option.strip("-") + ".json")
            with open(path, "w", encoding="utf-8") as stream:
                json.dump(document, stream)
            options += [option, path]
        self.port = free_port()
        self.base = "http://127.0.0.1:%d" % self.port
        self.state = os.path.join(self.dir, "state")
        reading, writing = os.pipe()
        with open(os.path.join(self.dir, "log"), "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [PROGRAM, "--engine", "fake", "--state-dir", self.state, "--listen", "127.0.0.1:%d" % self.port,
                 "--jwt-secret-file", secret, "--console-url", CONSOLE, "--ready-fd", str(writing), *options],
                stderr=log, pass_fds=[writing])
        os.close(writing)
        with os.fdopen(reading) as stream:
            assert stream.read(6) == "ready\n", open(os.path.join(self.dir, "log"), encoding="utf-8").read()
        with open(os.path.join(self.state, "keys.json"), encoding="ascii") as stream:
            self.admin = json.load(stream)["agbx"]

    def ask(self, method, path, body=None, key=None, bearer=None, headers=None, unix=False):
        """One request; a dict goes as JSON, a string as it is. No credential unless given."""
        sent = dict(headers or {})
        if key:
            sent["AGENTBOX-API-KEY"] = key
        if bearer:
            sent["Authorization"] = "Bearer " + bearer
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        connection = UnixConnection(os.path.join(self.state, "agentboxd.sock")) if unix else \
            http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body=body.encode() if isinstance(body, str) else body, headers=sent)
            answer = connection.getresponse()
            return Answer(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            connection.close()

    def end(self):
        self.process.terminate()
        status = self.process.wait(20)
        shutil.rmtree(self.dir)
        assert status == 0, "agentboxd ended with %s" % status


def quote(text):
    return urllib.parse.quote(text, safe="")
