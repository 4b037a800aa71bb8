"""A platform and a console to test abx against: fixed answers by method and path, requests kept as they came."""
import http.server
import json
import threading

QUOTAS = {"items": [
    {"id": "q1", "name": "gpu", "team": "t", "resources": {"total": {"b": "4", "a": "0"}, "used": {"b": "1"}},
     "metadata": {"quota.scitix.ai/pool-type": "shared", "quota.scitix.ai/pool-name": "p0"}},
    {"id": "q2", "name": "free", "team": "t", "resources": {"used": {"c": "7"}},
     "metadata": {"quota.scitix.ai/skip-check": "true"}},
    {"id": "q3", "name": "none"},
], "total": 3, "limit": 100, "offset": 0}

POOL = {"name": "demo-1c2gi", "owningEnv": "demo", "namespace": "ns", "spec": {"replicas": 2},
        "status": {"idleReplicas": 1, "runningReplicas": 1, "phase": "Ready"}, "scalingGroup": "1c2gi"}
ENV = {"name": "demo", "namespace": "ns", "poolSizing": "billed", "envDocs": "# Demo\n\nkey: ${AGBX_API_KEY}\n\n\n",
       "spec": {"templateRef": {"name": "base"}, "mode": "WarmPool", "clusters": [
           {"clusterID": "c1", "members": [{"name": "bare", "config": {"minReplicas": 1, "maxReplicas": 9,
                                                                      "replicas": 3}}]}]},
       "status": {"memberCount": 1}}
APPROVAL = {"approvalId": "apr_1", "operation": "env.delete", "summary": "delete env held", "onceOnly": True,
            "url": "", "pollUrl": "/v1/approvals/apr_1", "expiresAt": "2030-01-01T00:00:00Z"}


def sandboxes(query):
    total, limit, offset = 450, int(query.get("limit", 50)), int(query.get("offset", 0))
    rows = [{"sandboxId": "sb%03d" % i, "status": "Running" if i % 2 else "Failed", "envName": "demo",
             "poolName": "demo-1c2gi", "metadata": {"n": str(i)}} for i in range(total)]
    return {"items": rows[offset:offset + limit], "total": total, "limit": limit, "offset": offset}


ANSWERS = {
    "GET /clusters": (200, {"clusters": [{"id": "c1", "name": "one", "local": True}]}),
    "GET /auth/whoami": (200, {"role": "tenant", "mode": "unrestricted", "user": "ada", "team": "t"}),
    "GET /feature-gates": (200, {"quota": True, "instanceType": False}),
    "GET /envs": (200, {"items": [
        {"name": "demo", "templateName": "base", "mode": "WarmPool", "memberCount": 1, "ready": True, "poolSizing": "either"},
        {"name": "a,b", "templateName": "say \"x\"", "mode": "WarmPool", "ready": False, "team": "red"}]}),
    "GET /envs/demo": (200, {"env": ENV, "editable": {"templateRef": {"name": "base"}, "labels": {"a": "b"}}}),
    "GET /envs/open": (200, {"env": dict(ENV, name="open", poolSizing="free-form", envDocs="")}),
    "GET /envs/a%20b%2Fc": (200, {"env": dict(ENV, name="a b/c")}),
    "GET /envs/demo/sandboxpools": (200, {"items": [POOL], "total": 1, "limit": 100, "offset": 0}),
    "GET /envs/open/sandboxpools": (200, {"items": [], "total": 0, "limit": 100, "offset": 0}),
    "GET /envs/a%20b%2Fc/sandboxpools": (200, []),
    "GET /envs/a%20b%2Fc/autoscaling/groups": (200, []),
    "GET /envs/demo/sandboxpools/demo-1c2gi": (200, {"template": dict(POOL, specYaml="a: 1\nü: 2\n"), "editable": {
        "replicas": 2, "minReplicas": 1, "maxReplicas": 5}}),
    "GET /envs/demo/sandboxpools/bare": (200, {"pool": dict(POOL, name="bare")}),
    "GET /envs/demo/sandboxpools/lost": (200, {"pool": dict(POOL, name="lost")}),
    "PUT /envs/demo/sandboxpools/demo-1c2gi": (200, {"template": POOL}),
    "PUT /envs/demo/sandboxpools/bare": (200, {"template": POOL}),
    "POST /envs/demo/sandboxpools": (202, {"template": POOL}),
    "GET /envs/demo/autoscaling/groups": (200, {"items": [{"name": "1c2gi", "enabled": True, "scaleUpPolicy": {
        "mode": "Default", "cooldownSeconds": 30}}], "total": 1}),
    "GET /envs/demo/events": (200, {"items": [{"type": "Warning", "reason": "Full", "involvedName": "demo-1c2gi",
                                              "message": "no room", "lastTimestamp": "2030-01-01T00:00:00Z"}], "total": 1}),
    "GET /envs/gone": (404, {"error": "env 'gone' not found"}),
    "GET /sandboxes": (200, sandboxes),
    "GET /sandboxes/sb001/logs": (200, {"sandboxId": "sb001", "namespace": "ns", "podName": "p", "source": "live",
                                       "containers": ["main"], "truncated": False, "totalBytes": 9, "entries": [
                                           {"container": "main", "log": "one, two", "timestamp": "2030-01-01T00:00:00Z"},
                                           {"container": "side", "log": "three"}]}),
    "GET /quotas": (200, QUOTAS),
    "GET /instancetypes": (200, {"items": [{"name": "m1", "baseResources": {"cpu": "1", "memory": "2Gi"}}], "total": 1}),
    "GET /volumes": (200, {"items": [], "total": 0}),
    "GET /api-keys": (200, [{"keyId": "k1", "mode": "agent", "user": "ada", "role": "tenant"}]),
    "POST /api-keys": (201, {"apiKey": "agbx_new", "keyId": "k2", "role": "tenant"}),
    "DELETE /api-keys/k1": (200, {"keyId": "k1", "status": "deleted"}),
    "GET /admin/api-keys": (403, {"error": "admin api key required"}),
    "POST /admin/api-keys/k1/promote": (200, {"keyId": "k1", "status": "promoted"}),
    "GET /approvals": (200, {"pending": [{"id": "apr_1", "operation": "env.delete", "status": "pending", "principal": {
        "user": "ada"}}], "grants": [{"id": "g1", "operation": "env.update", "scope": "key"}]}),
    "POST /approvals/apr_1/decision": (200, {"id": "apr_1", "status": "approved"}),
    "DELETE /approvals/grants/g1": (200, {}),
    "GET /admin/teams": (200, {"items": ["red", "blue"], "total": 2}),
    "GET /admin/teams/red/users": (200, {"items": ["ada"], "total": 1}),
    "GET /admin/namespaces": (200, ["ns"]),
    "GET /statistics/sandboxes": (200, {"statistics": {"namespace": "ns", "total": 3, "byStatus": {"Running": 2, "Failed": 1}}}),
    "GET /admin/statistics/sandboxes": (200, {"statistics": {"total": 3}}),
    "GET /sandbox-templates": (200, {"items": [{"name": "base", "version": "1"}], "total": 1}),
    "GET /sandbox-templates/base": (200, {"template": {"name": "base", "docs": "how", "syncSource": "local"}}),
    "GET /admin/sandbox-templates": (200, {"items": [{"name": "base", "version": "1"}], "total": 1}),
    "DELETE /envs/demo": (202, {"name": "demo", "status": "Terminating"}),
    "DELETE /envs/held": (428, {"error": "approval required", "errorCode": "APPROVAL_REQUIRED", "detail": APPROVAL}),
    "DELETE /envs/linked": (428, {"error": "approval required", "errorCode": "APPROVAL_REQUIRED",
                                  "detail": dict(APPROVAL, url="https://console.test/x")}),
    "POST /admin/api-keys": (403, {"error": "not for agents", "errorCode": "FORBIDDEN_FOR_AGENT",
                                   "detail": {"operation": "apikey.create", "url": "https://console.test/keys"}}),
    "DELETE /envs/theirs": (403, {"error": "pool capacity belongs to bob"}),
    "GET /envs/asother": (403, {"error": "impersonation needed"}),
    "DELETE /envs/session": (403, {"error": "decided in a console session, not with an API key"}),
    "GET /envs/odd": (409, {"error": "no", "detail": {"n": 1}}),
    "GET /envs/raw": (500, "broken pipe"),
}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self):
        fake = self.server.fake
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        path, _, query = self.path.partition("?")
        fake.seen.append((self.command, self.path, dict(self.headers), body))
        status, value = fake.find(self.command, path)
        if callable(value):
            value = value(dict(pair.split("=") for pair in query.split("&") if pair))
        data = value.encode() if isinstance(value, str) else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_PUT = do_POST = do_DELETE = answer


class Fake:
    """`clusters`: what a console lists; None: it is one cluster's own API."""

    def __init__(self, clusters=None):
        self.clusters, self.seen, self.changed = clusters, [], {}
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.fake = self
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def find(self, method, path):
        if self.clusters is not None:
            if path == "/api/clusters":
                return 200, {"clusters": [{"id": each, "name": each} for each in self.clusters]}
            prefix = next(("/api/clusters/%s/v1" % each for each in self.clusters
                           if path.startswith("/api/clusters/%s/v1/" % each)), None)
            if prefix is None:
                return 404, {"error": "no such cluster"}
            path = path[len(prefix):]
        elif path.startswith("/v1/"):
            path = path[3:]
        key = "%s %s" % (method, path)
        return self.changed.get(key) or ANSWERS.get(key) or (404, {"error": "nothing at %s" % path})

    def paths(self):
        return ["%s %s" % (method, path) for method, path, _, _ in self.seen]
