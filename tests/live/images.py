"""Show 4: images of every kind, by //IMAGE and by metadata; the errors of those that cannot run.

Runs as root: it puts OCI layouts into the instance's folder of images, and a registry on loopback.
"""
import os
import shutil
import subprocess
import tempfile

import oci
from harness import STATE_DIR, Sandbox, Skip, e2b, finish, free_port, native, running_ids, step, wait_for, wait_warm

IMAGES = os.path.join(STATE_DIR, "images")


def layout(name, layers, **more):
    folder = os.path.join(IMAGES, name)
    shutil.rmtree(folder, ignore_errors=True)
    oci.write_layout(folder, layers, **more)
    for path, _, _ in os.walk(IMAGES):
        os.chmod(path, 0o755)
    return "oci:" + folder


def refused(template, *words, **more):
    answer = e2b("POST", "/sandboxes", {"templateID": template, "timeout": 60, "secure": False, **more}, timeout=120)
    assert 400 <= answer.status < 600, str(answer)
    for word in words:
        assert word in answer.text, "the error does not say %r: %s" % (word, answer)
    return answer


before = sorted(running_ids())


@step("a busybox-only image serves: shell, files, account")
def _():
    image = layout("busybox", [list(oci.busybox_files())])
    sandbox = Sandbox("base//" + image)
    assert sandbox.sh("echo hello") == "hello\n"
    assert sandbox.sh("id -un") == "user\n"
    assert sandbox.sh("ls /usr/bin/python3 2>/dev/null || echo none") == "none\n"
    assert sandbox.request("POST", "/files?path=/tmp/x&username=user", b"some bytes",
                           headers={"Content-Type": "application/octet-stream"}).status == 200
    assert sandbox.request("GET", "/files?path=/tmp/x&username=user").body == b"some bytes"
    assert sandbox.kill() == 204


@step("by metadata too, which wins over //IMAGE")
def _():
    sandbox = Sandbox("base//oci:/no/such/layout", metadata={"agentbox.scitix.ai/image": "oci:%s/busybox" % IMAGES})
    assert sandbox.sh("ls /bin/busybox") == "/bin/busybox\n"
    assert sandbox.kill() == 204


@step("the next sandbox of the Pod inherits nothing of the image or its files")
def _():
    wait_warm("base")
    sandbox = Sandbox("base")
    assert sandbox.sh("ls /tmp/x 2>/dev/null || echo none") == "none\n"
    assert sandbox.sh("python3 -c 'print(1)'") == "1\n"
    assert sandbox.kill() == 204


@step("the image's own environment reaches login shells")
def _():
    image = layout("with-env", [list(oci.busybox_files())], config={"Env": ["PATH=/bin", "FLAVOUR=vanilla and more"]})
    sandbox = Sandbox("base//" + image)
    assert sandbox.sh("sh -l -c 'echo $FLAVOUR'") == "vanilla and more\n"
    assert sandbox.kill() == 204


@step("an image of fifty layers with whiteouts looks as its last layer says")
def _():
    image = layout("fifty", list(oci.fifty_layers()))
    sandbox = Sandbox("base//" + image)
    assert sandbox.sh("cat /data/counter") == "49"
    assert sandbox.sh("ls /gone") == "c\n"
    here = sandbox.sh("ls /data").split()
    want = {str(number) for number in range(1, 50)} | {"counter"}
    want -= {str(number - 1) for number in range(7, 50, 7)}
    want |= {"6"}
    assert set(here) == want, sorted(set(here) ^ want)
    assert sandbox.sh("cat /data/6") == "back"
    assert sandbox.kill() == 204


@step("an image without /bin/sh: an error that says so and names the image")
def _():
    with open(oci.BUSYBOX, "rb") as file:
        image = layout("no-shell", [[("app", file.read())]])
    refused("base//" + image, "/bin/sh", "no-shell")


@step("an image that does not exist: an error that names it")
def _():
    refused("base//oci:%s/no-such-image" % IMAGES, "no-such-image")
    refused("base//127.0.0.1:9/no/such-image:v1", "such-image")


@step("a layout that is broken: an error that names it")
def _():
    image = layout("broken", [list(oci.busybox_files()) + [("its-own", os.urandom(16))]])
    blobs = os.path.join(IMAGES, "broken", "blobs", "sha256")
    for name in os.listdir(blobs):
        path = os.path.join(blobs, name)
        if os.path.getsize(path) > 100000:
            with open(path, "r+b") as file:
                file.seek(5000)
                file.write(b"\0" * 5000)
    refused("base//" + image, "broken")


@step("an image name that leads out of the folder of images: refused")
def _():
    for name in ("oci:../podd", "oci:%s/../podd" % IMAGES, "oci:/etc", "oci-archive:/etc/passwd", "host:/etc"):
        refused("base//" + name)


@step("the Debian root of deploy/images/build-debian: Python, git, curl, sudo and procps for user")
def _():
    built = os.environ.get("ABX_TEST_DEBIAN")
    if not built:
        raise Skip(os.environ.get("ABX_TEST_NO_DEBIAN") or "ABX_TEST_DEBIAN names no image of deploy/images/build-debian")
    shutil.copytree(built, os.path.join(IMAGES, "debian"))
    sandbox = Sandbox("base//oci:%s/debian" % IMAGES)
    assert sandbox.sh("id -un; pwd; stat -c %U .").split() == ["user", "/home/user", "user"]
    assert sandbox.sh(". /etc/os-release; echo $ID $VERSION_CODENAME") == "debian bookworm\n"
    assert sandbox.sh("python3 -c 'import json, sqlite3, ssl, venv; print(6 * 7)'; python --version").startswith("42\nPython 3.")
    sandbox.sh("python3 -m venv /tmp/venv && /tmp/venv/bin/pip --version")
    sandbox.sh("git init -q /tmp/repo && cd /tmp/repo && echo x >x && git add x && "
               "git -c user.name=u -c user.email=u@example.test commit -qm first && git log --oneline | grep first")
    assert sandbox.sh("sudo -n id -u; sudo -n cat /etc/shadow | grep -c ^root") == "0\n1\n"
    assert sandbox.start("/bin/cat", ["/etc/shadow"])[0] != 0, "for root alone"
    assert " ps" in sandbox.sh("ps -eo user,args") and sandbox.sh("pgrep -c .").strip().isdigit()
    sandbox.sh("python3 -m http.server 8123 >/dev/null 2>&1 & curl -sS --retry 20 --retry-connrefused --retry-delay 1 "
               "http://127.0.0.1:8123/ | grep -i listing; kill $!")
    assert sandbox.kill() == 204


@step("a registry on loopback: pulled, run, and an unknown tag's error names it")
def _():
    registry = shutil.which("docker-registry")
    if not registry or not shutil.which("skopeo"):
        raise Skip("docker-registry and skopeo are needed")
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        config = os.path.join(folder, "config.yml")
        with open(config, "w", encoding="ascii") as file:
            file.write("version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: %s/data}}\n"
                       "http: {addr: '127.0.0.1:%d'}\n" % (folder, port))
        server = subprocess.Popen([registry, "serve", config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for("the registry answers", lambda: subprocess.run(
                ["skopeo", "copy", "-q", "--dest-tls-verify=false", "oci:%s/busybox:latest" % IMAGES,
                 "docker://127.0.0.1:%d/team/busybox:v1" % port], capture_output=True).returncode == 0, 20, 0.3)
            sandbox = Sandbox("base//127.0.0.1:%d/team/busybox:v1" % port)
            assert sandbox.sh("echo pulled") == "pulled\n"
            assert sandbox.kill() == 204
            refused("base//127.0.0.1:%d/team/busybox:no-such-tag" % port, "no-such-tag")
        finally:
            server.terminate()
            server.wait(10)


@step("after all of that the pool is whole, and no sandbox is left")
def _():
    wait_warm("base")
    assert sorted(running_ids()) == before
    assert native("GET", "/envs/base").status == 200


finish()
