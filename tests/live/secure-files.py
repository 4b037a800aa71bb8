"""Secure sandboxes from end to end: the token a create gives, signed URLs, and files through the gateway."""
import base64
import gzip
import hashlib
import json
import time
import urllib.parse

from harness import Sandbox, e2b, finish, request, step

UNAUTHORIZED = ("unauthorized access, please provide a valid access token or method signing if supported")
OCTETS = {"Content_Type": "application/octet-stream"}
made = []


class Secure(Sandbox):
    """A sandbox with a token; nothing sends it by itself."""

    def __init__(self, **more):
        answer = e2b("POST", "/sandboxes", {"templateID": "base", "timeout": 300, "secure": True, **more}, timeout=120)
        assert answer.status == 201, str(answer)
        self.id = answer.json["sandboxID"]
        self.token = answer.json["envdAccessToken"]
        made.append(self)

    def ask(self, method, path, body=None, **headers):
        return request(method, self.url(path), body, key=None,
                       headers={name.replace("_", "-"): value for name, value in headers.items()})

    def files(self, path, operation=None, username="user", expires=None, token=None, more=""):
        """The target of a file URL; with an operation it is signed for it."""
        query = {"path": path}
        if username is not None:
            query["username"] = username
        if operation:
            text = ":".join([path, operation, username or "", token or self.token] + ([str(expires)] if expires else []))
            digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
            query["signature"] = "v1_" + digest
        if expires:
            query["signature_expiration"] = str(expires)
        return "/files?" + urllib.parse.urlencode(query) + more


def refused(answer, status, message):
    assert answer.status == status, "expected %s: %s" % (status, answer)
    assert answer.body == json.dumps({"code": status, "message": message}, separators=(",", ":")).encode() + b"\n", answer.body


secure = Secure()


@step("a secure create gives a token of 64 hex digits, connecting gives the same one")
def _():
    assert len(secure.token) == 64 and int(secure.token, 16) >= 0, secure.token
    answer = e2b("POST", "/sandboxes/%s/connect" % secure.id, {"timeout": 300})
    assert answer.status in (200, 201) and answer.json["envdAccessToken"] == secure.token, str(answer)


@step("two sandboxes have two tokens, and one's opens nothing of the other")
def _():
    other = Secure()
    assert other.token != secure.token
    refused(secure.ask("GET", "/envs", X_Access_Token=other.token), 401, UNAUTHORIZED)
    other.kill()


@step("without the token: calls are refused, health is not")
def _():
    assert secure.ask("GET", "/health").status == 204
    refused(secure.ask("GET", "/envs"), 401, UNAUTHORIZED)
    refused(secure.ask("GET", "/metrics"), 401, UNAUTHORIZED)
    refused(secure.ask("POST", "/files/compose", b"{}"), 401, UNAUTHORIZED)
    refused(secure.ask("POST", "/filesystem.Filesystem/ListDir", b'{"path":"/"}', Content_Type="application/json"), 401,
            UNAUTHORIZED)
    answer = secure.ask("POST", "/filesystem.Filesystem/ListDir", b'{"path":"/"}', Content_Type="application/json",
                        X_Access_Token=secure.token)
    assert answer.status == 200 and "entries" in answer.json, str(answer)


@step("/init and its kin are not reachable from outside, with any token or none")
def _():
    for path in ("/init", "/freeze", "/unfreeze", "/collapse", "/fsfreeze", "/fsthaw", "/upgrade", "//init", "/x/../init", "/%69nit"):
        for headers in ({}, {"X_Access_Token": "wrong"}, {"X_Access_Token": secure.token}):
            answer = secure.ask("POST", path, b"{}", **headers)
            assert answer.status == 404 and "envd not" not in answer.text, "%s: %s" % (path, answer)
    assert secure.ask("GET", "/envs", X_Access_Token=secure.token).status == 200


@step("signed upload and download, with and without an end")
def _():
    answer = secure.ask("POST", secure.files("test.txt", "write"), b"Hello, World!", **OCTETS)
    assert answer.status == 200 and answer.json == [{"path": "/home/user/test.txt", "name": "test.txt", "type": "file"}], str(answer)
    for expires in (None, int(time.time()) + 60):
        answer = secure.ask("GET", secure.files("test.txt", "read", expires=expires))
        assert answer.status == 200 and answer.body == b"Hello, World!", str(answer)
    form = (b"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x\"\r\n\r\nform\r\n--b--\r\n")
    answer = secure.ask("POST", secure.files("form.txt", "write"), form, Content_Type="multipart/form-data; boundary=b")
    assert answer.status == 200, str(answer)
    assert secure.ask("GET", secure.files("form.txt", "read")).body == b"form"


@step("a signature for root is root's: its home, its files")
def _():
    answer = secure.ask("POST", secure.files("r.txt", "write", username="root"), b"r", **OCTETS)
    assert answer.status == 200 and answer.json[0]["path"].split("/") == ["", "root", "r.txt"], str(answer)
    refused(secure.ask("GET", secure.files("r.txt", "read", username="root").replace("username=root", "username=user")), 401,
            "invalid signature")


@step("no signature, a foreign one, one for writing, one for another path: 401 in these words")
def _():
    refused(secure.ask("GET", secure.files("test.txt")), 401, "missing signature query parameter")
    refused(secure.ask("GET", secure.files("test.txt", "read", token="0" * 64)), 401, "invalid signature")
    refused(secure.ask("GET", secure.files("test.txt", "write")), 401, "invalid signature")
    refused(secure.ask("POST", secure.files("test.txt", "read"), b"x", **OCTETS), 401, "invalid signature")
    refused(secure.ask("GET", secure.files("test.txt", "read").replace("path=test.txt", "path=form.txt")), 401,
            "invalid signature")
    refused(secure.ask("GET", secure.files("test.txt", "read"), X_Access_Token="no"), 401,
            "access token present in header but does not match")


@step("an expired one is told apart, after the signature: 401")
def _():
    past = int(time.time()) - 3 * 3600
    refused(secure.ask("GET", secure.files("test.txt", "read", expires=past)), 401, "signature is already expired")
    # signed without an end, an end put on it afterwards
    refused(secure.ask("GET", secure.files("test.txt", "read", more="&signature_expiration=%d" % past)), 401,
            "invalid signature")


@step("a good signature for what is not there: 404 with the path resolved")
def _():
    refused(secure.ask("GET", secure.files("demo/test.txt", "read", expires=int(time.time()) + 60)), 404,
            "path '/home/user/demo/test.txt' does not exist")


@step("ranges, validators and gzip pass the gateway unharmed")
def _():
    whole = secure.ask("GET", secure.files("test.txt", "read"))
    part = secure.ask("GET", secure.files("test.txt", "read"), Range="bytes=7-11")
    assert part.status == 206 and part.body == b"World", str(part)
    etag = next(value for name, value in whole.headers.items() if name.lower() == "etag")
    assert secure.ask("GET", secure.files("test.txt", "read"), If_None_Match=etag).status == 304
    packed = secure.ask("GET", secure.files("test.txt", "read"), Accept_Encoding="gzip")
    assert gzip.decompress(packed.body) == b"Hello, World!", str(packed)
    answer = secure.ask("POST", secure.files("z.txt", "write"), gzip.compress(b"packed" * 10000), Content_Encoding="gzip", **OCTETS)
    assert answer.status == 200, str(answer)
    assert secure.ask("GET", secure.files("z.txt", "read")).body == b"packed" * 10000


@step("metadata and compose, with the token")
def _():
    token = {"X_Access_Token": secure.token}
    answer = secure.ask("POST", secure.files("m.txt"), b"1", X_Metadata_Author="me", **OCTETS, **token)
    assert answer.status == 200 and answer.json[0].get("metadata") == {"author": "me"}, str(answer)
    body = json.dumps({"source_paths": ["m.txt", "test.txt"], "destination": "both.txt", "username": "user"}).encode()
    answer = secure.ask("POST", "/files/compose", body, **token)
    assert answer.status == 200 and answer.json == {"path": "/home/user/both.txt", "name": "both.txt", "type": "file"}, str(answer)
    assert secure.ask("GET", secure.files("both.txt", "read")).body == b"1Hello, World!"
    refused(secure.ask("GET", secure.files("m.txt", "read")), 404, "path '/home/user/m.txt' does not exist")


@step("pausing and resuming keep the token and what it guards")
def _():
    assert e2b("POST", "/sandboxes/%s/pause" % secure.id, {}, timeout=60).status == 204
    answer = e2b("POST", "/sandboxes/%s/resume" % secure.id, {"timeout": 300}, timeout=60)
    assert answer.status == 201 and answer.json["envdAccessToken"] == secure.token, str(answer)
    assert secure.ask("GET", secure.files("both.txt"), X_Access_Token=secure.token).body == b"1Hello, World!"
    refused(secure.ask("GET", secure.files("both.txt")), 401, "missing signature query parameter")
    assert secure.ask("GET", secure.files("both.txt", "read")).status == 200


@step("without secure there is no token, and files need none")
def _():
    answer = e2b("POST", "/sandboxes", {"templateID": "base", "timeout": 60, "secure": False}, timeout=120)
    assert answer.status == 201 and not answer.json.get("envdAccessToken"), str(answer)
    plain = Sandbox.of(answer.json["sandboxID"])
    made.append(plain)
    assert plain.request("POST", "/files?path=test.txt&username=user", b"open", 
                         headers={"Content-Type": "application/octet-stream"}).status == 200
    assert plain.request("GET", "/files?path=test.txt&username=user").body == b"open"


for each in made:
    each.kill()
finish()
