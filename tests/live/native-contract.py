"""The native API, asked in every way its contract has an answer for: each operation, each status.

A table of rows against a daemon of this test's own (fake engine), then: each pair of operation and status that
api/native.yaml declares was seen, or is in NOT_HERE with the reason; each answer had the shape the document gives it.
"""
import json
import os
import re
import sys

import yaml

from harness import TOP, finish, step, wait_for
from own import CONSOLE, Daemon, quote, session

sys.path.insert(0, os.path.join(TOP, "api", "gen"))
import generate  # noqa: E402  the one that makes the routes and /openapi.json

TYPES = {"items": [{"name": "small", "baseResources": {"cpu": "1", "memory": "2Gi"}, "showName": "Small"}]}
QUOTAS = {"items": [{"name": "q/one", "shortName": "one", "team": "t", "user": "u", "resources": {"total": {"small": "2"}}},
                    {"name": "q/other", "team": "other", "resources": {"total": {"small": "9"}}}]}
daemon = Daemon(files={"--instance-types": TYPES, "--quotas": QUOTAS})
model = generate.Model([os.path.join(TOP, "api", name) for name in ("crds.yaml", "native.yaml", "e2b.yaml")])
model.build()
document = json.loads(generate.bundled(model, model.documents["native.yaml"]))
operations = {item["operationId"]: (method.upper(), path, item)
              for path, methods in document["paths"].items()
              for method, item in methods.items() if method != "parameters"}
seen = set()

# What a test cannot bring about with an engine that runs nothing, or at all.
NOT_HERE = {
    500: "out of memory, or a store that fails: tests of C inject those",
    504: "a sandbox that is slow: tests/live/native-api.py",
    413: None,  # bodies over 1 MiB: asked below of every operation with a body
    409: {"CreateSandbox": "429 is what code answers without idle Pods (native-api.md, section 16)",
          "UpdateSandboxEnv": "two writes at one moment", "UpdateEnvSandboxPool": "two writes at one moment",
          "DeleteSandboxEnv": "two writes at one moment", "DeleteEnvSandboxPool": "two writes at one moment",
          "UpdateEnvAutoscalingGroup": "two writes at one moment",
          "DeleteEnvAutoscalingGroup": "two writes at one moment",
          "SetSandboxTimeout": "a paused sandbox", "PromoteAPIKey": "needs a hub"},
    429: {"DeleteEnvSandboxPool": "as CreateSandboxEnv",
          "DeleteSandbox": "as CreateSandboxEnv", "SetSandboxTimeout": "as CreateSandboxEnv",
          "CreateSandboxExecToken": "as CreateSandboxEnv", "ExecSandboxCommand": "as CreateSandboxEnv",
          "UpdateSandboxEnv": "as CreateSandboxEnv", "DeleteSandboxEnv": "as CreateSandboxEnv",
          "CreateEnvSandboxPool": "as CreateSandboxEnv", "UpdateEnvAutoscalingGroup": "as CreateSandboxEnv",
          "DeleteEnvAutoscalingGroup": "as CreateSandboxEnv", "SelfDeleteAPIKey": "as CreateSandboxEnv",
          "DecideApproval": "10,000 grants"},
    503: {"CreateEnvSandboxPool": "a cluster without an id: this server always has one",
          "UpdateEnvSandboxPool": "as above", "DeleteEnvSandboxPool": "as above",
          "SelfCreateAPIKey": "a key store that is not configured: this server always has one",
          "SelfListAPIKeys": "as above", "SelfDeleteAPIKey": "as above", "CreateAPIKey": "as above",
          "ListAPIKeys": "as above", "DeleteAPIKey": "as above", "GetSandboxLogs": "an engine that is away",
          "ExecSandboxCommand": "an engine that is away"},
    200: {"ExecSandboxCommand": "tests/live/native-api.py", "IsSandboxReady": "tests/live/native-api.py",
          "PromoteAPIKey": "needs a hub"},
    400: {"CreateSandboxExecToken": "a paused sandbox: tests/live/native-api.py", "ListUsersByTeam": "an empty team is no path"},
    403: {"ListQuotas": "a quota service that denies: this server reads a file"},
}


# ---- the shapes ----

def fits(value, schema, where):
    """Raises when the value is not of the schema: types, required, closed objects, enums."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return fits(value, document["components"]["schemas"][name], where)
    kind = schema.get("type")
    types = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float)}
    if kind:
        assert isinstance(value, types[kind]) and not (kind == "integer" and isinstance(value, bool)), \
            "%s: %r is no %s" % (where, value, kind)
    if "enum" in schema:
        assert value in schema["enum"], "%s: %r is none of %s" % (where, value, schema["enum"])
    if kind == "array":
        for index, item in enumerate(value):
            fits(item, schema["items"], "%s[%d]" % (where, index))
    if isinstance(value, dict) and not schema.get("x-any"):
        known = schema.get("properties", {})
        for key in schema.get("required", []):
            assert key in value, "%s: %s is missing" % (where, key)
        for key, item in value.items():
            extra = schema.get("additionalProperties")
            if key in known:
                fits(item, known[key], where + "." + key)
            elif isinstance(extra, dict):
                fits(item, extra, where + "." + key)
            else:
                # Every member an answer has is in the document, closed or not.
                assert not known, "%s: %s is not in the document" % (where, key)
    return None


def check_shape(operation, answer):
    declared = operations[operation][2]["responses"]
    assert str(answer.status) in declared, "%s answered %s, which it does not declare" % (operation, answer)
    assert any(name.lower() == "x-agentbox-server-version" for name in answer.headers), "no server version"
    response = declared[str(answer.status)]
    if "$ref" in response:
        response = document["components"]["responses"][response["$ref"].rsplit("/", 1)[1]]
    if "content" not in response:
        assert answer.body == b"", "%s: a body: %s" % (operation, answer)
        return
    fits(answer.json, response["content"]["application/json"]["schema"], "%s %d" % (operation, answer.status))


def ask(operation, status, *names, body=None, query="", text=None, **how):
    """Asks an operation with these names in its path; the answer, whose status, shape and text were right."""
    method, path, _ = operations[operation]
    for name in names:
        path = re.sub(r"\{\w+\}", quote(name), path, count=1)
    assert "{" not in path, path
    if not how:
        how = {"key": daemon.admin}
    answer = daemon.ask(method, "/v1" + path + query, body, **how)
    assert answer.status == status, "%s %s%s: %s, not %d" % (method, path, query, answer, status)
    check_shape(operation, answer)
    if text is not None:
        assert text in answer.text, "%s: %r is not in %s" % (operation, text, answer)
    seen.add((operation, status))
    return answer


PERSON = session(user="u", team="t", email="u@example")
as_person = {"bearer": PERSON}
SHAPE = {"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"cpu": "1", "memory": "2Gi"}}


def template(name, **more):
    doc = {"apiVersion": "agents.navix.sh/v1alpha1", "kind": "SandboxTemplate", "metadata": {"name": name, **more},
           "spec": {"idleImage": "idle:1", "version": "1.0", "description": "d",
                    "runtimes": [{"name": "envd", "port": 49983,
                                  "readinessProbe": {"httpGet": {"port": 49983, "path": "/health"}}},
                                 {"name": "side", "port": 9, "logDir": "/var/log/side.log"}],
                    "template": {"spec": {"containers": [{"name": "main", "image": "work:1"}]}}}}
    return {"crdJson": json.dumps(doc)}


def wait_idle(env, count):
    wait_for("%d idle Pods" % count, lambda: ask("GetSandboxEnv", 200, env).json["env"].get("status", {}).get(
        "idleReplicas", 0) >= count)


# ---- the rows ----

@step("templates")
def _():
    docs = {"agentbox.navix.sh/docs": "Key ${AGBX_API_KEY}, env ${AGBX_ENV_NAME} at ${AGBX_E2B_URL}"}
    ask("AdminCreateSandboxTemplate", 201, body=template("t", annotations=docs), text='"name":"t"')
    ask("AdminCreateSandboxTemplate", 409, body=template("t"))
    ask("AdminCreateSandboxTemplate", 400, body={"crdJson": "{"}, text="crdJson")
    ask("AdminCreateSandboxTemplate", 400, body={}, text="crdJson")
    ask("AdminCreateSandboxTemplate", 403, body=template("x"), text='"admin access required"', **as_person)
    crd = json.loads(ask("GetSandboxTemplate", 200, "t").json["template"]["crdYaml"])
    ask("AdminUpdateSandboxTemplate", 200, "t", body={"crdJson": json.dumps(crd)})
    ask("AdminUpdateSandboxTemplate", 409, "t",
        body=template("t", resourceVersion="1"), text="resourceVersion")
    ask("AdminUpdateSandboxTemplate", 404, "nope", body=template("nope"), text="nope")
    ask("AdminUpdateSandboxTemplate", 400, "other", body=template("t"), text="path")
    ask("AdminUpdateSandboxTemplate", 403, "t", body=template("t"), **as_person)
    assert ask("ListSandboxTemplates", 200, **as_person).json["items"][0]["hasDocs"] is True
    ask("AdminListSandboxTemplates", 200, query="?team=t&user=u", text='"t"')
    ask("AdminListSandboxTemplates", 403, **as_person)
    ask("AdminListSandboxTemplates", 400, query="?team=%zz", text="encoded")
    ask("GetSandboxTemplate", 404, "nope", text="nope")
    ask("AdminDeleteSandboxTemplate", 404, "nope")
    ask("AdminDeleteSandboxTemplate", 403, "t", **as_person)
    ask("AdminCreateSandboxTemplate", 201, body=template("away"))
    ask("AdminDeleteSandboxTemplate", 202, "away", text='"Terminating"')
    shown = ask("GetSandboxTemplate", 200, "t").json["template"]["docs"]
    assert shown == "Key ${AGBX_API_KEY}, env YOUR_ENV_NAME at %s/agent-sandbox/api/e2b" % daemon.base, shown


@step("envs: created, read, replaced, refused")
def _():
    made = ask("CreateSandboxEnv", 201, body={"name": "demo", "templateRef": {"name": "t"}}, **as_person).json
    assert made["env"]["envDocs"] == "Key ${AGBX_API_KEY}, env demo at %s/agent-sandbox/api/e2b" % daemon.base
    assert made["env"]["team"] == "t" and made["env"]["poolSizing"] == "either"
    ask("CreateSandboxEnv", 409, body={"name": "demo", "templateRef": {"name": "t"}}, **as_person)
    for body, text in (({"name": "x", "templateRef": {"name": "t"}, "surprise": 1}, "surprise"),
                       ({"name": "x", "templateRef": {"name": "t", "deep": 1}}, "templateRef.deep"),
                       ({"name": "x" * 25, "templateRef": {"name": "t"}}, "24"),
                       ({"name": "Up", "templateRef": {"name": "t"}}, "name"),
                       ({"name": "x", "templateRef": {"name": "nope"}}, "nope"),
                       ({"templateRef": {"name": "t"}}, "name"), ("{", "request body"), ("", "request body")):
        ask("CreateSandboxEnv", 400, body=body, text=text, **as_person)
    ask("ListSandboxEnvs", 200, text='"demo"', **as_person)
    other = session(user="v", team="t")
    assert ask("ListSandboxEnvs", 200, bearer=other).json == {"items": []}
    ask("GetSandboxEnv", 404, "demo", text='sandbox env \\"demo\\" not found', bearer=other)
    editable = ask("GetSandboxEnv", 200, "demo", **as_person).json["editable"]
    ask("UpdateSandboxEnv", 200, "demo", body=editable, **as_person)
    ask("UpdateSandboxEnv", 400, "demo", body={**editable, "name": "else"}, text="path", **as_person)
    ask("UpdateSandboxEnv", 400, "demo", body={**editable, "surprise": 1}, text="surprise", **as_person)
    for key in ("templateRef", "mode", "labels"):
        ask("UpdateSandboxEnv", 400, "demo", body={k: v for k, v in editable.items() if k != key}, text=key, **as_person)
    ask("UpdateSandboxEnv", 404, "nope", body=editable | {"name": "nope"}, **as_person)
    ask("DeleteSandboxEnv", 404, "nope", **as_person)


@step("pools")
def _():
    ask("CreateEnvSandboxPool", 202, "demo", body={"inlineResources": SHAPE, "replicas": 2}, text="demo-1c2gi", **as_person)
    ask("CreateEnvSandboxPool", 409, "demo", body={"inlineResources": SHAPE}, text="demo-1c2gi", **as_person)
    ask("CreateEnvSandboxPool", 400, "demo", body={}, **as_person)
    ask("CreateEnvSandboxPool", 400, "demo", body={"name": "mine"}, text="name", **as_person)
    ask("CreateEnvSandboxPool", 404, "nope", body={"inlineResources": SHAPE}, **as_person)
    page = ask("ListEnvSandboxPools", 200, "demo", **as_person).json
    assert (page["total"], page["limit"], page["offset"]) == (1, 1, 0), page
    ask("ListEnvSandboxPools", 404, "nope", **as_person)
    got = ask("GetEnvSandboxPool", 200, "demo", "demo-1c2gi", **as_person).json
    assert yaml.safe_load(got["template"]["specYaml"])["spec"]["containers"][0]["name"] == "main", got
    ask("GetEnvSandboxPool", 404, "demo", "nope", text="nope", **as_person)
    ask("UpdateEnvSandboxPool", 200, "demo", "demo-1c2gi", body=got["editable"], **as_person)
    ask("UpdateEnvSandboxPool", 400, "demo", "demo-1c2gi", body={"replicas": 1}, text="inlineResources", **as_person)
    ask("UpdateEnvSandboxPool", 400, "demo", "demo-1c2gi", body={**got["editable"], "minReplicas": 3, "maxReplicas": 2},
        text="minReplicas", **as_person)
    ask("UpdateEnvSandboxPool", 404, "demo", "nope", body=got["editable"], **as_person)
    ask("DeleteEnvSandboxPool", 404, "demo", "nope", **as_person)
    ask("ListEnvEvents", 200, "demo", query="?limit=1", text='"total":1', **as_person)
    ask("ListEnvEvents", 400, "demo", query="?limit=501", text="limit is 1 to 500", **as_person)
    ask("ListEnvEvents", 404, "nope", **as_person)


@step("scaling groups")
def _():
    ask("GetEnvAutoscaling", 200, "demo", **as_person)
    ask("GetEnvAutoscaling", 404, "nope", **as_person)
    ask("ListEnvAutoscalingGroups", 200, "demo", text='"total":1', **as_person)
    ask("ListEnvAutoscalingGroups", 404, "nope", **as_person)
    got = ask("GetEnvAutoscalingGroup", 200, "demo", "1c2gi", **as_person).json
    assert got["group"]["enabled"] is False, "a group appears disabled"
    ask("GetEnvAutoscalingGroup", 404, "demo", "nope", **as_person)
    ask("UpdateEnvAutoscalingGroup", 200, "demo", "1c2gi", body=got["editable"], **as_person)
    for body, text in (({"enabled": True, "scaleUpPolicy": {"mode": "Aggressive"}}, "maxReplicas"),
                       ({"scaleUpPolicy": {"mode": "Wild"}}, "mode"), ({"minReplicas": -1}, "minReplicas"),
                       ({"minReplicas": 3, "maxReplicas": 2}, "minReplicas")):
        ask("UpdateEnvAutoscalingGroup", 400, "demo", "1c2gi", body=body, text=text, **as_person)
    ask("UpdateEnvAutoscalingGroup", 404, "demo", "nope", body={}, **as_person)
    ask("DeleteEnvAutoscalingGroup", 200, "demo", "1c2gi", text='"Deleted"', **as_person)
    ask("DeleteEnvAutoscalingGroup", 404, "nope", "1c2gi", **as_person)


@step("PUT of what GET gave changes nothing, whatever was set before")
def _():
    sets = [{"overrides": {}}, {"overrides": {"defaultIdleTimeout": "90s", "podCreationImagePolicy": "IdleImage"}},
            {"overrides": {"image": "other:2", "envd": {"verbose": True}, "defaultStartupTimeout": "30s"}},
            {"overrides": {"updateStrategy": {"autoUpdate": False, "maxUnavailable": "25%"}}}]
    for change in sets:
        editable = ask("GetSandboxEnv", 200, "demo", **as_person).json["editable"]
        ask("UpdateSandboxEnv", 200, "demo", body={**editable, **change}, **as_person)
        first = ask("GetSandboxEnv", 200, "demo", **as_person).json
        again = ask("UpdateSandboxEnv", 200, "demo", body=first["editable"], **as_person).json
        assert again["editable"] == first["editable"], (first["editable"], again["editable"])
        assert again["env"]["spec"] == first["env"]["spec"], (first["env"]["spec"], again["env"]["spec"])
    for change in ({"minReplicas": 1, "maxReplicas": 5}, {"updateStrategy": {"autoUpdate": True}}, {"replicas": 3}, {}):
        editable = ask("GetEnvSandboxPool", 200, "demo", "demo-1c2gi", **as_person).json["editable"]
        ask("UpdateEnvSandboxPool", 200, "demo", "demo-1c2gi", body={**editable, **change}, **as_person)
        first = ask("GetEnvSandboxPool", 200, "demo", "demo-1c2gi", **as_person).json
        again = ask("UpdateEnvSandboxPool", 200, "demo", "demo-1c2gi", body=first["editable"], **as_person).json
        assert again["editable"] == first["editable"] and again["template"]["spec"] == first["template"]["spec"]
    for change in ({"enabled": True, "maxReplicas": 9}, {"scaleUpPolicy": {"cooldownSeconds": 0}}, {"enabled": False}):
        ask("UpdateEnvAutoscalingGroup", 200, "demo", "1c2gi", body=change, **as_person)
        first = ask("GetEnvAutoscalingGroup", 200, "demo", "1c2gi", **as_person).json
        again = ask("UpdateEnvAutoscalingGroup", 200, "demo", "1c2gi", body=first["editable"], **as_person).json
        assert again == first, (first, again)
    editable = ask("GetSandboxEnv", 200, "demo", **as_person).json["editable"]
    ask("UpdateSandboxEnv", 200, "demo", body={**editable, "overrides": {}}, **as_person)


sandbox = None


@step("sandboxes")
def _():
    global sandbox
    wait_idle("demo", 2)
    made = ask("CreateSandbox", 201, body={"poolName": "demo", "metadata": {"k": "v"}, "idleTimeout": "10m", "extra": 1},
               **as_person).json["sandbox"]
    sandbox = made["sandboxId"]
    assert made["status"] == "Running" and made["idleTimeoutSeconds"] == 600 and made["metadata"] == {"k": "v"}, made
    for body, text in (({}, "poolName"), ({"poolName": "demo", "idleTimeout": "soon"}, "idleTimeout"),
                       ({"poolName": "demo", "image": "idle:1"}, "idle"), ({"poolName": "demo", "image": "a b"}, "image")):
        ask("CreateSandbox", 400, body=body, text=text, **as_person)
    ask("CreateSandbox", 404, body={"poolName": "nope"}, text="nope", **as_person)
    ask("CreateSandbox", 404, body={"poolName": "far::demo"}, text="far", **as_person)
    ask("CreateSandbox", 403, body={"poolName": "demo"}, bearer=session(user="w", team="other"))
    ask("CreateSandboxEnv", 201, body={"name": "bare", "templateRef": {"name": "t"}}, **as_person)
    ask("CreateSandbox", 503, body={"poolName": "bare"}, **as_person)
    ask("CreateEnvSandboxPool", 202, "bare", body={"inlineResources": SHAPE, "replicas": 0}, **as_person)
    full = ask("CreateSandbox", 429, body={"poolName": "bare", "startupTimeout": "100ms"}, **as_person)
    assert full.json["detail"]["idle"] == 0 and int(full.headers["Retry-After"]) > 0, str(full)
    page = ask("ListSandboxes", 200, query="?poolName=demo-1c2gi&status=Running,Starting&limit=1", **as_person).json
    assert (page["total"], page["limit"], page["offset"], len(page["items"])) == (1, 1, 0, 1), page
    ask("ListSandboxes", 400, query="?limit=0", text="limit is 1 to 1000", **as_person)
    ask("ListSandboxes", 400, query="?offset=-1", text="offset", **as_person)
    shown = ask("GetSandbox", 200, sandbox, **as_person).json["sandbox"]
    assert shown["containerImages"] == {"main": "work:1"}, shown
    assert shown["endpoints"]["side"] == {"url": "%s/sandboxes/%s/9" % (daemon.base, sandbox),
                                          "logDir": "/var/log/side.log"}, shown
    ask("GetSandbox", 404, "nope", text="nope", **as_person)
    ask("GetSandbox", 404, sandbox, bearer=session(user="v", team="t"))
    ask("SetSandboxTimeout", 204, sandbox, body={"timeout": "5m"}, **as_person)
    ask("SetSandboxTimeout", 204, sandbox, body={"timeout": "0"}, **as_person)
    ask("SetSandboxTimeout", 400, sandbox, body={"timeout": "soon"}, text="timeout", **as_person)
    ask("SetSandboxTimeout", 404, "nope", body={"timeout": "5m"}, **as_person)
    ask("GetUserSandboxStatistics", 200, text='"Running":1', **as_person)
    ask("AdminGetSandboxStatistics", 200, text='"total":1')
    ask("AdminGetSandboxStatistics", 403, **as_person)


@step("what runs in a sandbox")
def _():
    assert len(ask("CreateSandboxExecToken", 200, sandbox, **as_person).json["token"]) == 64
    ask("CreateSandboxExecToken", 404, "nope", **as_person)
    ask("IsSandboxReady", 503, sandbox, text='"ready":false', **as_person)  # nothing listens in a fake Pod
    ask("IsSandboxReady", 404, "nope", **as_person)
    ask("ExecSandboxCommand", 400, sandbox, body={}, text="command", **as_person)
    ask("ExecSandboxCommand", 404, "nope", body={"command": "true"}, **as_person)
    ask("GetSandboxLogs", 200, sandbox, query="?lines=5", text='"containers":["main"]', **as_person)
    ask("GetSandboxLogs", 400, sandbox, query="?lines=10001", text="lines is 0 to 10000", **as_person)
    ask("GetSandboxLogs", 400, sandbox, query="?container=nope", text="nope", **as_person)
    ask("GetSandboxLogs", 400, sandbox, query="?source=nope", text="nope", **as_person)
    ask("GetSandboxLogs", 400, sandbox, query="?source=envd", text="logDir", **as_person)
    ask("GetSandboxLogs", 404, "nope", **as_person)
    terminal = "/v1/sandboxes/%s/terminal" % sandbox
    assert daemon.ask("GET", terminal).status == 401
    token = ask("CreateSandboxExecToken", 200, sandbox, **as_person).json["token"]
    assert daemon.ask("GET", "/v1/sandboxes/other/terminal?token=" + token).status == 401
    assert daemon.ask("GET", terminal + "?token=" + token).status == 401, "it was used up"


@step("a sandbox that ended has a record")
def _():
    assert ask("DeleteSandbox", 202, sandbox, **as_person).json["status"] == "Stopping"
    assert ask("DeleteSandbox", 202, sandbox, **as_person).json["status"] == "Terminated"
    ask("DeleteSandbox", 404, "nope", **as_person)
    assert ask("GetSandbox", 200, sandbox, **as_person).json["sandbox"]["status"] == "Completed"
    assert ask("GetSandboxLogs", 200, sandbox, **as_person).json["source"] == "cached"
    ask("CreateSandboxExecToken", 404, sandbox, **as_person)
    answer = daemon.ask("GET", "/v1/sandboxes/%s/logs/stream" % sandbox, **as_person)
    assert answer.headers["Content-Type"] == "application/x-ndjson"
    assert json.loads(answer.text) == {"_meta": True, "source": "live", "truncated": False}, answer.text


@step("clusters, gates and what one machine has none of")
def _():
    assert ask("ListClusters", 200, **as_person).json == {"clusters": [{"id": "local", "name": "local", "local": True}]}
    assert ask("GetFeatureGates", 200, **as_person).json == {"quota": True, "instanceType": True, "volumes": False}
    ask("ListVolumes", 200, text='"total":0', **as_person)


@step("instance types and quotas")
def _():
    types = ask("ListInstanceTypes", 200, **as_person).json
    assert types["total"] == 1 and types["items"][0]["baseResources"] == {"cpu": "1", "memory": "2Gi"}, types
    quotas = ask("ListQuotas", 200, **as_person).json
    assert [quota["name"] for quota in quotas["items"]] == ["q/one"], "only one's own"
    assert quotas["items"][0]["resources"]["free"] == {"small": "2"}, quotas
    assert ask("ListQuotas", 200).json["total"] == 2, "an admin sees all"
    ask("AdminCreateSandboxTemplate", 201, body=template("billed", labels={"agentbox.navix.sh/pool-sizing": "billed"}),
        text='"poolSizing":"billed"')
    made = ask("CreateSandboxEnv", 201, body={"name": "bill", "templateRef": {"name": "billed"}}, **as_person).json
    assert made["env"]["poolSizing"] == "billed" and made["editable"]["labels"]["agentbox.navix.sh/pool-sizing"] == "billed"
    ask("CreateEnvSandboxPool", 400, "bill", body={"inlineResources": SHAPE}, text="quota.scitix.ai/url", **as_person)
    ask("CreateEnvSandboxPool", 400, "bill", body={"labels": {"quota.scitix.ai/url": "q/one"}}, text="instanceType", **as_person)
    body = {"instanceType": "small", "labels": {"quota.scitix.ai/url": "q/one"}, "replicas": 1}
    ask("CreateEnvSandboxPool", 400, "bill", body={**body, "instanceType": "huge"}, text="huge", **as_person)
    pool = ask("CreateEnvSandboxPool", 202, "bill", body=body, **as_person).json["template"]["name"]
    got = ask("GetEnvSandboxPool", 200, "bill", pool, **as_person).json["editable"]
    ask("UpdateEnvSandboxPool", 200, "bill", pool, body=got, **as_person)
    ask("UpdateEnvSandboxPool", 429, "bill", pool, body={**got, "replicas": 5}, **as_person)
    ask("DeleteSandboxEnv", 202, "bill", **as_person)


agent = None


@step("keys")
def _():
    global agent
    made = ask("SelfCreateAPIKey", 201, body={"mode": "agent", "description": "robot"}, **as_person).json
    agent = made["apiKey"]
    ask("SelfCreateAPIKey", 400, body={"expiresAt": "2020-01-01T00:00:00Z"}, text="past", **as_person)
    items = ask("SelfListAPIKeys", 200, **as_person).json
    assert [item["rawToken"] for item in items] == [agent], items
    assert "rawToken" not in ask("SelfListAPIKeys", 200, key=agent).json[0], "an agent gets no key"
    ask("SelfDeleteAPIKey", 404, "nope", **as_person)
    ask("SelfDeleteAPIKey", 403, made["keyId"])
    gone = ask("SelfCreateAPIKey", 201, body={}, **as_person).json["keyId"]
    ask("SelfDeleteAPIKey", 200, gone, text='"Deleted"', **as_person)
    person = session(user="many", team="m")
    for _ in range(100):
        ask("SelfCreateAPIKey", 201, body={}, bearer=person)
    ask("SelfCreateAPIKey", 409, body={}, text="100", bearer=person)
    ask("CreateAPIKey", 409, body={"team": "m", "user": "many"}, text="100")
    red = ask("CreateAPIKey", 201, body={"team": "red", "user": "ann", "namespace": "red"}).json
    ask("CreateAPIKey", 400, body={"team": "red"}, text="user is required")
    ask("CreateAPIKey", 403, body={"team": "r", "user": "u"}, text='"admin api key required"', key=red["apiKey"])
    ask("ListAPIKeys", 200, query="?namespace=red", text=red["keyId"])
    ask("ListAPIKeys", 403, **as_person)
    ask("ListAPIKeys", 400, query="?namespace=%zz", text="encoded")
    ask("PromoteAPIKey", 503, red["keyId"], text="hub")
    ask("PromoteAPIKey", 404, "nope")
    ask("PromoteAPIKey", 403, red["keyId"], **as_person)
    ask("ListTeams", 200, text='"red"')
    ask("ListTeams", 403, **as_person)
    ask("ListUsersByTeam", 200, "red", text='["ann"]')
    ask("ListUsersByTeam", 403, "red", **as_person)
    ask("ListNamespaces", 200, text='["default","red"]')
    ask("ListNamespaces", 403, **as_person)
    ask("DeleteAPIKey", 403, red["keyId"], **as_person)
    ask("DeleteAPIKey", 200, red["keyId"])
    ask("DeleteAPIKey", 404, red["keyId"])


# Operation, names, body: the catalogue of native-api.md, section 3.2.
GATED = [("CreateSandbox", [], {"poolName": "nope"}, "sandbox.create", "Start a sandbox", False),
         ("DeleteSandbox", ["nope"], None, "sandbox.delete", "Delete a sandbox", True),
         ("SetSandboxTimeout", ["nope"], {"timeout": "1m"}, "sandbox.update", "Change a sandbox's timeout", False),
         ("ExecSandboxCommand", ["nope"], {"command": "x"}, "sandbox.exec", "Run a command in a sandbox", False),
         ("CreateSandboxExecToken", ["nope"], None, "sandbox.execToken", "Mint a terminal token for a sandbox", True),
         ("CreateSandboxEnv", [], {"name": "x", "templateRef": {"name": "nope"}}, "env.create", "Create an environment",
          False),
         ("UpdateSandboxEnv", ["nope"], {"templateRef": {"name": "t"}}, "env.update", "Change an environment", False),
         ("DeleteSandboxEnv", ["nope"], None, "env.delete", "Delete an environment", True),
         ("CreateEnvSandboxPool", ["nope"], {}, "pool.create", "Add a warm pool", False),
         ("UpdateEnvSandboxPool", ["nope", "p"], {}, "pool.update", "Change a warm pool", False),
         ("DeleteEnvSandboxPool", ["nope", "p"], None, "pool.delete", "Delete a warm pool", True),
         ("UpdateEnvAutoscalingGroup", ["nope", "g"], {}, "autoscaling.update", "Change an autoscaling group", False),
         ("DeleteEnvAutoscalingGroup", ["nope", "g"], None, "autoscaling.delete", "Delete an autoscaling group", True),
         ("SelfDeleteAPIKey", ["nope"], None, "apikey.delete", "Delete an API key", True)]


@step("an agent's writes wait, each as the catalogue has it, and go through once released")
def _():
    for operation, names, body, name, summary, once in GATED:
        held = ask(operation, 428, *names, body=body, key=agent).json
        assert held["errorCode"] == "APPROVAL_REQUIRED", held
        detail = held["detail"]
        if names:
            summary += " (%s)" % "/".join(names)
        assert held["error"] == "approval required: " + summary, held
        wanted = {"operation": name, "summary": summary, "onceOnly": once, "pollUrl": "/v1/approvals/" + detail["approvalId"],
                  "url": "%s/clusters/local/approvals?id=%s" % (CONSOLE, detail["approvalId"])}
        assert wanted.items() <= detail.items(), detail
        assert re.fullmatch(r"apr_[0-9a-f]{16}", detail["approvalId"]), detail
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", detail["expiresAt"]), detail
        assert ask(operation, 428, *names, body=body, key=agent).json["detail"]["approvalId"] == detail["approvalId"]
        if once:
            ask("DecideApproval", 400, detail["approvalId"], body={"decision": "approve", "scope": "key"}, text="once",
                **as_person)
        ask("DecideApproval", 200, detail["approvalId"], body={"decision": "approve"}, text='"u@example"', **as_person)
        status = 400 if operation == "CreateSandboxEnv" else 404
        ask(operation, status, *names, body=body, key=agent)
        again = ask(operation, 428, *names, body=body, key=agent).json["detail"]["approvalId"]
        assert again != detail["approvalId"], "it was spent"
        ask("DecideApproval", 200, again, body={"decision": "deny", "scope": "session"}, text='"denied"', **as_person)


@step("what an agent may never do")
def _():
    refused = ask("SelfCreateAPIKey", 403, body={}, key=agent).json
    assert refused["errorCode"] == "FORBIDDEN_FOR_AGENT", refused
    assert refused["detail"] == {"approvalId": "", "operation": "apikey.create", "summary": "Create an API key",
                                 "onceOnly": False, "url": CONSOLE + "/clusters/local/api-keys", "pollUrl": "",
                                 "expiresAt": ""}, refused
    ask("CreateAPIKey", 403, body={"team": "t", "user": "u"}, key=agent)
    held = ask("CreateSandboxEnv", 428, body={"name": "x", "templateRef": {"name": "t"}}, key=agent).json["detail"]
    ask("DecideApproval", 403, held["approvalId"], body={"decision": "approve"}, text="session", key=agent)
    ask("CreateSandboxEnv", 400, body={"nme": 1}, text="nme", key=agent)  # before it is held
    ask("CreateSandboxEnv", 428, body="{", key=agent)  # what else is wrong comes after


@step("approvals and grants")
def _():
    held = ask("CreateSandbox", 428, body={"poolName": "x"}, key=agent, headers={"X-AgentBox-Session-Id": "run"})
    approval = held.json["detail"]["approvalId"]
    ask("GetApproval", 200, approval, text='"pending"', key=agent)
    ask("GetApproval", 404, approval)
    ask("GetApproval", 404, "apr_0000000000000000", **as_person)
    ask("DecideApproval", 404, approval, body={"decision": "deny"}, bearer=session(user="v", team="t"))
    ask("DecideApproval", 400, approval, body={"decision": "perhaps"}, text="decision", **as_person)
    ask("DecideApproval", 200, approval, body={"decision": "approve", "scope": "session"}, **as_person)
    ask("DecideApproval", 400, approval, body={"decision": "approve"}, text="already", **as_person)
    ask("CreateSandbox", 404, body={"poolName": "y"}, key=agent, headers={"X-AgentBox-Session-Id": "run"})
    ask("CreateSandbox", 428, body={"poolName": "y"}, key=agent, headers={"X-AgentBox-Session-Id": "other"})
    held = ask("CreateSandbox", 428, body={"poolName": "z"}, key=agent).json["detail"]["approvalId"]
    ask("DecideApproval", 400, held, body={"decision": "approve", "scope": "session"}, text="session", **as_person)
    ask("DecideApproval", 200, held, body={"decision": "approve", "scope": "key"}, **as_person)
    ask("CreateSandbox", 404, body={"poolName": "anything"}, key=agent)
    grants = ask("ListApprovals", 200, **as_person).json["grants"]
    assert [grant["scope"] for grant in grants] == ["session", "key"], grants
    assert "expiresAt" in grants[0] and "expiresAt" not in grants[1], grants
    ask("RevokeApprovalGrant", 404, grants[0]["id"], key=agent)
    for grant in grants:
        ask("RevokeApprovalGrant", 204, grant["id"], **as_person)
        ask("RevokeApprovalGrant", 404, grant["id"], **as_person)
    ask("CreateSandbox", 428, body={"poolName": "anything"}, key=agent)
    for number in range(100):
        answer = daemon.ask("POST", "/v1/sandboxes", {"poolName": "n%d" % number}, key=agent)
        if answer.status == 429:
            break
    ask("CreateSandbox", 429, body={"poolName": "one more"}, text="approval", key=agent)
    ask("CreateSandboxEnv", 429, body={"name": "more", "templateRef": {"name": "t"}}, key=agent)


@step("envs, pools and their end")
def _():
    ask("AdminDeleteSandboxTemplate", 409, "t", text="in use")
    ask("DeleteEnvSandboxPool", 202, "demo", "demo-1c2gi", text='"Terminating"', **as_person)
    ask("DeleteSandboxEnv", 202, "demo", text='"Terminating"', **as_person)


@step("every operation: without a credential 401; an odd client 426; too long a body 413")
def _():
    for operation, (method, path, item) in operations.items():
        names = ["x"] * path.count("{")
        ask(operation, 401, *names, body={} if "requestBody" in item else None, text="missing api key", headers={})
        if method != "GET":
            old = ask(operation, 426, *names, body={} if "requestBody" in item else None, key=daemon.admin,
                      headers={"X-AgentBox-Client-Version": "ancient"}).json
            assert isinstance(old["detail"], str), old
        if "requestBody" in item:
            ask(operation, 413, *names, body='{"x":"' + "x" * (1 << 20) + '"}')
    ask("GetWhoAmI", 401, text="invalid api key", key="agbx_0")
    ask("GetWhoAmI", 401, text="session", bearer=session(user="u", exp=1))
    assert ask("GetWhoAmI", 200, key=agent).json == {"role": "tenant", "mode": "agent", "user": "u", "team": "t",
                                                     "namespace": "default"}


@step("an admin as somebody else; nobody else may")
def _():
    both = {"X-Impersonate-Team": "t", "X-Impersonate-User": "u"}
    me = ask("GetWhoAmI", 200, key=daemon.admin, headers=both).json
    assert (me["role"], me["team"], me["user"]) == ("admin", "t", "u"), me
    ask("GetSandboxEnv", 200, "bare", key=daemon.admin, headers=both)
    ask("GetSandboxEnv", 404, "bare", key=daemon.admin, headers={**both, "X-Impersonate-User": "v"})
    me = ask("GetWhoAmI", 200, key=daemon.admin, headers={"X-Impersonate-Team": "t", "X-Impersonate-User": " "}).json
    assert me["user"] == "admin", me
    me = ask("GetWhoAmI", 200, key=agent, headers={"X-Impersonate-Team": "admin", "X-Impersonate-User": "admin"}).json
    assert me["user"] == "u", me


@step("outside the document: ping, unknown paths and methods, the hub")
def _():
    ping = daemon.ask("GET", "/ping")
    assert (ping.status, ping.text) == (200, '{"status":"ok"}') and "X-AgentBox-Server-Version" in ping.headers
    unknown = daemon.ask("GET", "/v1/nothing")
    assert unknown.status == 404 and "X-AgentBox-Server-Version" in unknown.headers
    wrong = daemon.ask("DELETE", "/v1/envs", key=daemon.admin)
    assert wrong.status == 405 and wrong.headers["Allow"] == "GET, POST", str(wrong)
    hub = daemon.ask("GET", "/v1/ws/sync", key=daemon.admin)
    assert hub.status == 501 and "Sync" in hub.text, str(hub)


@step("/openapi.json is api/native.yaml, and each of its operations is answered")
def _():
    assert daemon.ask("GET", "/openapi.json").json == document
    with open(os.path.join(TOP, "api", "native.yaml"), encoding="utf-8") as stream:
        source = yaml.safe_load(stream)
    assert {(path, method) for path, item in source["paths"].items() for method in item} == \
        {(path, method) for path, item in document["paths"].items() for method in item}
    assert not any("501" in item["responses"] for _, _, item in operations.values())
    silent = set(operations) - {operation for operation, status in seen if status < 300} - set(NOT_HERE[200])
    assert not silent, "never answered with success: %s" % sorted(silent)


@step("each declared status was seen, or there is a reason why not")
def _():
    missing = []
    for operation, (_, _, item) in operations.items():
        for status in map(int, item["responses"]):
            reason = NOT_HERE.get(status)
            if (operation, status) in seen or isinstance(reason, str) or (reason and reason.get(operation)):
                continue
            missing.append((operation, status))
    assert not missing, missing


@step("documentation has the address clients are told to use")
def _():
    other = Daemon("--public-url", "https://agents.example/cell")
    docs = {"agentbox.navix.sh/docs": "${AGBX_NATIVE_URL} ${AGBX_DATA_DOMAIN} ${AGBX_HTTPS} ${AGBX_INNER_IP}"}
    assert other.ask("POST", "/v1/admin/sandbox-templates", template("t", annotations=docs), other.admin).status == 201
    shown = other.ask("GET", "/v1/sandbox-templates/t", key=other.admin).json["template"]["docs"]
    assert shown == "https://agents.example/cell agents.example/cell/agent-sandbox/api/data true ${AGBX_INNER_IP}", shown
    other.end()


@step("the daemon ends well")
def _():
    daemon.end()


finish()
