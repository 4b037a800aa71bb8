"""The native API against its own document: schemathesis asks every operation what the document allows and more.

Against a daemon of this test's own (fake engine) that has one of everything, in a fixed order (--seed) and a bounded
time. No 5xx, no status, content or shape that the document does not declare. Run by the Python of build/live-venv.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

from harness import finish, note, step, wait_for
from own import Daemon

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS = 60  # for the fuzzing; what goes before it takes some more
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
# Methods a server may not know are 501 by RFC 9110, section 15.6.2; those it knows are 405.
CONFIG = """
[phases.coverage]
unexpected-methods = ["DELETE", "GET", "PATCH", "POST", "PUT"]
"""

daemon = Daemon()
SHAPE = {"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"cpu": "1", "memory": "2Gi"}}


def made(answer, status):
    assert answer.status == status, str(answer)
    return answer.json


def prepare():
    """One of everything, by the names that hooks.py puts in paths now and then."""
    crd = {"apiVersion": "agents.navix.sh/v1alpha1", "kind": "SandboxTemplate", "metadata": {"name": "t"},
           "spec": {"idleImage": "idle:1", "runtimes": [{"name": "side", "port": 9, "logDir": "/var/log/side.log"}],
                    "template": {"spec": {"containers": [{"name": "main", "image": "work:1"}]}}}}
    made(daemon.ask("POST", "/v1/admin/sandbox-templates", {"crdJson": json.dumps(crd)}, daemon.admin), 201)
    made(daemon.ask("POST", "/v1/envs", {"name": "e", "templateRef": {"name": "t"}}, daemon.admin), 201)
    made(daemon.ask("POST", "/v1/envs/e/sandboxpools", {"inlineResources": SHAPE, "replicas": 3}, daemon.admin), 202)
    wait_for("idle Pods", lambda: daemon.ask("GET", "/v1/envs/e", key=daemon.admin).json["env"]["status"].get("idleReplicas"))
    sandbox = made(daemon.ask("POST", "/v1/sandboxes", {"poolName": "e", "metadata": {"a": "b"}}, daemon.admin), 201)
    ended = made(daemon.ask("POST", "/v1/sandboxes", {"poolName": "e"}, daemon.admin), 201)["sandbox"]["sandboxId"]
    made(daemon.ask("DELETE", "/v1/sandboxes/" + ended, key=daemon.admin), 202)
    agent = made(daemon.ask("POST", "/v1/api-keys", {"mode": "agent"}, unix=True), 201)
    held = daemon.ask("DELETE", "/v1/envs/e", key=agent["apiKey"])
    assert held.status == 428, str(held)
    return {"name": ["e", "t", agent["keyId"]], "poolName": ["e-1c2gi"], "groupName": ["1c2gi"], "team": ["admin"],
            "sandboxId": [sandbox["sandbox"]["sandboxId"], ended], "approvalId": [held.json["detail"]["approvalId"]]}


def run(key):
    with tempfile.TemporaryDirectory() as folder:
        config = os.path.join(folder, "schemathesis.toml")
        with open(config, "w", encoding="ascii") as stream:
            stream.write(CONFIG)
        environment = dict(os.environ, SCHEMATHESIS_HOOKS="native_schema_hooks", PYTHONPATH=HERE, KNOWN=json.dumps(known))
        return subprocess.run(
            [sys.executable, "-m", "schemathesis.cli", "--config-file", config, "run", daemon.base + "/openapi.json",
             "-H", "AGENTBOX-API-KEY: " + key, "--seed", "20261201", "--max-examples", "12", "--max-time", str(SECONDS), "--workers", "1",
             "--phases", "examples,coverage,fuzzing", "--checks", CHECKS, "--request-timeout", "20", "--no-color",
             # What runs inside a Pod has nothing to run in here: tests/live/native-api.py has real ones.
             "--exclude-operation-id", "ExecSandboxCommand"],
            cwd=folder, env=environment, capture_output=True, text=True, timeout=3 * SECONDS, check=False)


known = prepare()


@step("no operation answers what the document does not declare, nor fails")
def _():
    done = run(daemon.admin)
    summary = done.stdout[done.stdout.find("= SUMMARY"):]
    for line in re.findall(r"\d+ generated.*|Tested: \d+", summary):
        note(line.strip())
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-1000:]
    assert "Tested: 52" in summary, summary


@step("the daemon is as it was")
def _():
    assert daemon.ask("GET", "/ping").status == 200
    daemon.end()


finish()
