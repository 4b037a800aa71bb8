"""Releases of the E2B SDKs from the oldest that works to the newest, each unmodified, by E2B_DOMAIN and the CA alone:
create, run, background, files, watch, PTY, kill. `tests/e2b/run --install-only` installs them.
"""
import glob
import json
import os

from harness import STATE_DIR, TOP, finish, note, step
from names import run_named, serve_names

with open(os.path.join(STATE_DIR, "agentboxd.json"), encoding="utf-8") as file:
    instance = json.load(file)
if not instance.get("tlsListen") or not instance.get("ca"):
    print("ok 1 - # SKIP the instance has no TLS listener of its own CA")
    print("1..1")
    raise SystemExit(0)

address, _, port = instance["tlsListen"][0].rpartition(":")
serve_names(address)
DOMAIN = "%s:%s" % (instance["domain"], port)
SDK = os.path.join(TOP, "build", "sdk")
SCRIPT = os.path.join(TOP, "tests", "e2b", "release")


def node():
    own = glob.glob(os.path.join(SDK, "node", "node_modules", "node-linux-*", "bin", "node"))
    return own[0] if own else "node"


def check(what, program, **variables):
    @step(what)
    def _():
        done, passed = run_named(program, timeout=90, E2B_DOMAIN=DOMAIN, **variables)
        assert done.returncode == 0 and passed == 7, "%d of 7 steps, exit %d\n%s" % (
            passed, done.returncode, done.stderr.decode("utf-8", "replace")[-1500:])


def version_key(path):
    return [int(part) for part in os.path.basename(path).split("-", 1)[1].split(".")]


pythons = sorted(glob.glob(os.path.join(SDK, "py-*")), key=version_key)
modules = sorted(glob.glob(os.path.join(SDK, "js-*")), key=version_key)
note("%d releases of PyPI e2b, %d of npm e2b, beside the newest" % (len(pythons), len(modules)))
for path in [*pythons, os.path.join(SDK, "plain")]:
    check("PyPI e2b, %s" % os.path.basename(path), [os.path.join(path, "bin", "python"), "-W", "ignore", SCRIPT + ".py"],
          SSL_CERT_FILE=instance["ca"])
for path in [*modules, os.path.join(SDK, "node")]:
    check("npm e2b, %s" % os.path.basename(path), [node(), SCRIPT + ".mjs"], NODE_EXTRA_CA_CERTS=instance["ca"],
          E2B_NODE_MODULES=path)
finish()
