"""Releases of the E2B SDKs from the oldest that works to the newest, each unmodified, by E2B_DOMAIN and the CA alone:
create, run, background, files, watch, PTY, kill; of the code interpreter SDKs: cells, contexts, plots, timeouts.
`tests/e2b/run --install-only` installs them.
"""
import glob
import json
import os

from harness import STATE_DIR, TOP, finish, note, sample_env, step, wait_warm
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
INTERPRETER = os.path.join(TOP, "tests", "e2b", "interpreter")


def node():
    own = glob.glob(os.path.join(SDK, "node", "node_modules", "node-linux-*", "bin", "node"))
    return own[0] if own else "node"


def check(what, program, steps=7, **variables):
    @step(what)
    def _():
        done, passed = run_named(program, timeout=180, E2B_DOMAIN=DOMAIN, **variables)
        assert done.returncode == 0 and passed == steps, "%d of %d steps, exit %d\n%s" % (
            passed, steps, done.returncode, done.stderr.decode("utf-8", "replace")[-1500:])


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

sample_env("code-interpreter-v1")
wait_warm("code-interpreter-v1")
for path in sorted(glob.glob(os.path.join(SDK, "cipy-*"))):
    check("PyPI e2b-code-interpreter, %s" % os.path.basename(path),
          [os.path.join(path, "bin", "python"), "-W", "ignore", INTERPRETER + ".py"], steps=13, SSL_CERT_FILE=instance["ca"])
for path in sorted(glob.glob(os.path.join(SDK, "cijs-*"))):
    check("npm @e2b/code-interpreter, %s" % os.path.basename(path), [node(), INTERPRETER + ".mjs"], steps=12,
          NODE_EXTRA_CA_CERTS=instance["ca"], E2B_NODE_MODULES=path)
finish()
