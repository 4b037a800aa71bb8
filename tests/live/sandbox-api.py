"""The sandbox API beside create and kill: pages under change, metrics, logs, tokens, masked hosts, pages for people."""
import base64
import json
import struct
import time
import urllib.parse

from harness import BASE, e2b, finish, request, step, wait_for, wait_warm

BROWSER = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64) Firefox/128.0"}


def header(answer, name):
    return next((value for key, value in answer.headers.items() if key.lower() == name.lower()), None)


def by_host(host, path="/", headers=None, method="GET"):
    """A request of the host form, PORT-ID.DOMAIN, without any key."""
    return request(method, BASE + path, headers={"Host": host, **(headers or {})}, key=None)


def create(**more):
    answer = e2b("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 300, **more})
    assert answer.status == 201, str(answer)
    return answer.json


def serve_request(sandbox, port, what):
    """Starts a server in the sandbox that answers each request with `what` (a Python expression over `self`)."""
    code = ("import http.server\n"
            "class H(http.server.BaseHTTPRequestHandler):\n"
            "    def do_GET(self):\n"
            "        body = str(%s).encode()\n"
            "        self.send_response(200); self.send_header('Content-Length', str(len(body))); self.end_headers()\n"
            "        self.wfile.write(body)\n"
            "http.server.HTTPServer(('127.0.0.1', %d), H).serve_forever()\n" % (what, port))
    token = {"X-Access-Token": sandbox["envdAccessToken"]} if sandbox.get("envdAccessToken") else {}
    start(sandbox, "cat > /tmp/server.py <<'END'\n%s\nEND\nnohup python3 /tmp/server.py >/tmp/server.log 2>&1 &" % code, token)


def start(sandbox, line, headers):
    message = json.dumps({"process": {"cmd": "/bin/sh", "args": ["-c", line]}, "stdin": False}).encode()
    answer = request("POST", "%s/sandboxes/%s/49983/process.Process/Start" % (BASE, sandbox["sandboxID"]),
                     struct.pack(">BI", 0, len(message)) + message,
                     headers={"Content-Type": "application/connect+json", "Connect-Protocol-Version": "1",
                              "Authorization": "Basic " + base64.b64encode(b"user:").decode(), **headers})
    assert answer.status == 200, str(answer)
    return answer


made = []


def give_back(sandbox):
    """The pool is small: a step that is done with its sandbox leaves it to the next."""
    made.remove(sandbox["sandboxID"])
    assert e2b("DELETE", "/sandboxes/" + sandbox["sandboxID"]).status == 204


@step("pages neither repeat nor skip what stays, while others come and go")
def _():
    wait_warm("base")
    stay = [create(metadata={"page": "stay"})["sandboxID"] for _ in range(2)]
    made.extend(stay)
    for order in ("asc", "desc"):
        seen, token, extra = [], None, None
        while True:
            path = "/v2/sandboxes?limit=1&order=%s%s" % (order, "&nextToken=" + urllib.parse.quote(token) if token else "")
            answer = e2b("GET", path)
            assert answer.status == 200, str(answer)
            seen += [each["sandboxID"] for each in answer.json]
            token = header(answer, "X-Next-Token")
            if not token:
                break
            if extra:
                e2b("DELETE", "/sandboxes/" + extra)
                extra = None
            else:
                extra = create()["sandboxID"]
        if extra:
            e2b("DELETE", "/sandboxes/" + extra)
        assert len(seen) == len(set(seen)), seen
        assert [each for each in seen if each in stay] == (stay if order == "asc" else stay[::-1]), (order, seen, stay)
    answer = e2b("GET", "/v2/sandboxes?metadata=" + urllib.parse.quote("page=stay"))
    assert sorted(each["sandboxID"] for each in answer.json) == sorted(stay)
    assert header(answer, "X-Total-Running") == "2"


@step("startedAfter and template pick; an unknown template is an empty list")
def _():
    answer = e2b("GET", "/sandboxes/" + made[1]).json
    after = urllib.parse.quote(answer["startedAt"])
    ids = [each["sandboxID"] for each in e2b("GET", "/v2/sandboxes?template=base&startedAfter=" + after).json]
    assert made[1] in ids and made[0] not in ids, ids
    assert e2b("GET", "/v2/sandboxes?template=nope").json == []


@step("metrics come within ten seconds, in the shape of the contract, and follow the load")
def _():
    sandbox = made[0]
    first = e2b("GET", "/sandboxes/%s" % sandbox).json
    assert first["state"] == "running"
    token = {"X-Access-Token": first["envdAccessToken"]}
    start({"sandboxID": sandbox}, "timeout 60 python3 -c 'while True: pass' >/dev/null 2>&1 &", token)

    def busy():
        answer = e2b("GET", "/sandboxes/%s/metrics" % sandbox)
        assert answer.status == 200, str(answer)
        return [each for each in answer.json if each["cpuUsedPct"] > 3]  # of a machine that may be busy otherwise
    one = wait_for("a busy sample", busy, 60, 0.5)[0]
    assert set(one) == {"timestamp", "timestampUnix", "cpuCount", "cpuUsedPct", "memUsed", "memTotal", "memCache",
                        "diskUsed", "diskTotal"}, one
    assert abs(one["timestampUnix"] - time.time()) < 60
    assert 0 < one["memUsed"] < one["memTotal"] and 0 < one["diskUsed"] < one["diskTotal"], one
    window = e2b("GET", "/sandboxes/%s/metrics?start=%d&end=%d" % (sandbox, one["timestampUnix"], one["timestampUnix"] + 1))
    assert [each["timestampUnix"] for each in window.json] == [one["timestampUnix"]], window.json
    many = e2b("GET", "/sandboxes/metrics?sandbox_ids=%s,nosuch" % ",".join(made)).json["sandboxes"]
    assert set(many) <= set(made) and sandbox in many, many


@step("logs say that the sandbox was started, in both shapes")
def _():
    first = e2b("GET", "/sandboxes/%s/logs" % made[0]).json
    lines = [json.loads(each["line"]) for each in first["logs"]]
    assert all("level" in line and "logger" in line for line in lines), lines
    assert any(line["message"] == "sandbox started" and line["env"] == "base" for line in lines), lines
    assert len(first["logEntries"]) == len(first["logs"])
    second = e2b("GET", "/v2/sandboxes/%s/logs?direction=forward&search=started" % made[0]).json
    assert [each["message"] for each in second["logs"]].count("sandbox started") == 1, second
    assert e2b("GET", "/v2/sandboxes/%s/logs?limit=1" % made[0]).json["logs"].__len__() == 1


@step("a sandbox without public traffic: 403 without its token, 200 with it, envd not concerned")
def _():
    sandbox = create(network={"allowPublicTraffic": False, "maskRequestHost": "masked.example:${PORT}"})
    made.append(sandbox["sandboxID"])
    traffic = {"e2b-traffic-access-token": sandbox["trafficAccessToken"]}
    serve_request(sandbox, 8080, "self.headers['Host'] + ' ' + str(self.headers['X-Forwarded-Host'])")
    host = "8080-%s.example" % sandbox["sandboxID"]
    refused = by_host(host)
    assert refused.status == 403 and refused.json == {
        "sandboxId": sandbox["sandboxID"], "code": 403,
        "message": "Sandbox is secured with traffic access token. Token header 'e2b-traffic-access-token' is missing"}, str(refused)
    assert by_host(host, headers={"e2b-traffic-access-token": "no"}).status == 403
    page = by_host(host, headers=BROWSER)
    assert page.status == 403 and "Missing Traffic Access Token" in page.text and page.text.startswith("<html"), str(page)
    good = wait_for("the server", lambda: (lambda a: a.status == 200 and a)(by_host(host, headers=traffic)), 20)
    assert good.text == "masked.example:8080 %s" % host, good.text
    assert by_host("49983-%s.example" % sandbox["sandboxID"], "/health").status == 204
    again = e2b("POST", "/v2/sandboxes/%s/connect" % sandbox["sandboxID"], {})
    assert again.json["trafficAccessToken"] == sandbox["trafficAccessToken"]
    assert again.json["envdAccessToken"] == sandbox["envdAccessToken"]
    give_back(sandbox)


@step("a port that speaks TLS in the sandbox (httpsPorts) is reached in the clear; the others as they are")
def _():
    sandbox = create(network={"httpsPorts": [8443]})
    made.append(sandbox["sandboxID"])
    assert e2b("GET", "/sandboxes/" + sandbox["sandboxID"]).json["network"]["httpsPorts"] == [8443]
    code = ("import http.server, ssl\n"
            "class H(http.server.BaseHTTPRequestHandler):\n"
            "    def do_GET(self):\n"
            "        body = b'over tls: ' + self.headers['Host'].encode() + b' ' + b'x' * 300000\n"
            "        self.send_response(200); self.send_header('Content-Length', str(len(body))); self.end_headers()\n"
            "        self.wfile.write(body)\n"
            "server = http.server.HTTPServer(('127.0.0.1', 8443), H)\n"
            "context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)\n"
            "context.load_cert_chain('/tmp/c.pem', '/tmp/k.pem')\n"
            "server.socket = context.wrap_socket(server.socket, server_side=True)\n"
            "server.serve_forever()\n")
    made_key = ("command -v openssl >/dev/null || exit 9; openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=anybody "
                "-keyout /tmp/k.pem -out /tmp/c.pem 2>/dev/null\ncat > /tmp/tls.py <<'END'\n%s\nEND\n"
                "nohup python3 /tmp/tls.py >/tmp/tls.log 2>&1 &" % code)
    start(sandbox, made_key, {"X-Access-Token": sandbox["envdAccessToken"]})
    host = "8443-%s.example" % sandbox["sandboxID"]
    answer = wait_for("the TLS server", lambda: (lambda a: a.status == 200 and a)(by_host(host)), 30)
    assert answer.text.startswith("over tls: %s x" % host) and len(answer.body) > 300000, answer.text[:200]
    give_back(sandbox)


@step("a closed port and a sandbox that is not there: 502, as JSON and as a page, a third part in the host or not")
def _():
    for tail in ("", "-00000000"):
        answer = by_host("3210-%s%s.example" % (made[0], tail))
        assert answer.status == 502 and answer.json == {
            "sandboxId": made[0], "message": "The sandbox is running but port is not open", "port": 3210, "code": 502}
        page = by_host("3210-%s%s.example" % (made[0], tail), headers=BROWSER)
        assert page.text.startswith("<html") and page.text.endswith("</html>") and "no service running on port" in page.text
        answer = by_host("3210-inosuchsandbox%s.example" % tail)
        assert answer.status == 502 and answer.json == {
            "sandboxId": "inosuchsandbox", "message": "The sandbox was not found", "code": 502}, str(answer)
        assert "Sandbox Not Found" in by_host("3210-inosuchsandbox%s.example" % tail, headers=BROWSER).text


@step("a secure sandbox: envd refuses without the token and takes it, in v1 when asked for and in v2")
def _():
    asked = e2b("POST", "/sandboxes", {"templateID": "base", "timeout": 60, "secure": True}).json
    made.append(asked["sandboxID"])
    for sandbox in (asked, e2b("GET", "/sandboxes/" + made[0]).json):
        url = "%s/sandboxes/%s/49983/process.Process/List" % (BASE, sandbox["sandboxID"])
        more = {"Content-Type": "application/json", "Authorization": "Basic dXNlcjo="}
        assert request("POST", url, b"{}", headers=more).status == 401
        assert request("POST", url, b"{}", headers={"X-Access-Token": "x", **more}).status == 401
        assert request("POST", url, b"{}", headers={"X-Access-Token": sandbox["envdAccessToken"], **more}).status == 200


@step("aliases, teams, health and network updates answer")
def _():
    assert e2b("GET", "/templates/aliases/base").json == {"templateID": "base", "public": False}
    assert e2b("GET", "/templates/aliases/nope").status == 404
    assert e2b("GET", "/teams").json[0]["isDefault"] is True
    assert e2b("GET", "/health").status == 204
    assert e2b("PUT", "/sandboxes/%s/network" % made[0], {}).status == 204
    answer = e2b("PUT", "/sandboxes/%s/network" % made[0], {"denyOut": ["1.1.1.1"]})
    assert answer.status == 400 and "network.denyOut" in answer.text, str(answer)


for each in made:
    e2b("DELETE", "/sandboxes/" + each)
finish()
