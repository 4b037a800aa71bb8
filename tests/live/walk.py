"""A walk through the documentation the platform is built after: each command of its concept pages and of its guide to
the command line, in the pages' order, with the outcome they promise.

Words in capitals are placeholders of those pages; PLACES fills them in. A console (console.py) stands before the instance
where a page has one. What belongs to a part that is not built yet is a row, too: it is skipped with that part's name, after
a look that the platform refuses it rather than taking it and doing nothing.
"""
import json
import os
import re
import subprocess
import tempfile

import console
from harness import ABX, BASE, KEY, Sandbox, Skip, abx, e2b, finish, native, request, step, wait_for, wait_warm

CLUSTER = native("GET", "/clusters").json["clusters"][0]["id"]
PLACES = {"YOUR_CLUSTER": CLUSTER, "SOME_CLUSTER": CLUSTER, "YOUR_ENV": "walk", "YOUR_POOL": "walk-1c256mi",
          "YOUR_GROUP": "1c256mi", "YOUR_TEMPLATE": "base", "YOUR_DEPLOYMENT": "walk-deployment",
          "https://YOUR_CONSOLE/agentbox": console.start({CLUSTER: BASE}), "agbx_...": KEY}
FOLDER = tempfile.TemporaryDirectory(prefix="agentbox-walk.")
SIZE = {"cpu": "1", "memory": "256Mi"}
EGRESS = "not yet: rules of a sandbox's network (egress)"
VAULT = "not yet: the vault"
HUB = "not yet: several clusters behind one address"


def fill(line):
    for place, value in PLACES.items():
        line = line.replace(place, value)
    return line


def shell(line, **variables):
    """A line as it is typed after the guide's own set-up: abx on the PATH, a home, one's own folder."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("AGENTBOX_", "E2B_"))}
    # A context that is missing must not start the default engine.
    environment.update({"AGENTBOX_DAEMON": "/bin/false", "HOME": FOLDER.name,
                        "XDG_CONFIG_HOME": os.path.join(FOLDER.name, ".config"),
                        "PATH": os.path.dirname(ABX) + ":" + os.environ["PATH"]}, **variables)
    return subprocess.run(["bash", "-c", "set -o pipefail; " + fill(line)], capture_output=True, timeout=120, text=True,
                          cwd=FOLDER.name, env=environment, stdin=subprocess.DEVNULL)


def row(page, line, expected, fails=False, **variables):
    """Decorator: a row of the walk. Runs the line; the function looks at (stdout, stderr)."""
    def run(look):
        @step("%s: %s -> %s" % (page, line, expected))
        def _():
            done = shell(line, **variables)
            assert (done.returncode != 0) == fails, "exit %d\n%s%s" % (done.returncode, done.stdout, done.stderr)
            look(done.stdout, done.stderr)
    return run


def later(page, line, part):
    """Decorator: a row of a part that is not built; the function looks that it is refused, not ignored."""
    def run(look=lambda: None):
        @step("%s: %s" % (page, line))
        def _():
            look()
            raise Skip(part)
    return run


def has(text, *words):
    for word in words:
        assert word in text, "no %r in:\n%s" % (word, text)


def file(name):
    with open(os.path.join(FOLDER.name, name), encoding="utf-8") as opened:
        return json.load(opened)


def save(name, body):
    with open(os.path.join(FOLDER.name, name), "w", encoding="utf-8") as opened:
        json.dump(body, opened)


def create(template, **more):
    return e2b("POST", "/sandboxes", dict({"templateID": template, "timeout": 300}, **more), timeout=150)


# ---- tutorials/cli, section 3, which every other page takes for granted ----

GUIDE = "tutorials/cli"


@row(GUIDE, "abx context", "says how to make one, when there is none")
def _(out, err):
    has(out + err, "abx context set")


@row(GUIDE, "abx context set YOUR_DEPLOYMENT --endpoint 'https://YOUR_CONSOLE/agentbox' --api-key agbx_...",
     "saved, for its owner's eyes alone")
def _(out, err):
    has(out, "saved walk-deployment")
    path = os.path.join(FOLDER.name, ".config", "abx", "config.json")
    assert os.stat(path).st_mode & 0o777 == 0o600, oct(os.stat(path).st_mode)
    assert KEY not in out + err


@row(GUIDE, "abx clusters", "the platform's clusters, without --cluster")
def _(out, _err):
    has(out, CLUSTER)


@row(GUIDE, "abx context use YOUR_DEPLOYMENT", "switches to it")
def _(out, _err):
    has(out, "now using walk-deployment")


@row(GUIDE, "abx agent-context", "the whole CLI as one JSON document")
def _(out, _err):
    tool = json.loads(out)
    names = [each["plural"] for each in tool["resources"]]
    for name in ("clusters", "envs", "pools", "scaling-groups", "sandboxes", "templates", "api-keys", "approvals"):
        assert name in names, names


@row(GUIDE, "abx clusters", "AGENTBOX_ENDPOINT and AGENTBOX_API_KEY stand in for a context",
     AGENTBOX_ENDPOINT=PLACES["https://YOUR_CONSOLE/agentbox"], AGENTBOX_API_KEY=KEY, XDG_CONFIG_HOME="/nonexistent")
def _(out, _err):
    has(out, CLUSTER)


# ---- concepts: the object model ----

@step("an env of the walk's own, with one pool")
def _():
    body = {"name": "walk", "templateRef": {"name": "base"},
            "overrides": {"podCreationImagePolicy": "PoolDefaultImage", "defaultIdleTimeout": "20m"}}
    abx("create", "envs", "-f", "-", stdin=json.dumps(body).encode())


@row("concepts", "abx clusters", "every cluster this address reaches")
def _(out, _err):
    has(out, CLUSTER)


@row("concepts", "abx envs --cluster YOUR_CLUSTER", "the envs of one of them")
def _(out, _err):
    has(out, "walk", "base", "templateName")


@row("concepts", "abx envs YOUR_ENV --cluster YOUR_CLUSTER", "one env: its template, pools, sizing rule")
def _(out, _err):
    has(out, "walk", "template", "base", "poolSizing")


# ---- concepts/pools, up to a pool that serves ----

PAGE = "concepts/pools"


@row(PAGE, "abx envs YOUR_ENV --cluster YOUR_CLUSTER", "prints poolSizing")
def _(out, _err):
    assert re.search(r"poolSizing\s+(billed|free-form|either)", out), out


@row(PAGE, "abx create envs YOUR_ENV pools --help", "the body, field by field")
def _(out, _err):
    has(out, "inlineResources", "instanceType", "multiplier", "replicas", "minReplicas", "maxReplicas", "updateStrategy",
        "fixed")


save("pool.json", {"inlineResources": {"requests": SIZE, "limits": SIZE}, "replicas": 1})


@row(PAGE, "abx create envs YOUR_ENV pools -f pool.json --cluster YOUR_CLUSTER",
     "made; its name follows from env and size")
def _(out, _err):
    has(out, "created")
    assert native("GET", "/envs/walk/sandboxpools/walk-1c256mi").status == 200


@row(PAGE, "abx envs YOUR_ENV pools --cluster YOUR_CLUSTER", "what exists")
def _(out, _err):
    has(out, "walk-1c256mi", "idleReplicas", "replicas", "1c256mi")


@row(PAGE, "abx scale envs YOUR_ENV pools YOUR_POOL --replicas 4 --cluster YOUR_CLUSTER",
     "four Pods, and nothing else changed")
def _(out, _err):
    has(out, "scaled walk-1c256mi to 4")
    pool = native("GET", "/envs/walk/sandboxpools/walk-1c256mi").json
    assert pool["template"]["spec"]["replicas"] == 4, pool


@step("concepts/pools: a shape that the env does not take -> 400 that names the field")
def _():
    sizing = native("GET", "/envs/walk").json["env"]["poolSizing"]
    wrong = {"inlineResources": {"limits": SIZE}} if sizing == "billed" else {"instanceType": "none.such", "replicas": 1}
    answer = native("POST", "/envs/walk/sandboxpools", wrong)
    assert answer.status == 400, str(answer)
    has(answer.text, "inlineResources" if sizing == "billed" else "instanceType")


@row(PAGE, "abx create envs YOUR_ENV pools -f pool.json --cluster YOUR_CLUSTER", "the same pool again is refused",
     fails=True)
def _(_out, err):
    has(err, "walk-1c256mi")


@step("concepts/pools: a scaling group without a member in the env -> 503, and nothing lands elsewhere")
def _():
    answer = create("walk", metadata={"agentbox.scitix.ai/scaling-group": "64c1ti"})
    assert answer.status == 503, str(answer)
    has(answer.text, "64c1ti")


@row(PAGE, "abx quotas --cluster YOUR_CLUSTER", "a row for each instance type, or that there are none")
def _(out, _err):
    has(out, "quota")


@step("concepts/pools: replicas, idle, running, pending are told")
def _():
    wait_warm("walk", 60)
    status = native("GET", "/envs/walk/sandboxpools/walk-1c256mi").json["template"]["status"]
    assert status["idleReplicas"] == 4 and status.get("runningReplicas", 0) == 0, status


# ---- concepts/envs ----

PAGE = "concepts/envs"


@step('concepts/envs: Sandbox.create("YOUR_ENV", timeout=3000, secure=False) -> a sandbox of the env')
def _():
    sandbox = Sandbox("walk", timeout=3000)
    assert sandbox.sh("echo walked") == "walked\n"
    assert native("GET", "/sandboxes/" + sandbox.id).json["sandbox"]["envName"] == "walk"
    assert sandbox.kill() == 204


@row(PAGE, "abx envs --cluster YOUR_CLUSTER", "every env of the cluster")
def _(out, _err):
    has(out, "walk", "base")


@row(PAGE, "abx envs YOUR_ENV --cluster YOUR_CLUSTER", "template, mode, pools, sizing rule")
def _(out, _err):
    has(out, "base", "WarmPool", "walk-1c256mi", "poolSizing")


@row(PAGE, "abx envs YOUR_ENV --editable --cluster YOUR_CLUSTER > env.json", "the file an update takes")
def _(_out, _err):
    body = file("env.json")
    assert body["templateRef"]["name"] == "base" and body["overrides"]["defaultIdleTimeout"] == "20m", body
    assert "spec" not in body and "status" not in body, body
    body["overrides"]["defaultIdleTimeout"] = "40m"
    save("env.json", body)


@row(PAGE, "abx update envs YOUR_ENV -f env.json --cluster YOUR_CLUSTER", "changed; what stayed in the file stays")
def _(out, _err):
    has(out, "updated walk")
    overrides = native("GET", "/envs/walk").json["env"]["spec"]["overrides"]
    assert overrides["defaultIdleTimeout"] == "40m" and overrides["podCreationImagePolicy"] == "PoolDefaultImage", overrides


@row(PAGE, "abx create envs --help", "the whole body, field by field")
def _(out, _err):
    has(out, "templateRef", "mode", "overrides", "image", "podCreationImagePolicy", "defaultStartupTimeout",
        "defaultIdleTimeout", "imagePullSecret", "imagePullSecretConfigured", "gateway", "volumes", "updateStrategy", "labels",
        "annotations")


@step("concepts/envs: a PUT that leaves a field out removes it; overrides are replaced as a whole")
def _():
    body = native("GET", "/envs/walk").json["editable"]
    body["overrides"] = {"podCreationImagePolicy": "PoolDefaultImage"}
    assert native("PUT", "/envs/walk", body).status == 200
    assert "defaultIdleTimeout" not in native("GET", "/envs/walk").json["env"]["spec"]["overrides"]


@step("concepts/envs: registry credentials cannot be read back; the flag alone keeps them; without it they go")
def _():
    secret = {"registries": [{"registry": "registry.example.com", "username": "u", "password": "walk-password"}]}
    body = native("GET", "/envs/walk").json["editable"]
    body["overrides"]["imagePullSecret"] = secret
    answer = native("PUT", "/envs/walk", body)
    if answer.status == 400 and "imagePullSecret is not supported" in answer.text:
        raise Skip("not yet: credentials of registries")
    assert answer.status == 200, str(answer)
    answer = native("GET", "/envs/walk")
    assert "walk-password" not in answer.text and answer.json["editable"]["overrides"]["imagePullSecretConfigured"] is True
    kept = answer.json["editable"]
    kept["overrides"]["defaultStartupTimeout"] = "3m"
    assert native("PUT", "/envs/walk", kept).status == 200
    assert native("GET", "/envs/walk").json["editable"]["overrides"].get("imagePullSecretConfigured") is True
    del kept["overrides"]["imagePullSecretConfigured"]
    assert native("PUT", "/envs/walk", kept).status == 200
    assert not native("GET", "/envs/walk").json["editable"]["overrides"].get("imagePullSecretConfigured")


@step("concepts/envs: templateRef is fixed at create; a name has at most 24 characters; OnDemandJob is not to be built on")
def _():
    body = native("GET", "/envs/walk").json["editable"]
    body["templateRef"] = {"name": "another"}
    answer = native("PUT", "/envs/walk", body)
    assert answer.status == 400 and "templateRef" in answer.text, str(answer)
    answer = native("POST", "/envs", {"name": "w" * 25, "templateRef": {"name": "base"}})
    assert answer.status == 400 and "24" in answer.text, str(answer)
    answer = native("POST", "/envs", {"name": "walk-job", "templateRef": {"name": "base"}, "mode": "OnDemandJob"})
    assert answer.status == 400 and "OnDemandJob" in answer.text, str(answer)


# ---- concepts/templates ----

PAGE = "concepts/templates"


@row(PAGE, "abx templates --cluster YOUR_CLUSTER", "the catalogue")
def _(out, _err):
    has(out, "base", "version", "description")


@row(PAGE, "abx templates YOUR_TEMPLATE --cluster YOUR_CLUSTER", "one, with its documentation and its raw object")
def _(out, _err):
    has(out, "base", "docs", "crdYaml", "SandboxTemplate", "idleImage")


@row(PAGE, "abx envs YOUR_ENV docs --cluster YOUR_CLUSTER", "rendered for this env and cluster, the key left as it is")
def _(out, _err):
    has(out, "walk")
    assert "${AGBX_ENV_NAME}" not in out and KEY not in out, out


@row(PAGE, "abx admin-templates --cluster YOUR_CLUSTER", "the administrators' list")
def _(out, _err):
    has(out, "base")


# ---- concepts/autoscaling ----

PAGE = "concepts/autoscaling"


@row(PAGE, "abx envs YOUR_ENV scaling-groups --cluster YOUR_CLUSTER", "the groups, which the pools' shapes made")
def _(out, _err):
    has(out, "1c256mi", "enabled")


@row(PAGE, "abx envs YOUR_ENV scaling-groups YOUR_GROUP --cluster YOUR_CLUSTER", "one, with all of its policy")
def _(out, _err):
    has(out, "enabled", "minReplicas", "maxReplicas", "scaleUpMode", "cooldownSeconds", "idleThresholdSeconds",
        "idleZeroQuietWindowSeconds", "saturationCooldownSeconds", "idleTimeoutSeconds", "stabilizationSeconds",
        "protectionWindowSeconds")


@row(PAGE, "abx envs YOUR_ENV scaling-groups YOUR_GROUP --editable --cluster YOUR_CLUSTER > group.json",
     "the file an update takes")
def _(_out, _err):
    group = file("group.json")
    assert "name" not in group, group
    save("group.json", dict(group, enabled=True, minReplicas=1, maxReplicas=5))


@row(PAGE, "abx update envs YOUR_ENV scaling-groups YOUR_GROUP -f group.json --cluster YOUR_CLUSTER",
     "the policy is the file's")
def _(out, _err):
    has(out, "updated 1c256mi")
    group = native("GET", "/envs/walk/autoscaling/groups/1c256mi").json["group"]
    assert group["enabled"] is True and group["minReplicas"] == 1 and group["maxReplicas"] == 5, group


@row(PAGE, "abx scale envs YOUR_ENV pools YOUR_POOL --replicas 3 --cluster YOUR_CLUSTER",
     "refused while the group is enabled: the number is the autoscaler's", fails=True)
def _(_out, err):
    has(err, "1c256mi")


@step("concepts/autoscaling: a maxReplicas that is left out removes the ceiling; enabled false gives replicas back")
def _():
    assert native("PUT", "/envs/walk/autoscaling/groups/1c256mi", {"enabled": False, "minReplicas": 0}).status == 200
    assert "maxReplicas" not in native("GET", "/envs/walk/autoscaling/groups/1c256mi").json["editable"]
    abx("scale", "envs", "walk", "pools", "walk-1c256mi", "--replicas", "2")
    assert native("GET", "/envs/walk/sandboxpools/walk-1c256mi").json["template"]["spec"]["replicas"] == 2


# ---- concepts/inplace-update ----

PAGE = "concepts/inplace-update"


@step("concepts/inplace-update: a claim makes a Pod running, a kill makes one idle again; set_timeout moves its end")
def _():
    wait_warm("walk", 60)
    sandbox = Sandbox("walk", timeout=60)
    assert native("GET", "/envs/walk/sandboxpools/walk-1c256mi").json["template"]["status"].get("runningReplicas") == 1
    before = e2b("GET", "/sandboxes/" + sandbox.id).json["endAt"]
    assert e2b("POST", "/sandboxes/%s/timeout" % sandbox.id, {"timeout": 3000}).status == 204
    assert e2b("GET", "/sandboxes/" + sandbox.id).json["endAt"] > before
    sandbox.sh("echo left > /tmp/left")
    assert sandbox.kill() == 204
    wait_warm("walk", 60)


@step("concepts/inplace-update: nothing of a sandbox is left for the next on the same Pods")
def _():
    both = [Sandbox("walk"), Sandbox("walk")]
    for each in both:
        assert each.sh("ls /tmp/left 2>/dev/null | wc -l").strip() == "0"
    for each in both:
        assert each.kill() == 204


@step("concepts/inplace-update: another image is swapped in for one claim; the pool's revision stays")
def _():
    def pool():
        return native("GET", "/envs/walk/sandboxpools/walk-1c256mi").json["template"]["status"]
    wait_warm("walk", 60)
    revision = pool()["updateRevision"]
    sandbox = Sandbox("walk//runtime:")
    assert sandbox.sh("readlink /bin/sh || echo sh").strip()
    assert sandbox.kill() == 204
    assert pool()["updateRevision"] == revision


@step("concepts/inplace-update: the idle Pods' own change rolls them, and sandboxes are left alone")
def _():
    wait_warm("walk", 60)
    sandbox = Sandbox("walk")
    old = native("GET", "/envs/walk/sandboxpools/walk-1c256mi").json["template"]["status"]["updateRevision"]
    body = native("GET", "/envs/walk").json["editable"]
    body["overrides"]["podCreationImagePolicy"] = "IdleImage"
    assert native("PUT", "/envs/walk", body).status == 200
    assert sandbox.sh("echo still") == "still\n"
    body["overrides"]["podCreationImagePolicy"] = "PoolDefaultImage"
    assert native("PUT", "/envs/walk", body).status == 200
    assert sandbox.sh("echo still") == "still\n"
    assert sandbox.kill() == 204
    assert old


# ---- concepts/cross-cluster ----

PAGE = "concepts/cross-cluster"


@row(PAGE, "abx clusters", "every cluster behind this address")
def _(out, _err):
    has(out, CLUSTER)


@row(PAGE, "abx envs --cluster YOUR_CLUSTER", "the envs of one of them")
def _(out, _err):
    has(out, "walk")


for written in ("YOUR_ENV", "SOME_CLUSTER::YOUR_ENV", "SOME_CLUSTER::YOUR_POOL", "YOUR_ENV//runtime:",
                "SOME_CLUSTER::YOUR_POOL//runtime:"):
    @step("concepts/cross-cluster: the address %s -> a sandbox" % written)
    def _():
        wait_warm("walk", 60)
        assert Sandbox(fill(written)).kill() == 204


@row(PAGE, "abx envs YOUR_ENV --cluster SOME_CLUSTER", "a cluster is a flag of abx")
def _(out, _err):
    has(out, "walk")


@row(PAGE, "abx envs YOUR_ENV --cluster elsewhere", "a cluster that there is not is refused by name", fails=True)
def _(_out, err):
    has(err, "elsewhere")


@later(PAGE, "an env of the same name in a second cluster takes what the first has no room for", HUB)
def _():
    answer = create("elsewhere::walk")
    assert answer.status >= 400 and "elsewhere" in answer.text, str(answer)


# ---- concepts/egress-and-secrets ----

PAGE = "concepts/egress-and-secrets"


@row(PAGE, "abx update envs YOUR_ENV --help --cluster YOUR_CLUSTER", "the env's one gateway field")
def _(out, _err):
    has(out, "gateway")


@row(PAGE, "abx update envs YOUR_ENV --schema", "the same as JSON, down to its one switch")
def _(out, _err):
    fields = json.loads(out)["fields"]
    for name in ("overrides", "gateway"):
        fields = next(each for each in fields if each["name"] == name)["fields"]
    assert [each["name"] for each in fields] == ["enabled"], fields


@later(PAGE, "overrides.gateway.enabled: true", EGRESS)
def _():
    body = native("GET", "/envs/walk").json["editable"]
    body["overrides"]["gateway"] = {"enabled": True}
    answer = native("PUT", "/envs/walk", body)
    assert answer.status == 400 and "gateway" in answer.text, str(answer)


@later(PAGE, 'Sandbox.create("YOUR_ENV", allow_internet_access=False)', EGRESS)
def _():
    answer = create("walk", allow_internet_access=False)
    assert answer.status == 400 and "allow_internet_access" in answer.text, str(answer)


@later(PAGE, 'Sandbox.create("YOUR_ENV", network={"allow_out": [...]})', EGRESS)
def _():
    answer = create("walk", network={"allowOut": ["api.openai.com"]})
    assert answer.status == 400 and "allowOut" in answer.text, str(answer)


@row(PAGE, "abx envs YOUR_ENV docs --cluster YOUR_CLUSTER", "the E2B API's address and the data domain")
def _(out, _err):
    has(out, "/agent-sandbox/api/e2b", "${AGBX_API_KEY}")


@later(PAGE, 'Secret.create("openai-api-key", ...)', VAULT)
def _():
    answer = e2b("POST", "/secrets", {"name": "openai-api-key", "value": "x"})
    assert answer.status == 501, str(answer)


@later(PAGE, 'Sandbox.create("YOUR_ENV", network={"rules": {...}})', VAULT)
def _():
    answer = create("walk", network={"rules": {"api.openai.com": [{"transform": {"headers": {"A": "${{secrets.x}}"}}}]}})
    assert answer.status == 400 and "rules" in answer.text, str(answer)


@row(PAGE, "abx whoami", "which identity the vault will be read as")
def _(out, _err):
    who = json.loads(out)
    assert who["role"] in ("admin", "tenant") and who["user"] and who["team"] and who["mode"] == "unrestricted", who


# ---- tutorials/cli, sections 3 to 6 ----

@row(GUIDE, "abx envs YOUR_ENV pools --cluster YOUR_CLUSTER", "its pools")
def _(out, _err):
    has(out, "walk-1c256mi")


@later(GUIDE, "curl ... install.sh | sh", "not here: packages and an installer (packaging)")
def _():
    pass


@later(GUIDE, "/plugin install agentbox", "not here: the plugin of Claude Code (packaging)")
def _():
    pass


@step("tutorials/cli: the nine skills are in the tree, one folder each")
def _():
    skills = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "skills")
    found = sorted(name for name in os.listdir(skills) if os.path.exists(os.path.join(skills, name, "SKILL.md")))
    assert len(found) == 9, found


@row(GUIDE, "abx envs YOUR_ENV docs --cluster YOUR_CLUSTER", "this cluster's endpoints")
def _(out, _err):
    has(out, "walk")


@later(GUIDE, "patch_e2b(api_url=..., domain=...) and the SDK", "run by tests/e2b, with the SDKs it installs")
def _():
    pass


class Agent:
    key = name = ""


save("key.json", {"description": "of the walk", "mode": "agent"})


@row(GUIDE, "abx create api-keys -f key.json", "a key in agent mode")
def _(out, _err):
    has(out, "created")
    made = [each for each in native("GET", "/api-keys").json if each.get("description") == "of the walk"]
    assert len(made) == 1 and made[0]["mode"] == "agent", made
    Agent.key, Agent.name = made[0]["rawToken"], made[0]["keyId"]


def as_agent(*words):
    return shell(" ".join(("abx",) + words), AGENTBOX_API_KEY=Agent.key)


def waiting():
    """The id of the one write of this key that is held."""
    held = [each for each in json.loads(as_agent("--json", "approvals").stdout) if each["principal"]["keyId"] == Agent.name]
    assert len(held) == 1 and held[0]["status"] == "pending", held
    return held[0]["id"]


@step("tutorials/cli: abx whoami with it -> mode agent")
def _():
    assert json.loads(as_agent("whoami").stdout)["mode"] == "agent"


@step("tutorials/cli: sandbox work is the same for an agent's key")
def _():
    wait_warm("walk", 60)
    made = request("POST", os.environ["E2B_API_URL"] + "/sandboxes", {"templateID": "walk", "timeout": 60}, key=Agent.key)
    assert made.status == 201, str(made)
    sandbox = made.json["sandboxID"]
    assert request("DELETE", os.environ["E2B_API_URL"] + "/sandboxes/" + sandbox, key=Agent.key).status == 204


@step("tutorials/cli: its writes wait for a person: nothing changed, and the answer names the request")
def _():
    done = as_agent("scale", "envs", "walk", "pools", "walk-1c256mi", "--replicas", "3")
    assert done.returncode == 1, done.stdout
    has(done.stderr, "approval")
    assert native("GET", "/envs/walk/sandboxpools/walk-1c256mi").json["template"]["spec"]["replicas"] == 2
    assert waiting()


@step("tutorials/cli: it cannot make a key, nor decide an approval, and reads no key's text")
def _():
    done = as_agent("create", "api-keys", "-f", "key.json")
    assert done.returncode == 1, done.stdout
    done = as_agent("approve", "approvals", waiting())
    assert done.returncode == 1, done.stdout
    listed = as_agent("--json", "api-keys").stdout
    assert "agbx_" not in listed and Agent.name in listed, listed


@step("tutorials/cli: once its person has approved, the same command goes through")
def _():
    done = shell("abx approve approvals " + waiting())
    assert done.returncode == 1 and "console" in done.stderr, done.stderr  # a key decides nothing, whoever's it is
    assert b"approved" in abx("approve", "approvals", waiting()).stdout  # the engine's owner does, over its socket
    done = as_agent("scale", "envs", "walk", "pools", "walk-1c256mi", "--replicas", "3")
    assert done.returncode == 0, done.stderr
    assert native("GET", "/envs/walk/sandboxpools/walk-1c256mi").json["template"]["spec"]["replicas"] == 3


@step("tutorials/cli: a deleted key stops working")
def _():
    abx("delete", "api-keys", Agent.name)
    wait_for("the key is refused", lambda: native("GET", "/auth/whoami", key=Agent.key).status == 401, 10)


@step("the walk's env is deleted, and its Pods go")
def _():
    abx("delete", "envs", "walk")
    wait_for("env walk is gone", lambda: native("GET", "/envs/walk").status == 404, 60)


finish()
