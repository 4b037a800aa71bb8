"""Show 3: the sample templates and the sample env apply unchanged (cluster id filled in) and serve sandboxes."""
import os

from harness import TOP, Sandbox, abx, abx_json, e2b, finish, native, step, wait_for, wait_warm

SAMPLES = os.path.join(TOP, "deploy", "samples")
CLUSTER = native("GET", "/clusters").json["clusters"][0]["id"]
TEMPLATES = {"e2b-envd": "e2b-basic_sandboxtemplate.yaml", "e2b-envd-docker": "e2b-docker_sandboxtemplate.yaml",
             "e2b-envd-kata": "e2b-kata_sandboxtemplate.yaml"}


def sample(name):
    with open(os.path.join(SAMPLES, name), "rb") as file:
        return file.read().replace(b"YOUR_CLUSTER_ID", CLUSTER.encode())


def env_like_sample(name, template):
    """The sample env with another name and template, as its own comments tell to do."""
    text = sample("e2b_sandboxenv.yaml").decode()
    return text.replace("name: e2b-envd", "name: " + template).replace("name: e2b-1c2gi", "name: %s-1c2gi" % name) \
        .replace("  name: e2b\n", "  name: %s\n" % name).encode()


KATA = TEMPLATES.pop("e2b-envd-kata")
for template, file in TEMPLATES.items():
    @step("%s applies unchanged" % file)
    def _():
        done = abx("create", "templates", "-f", os.path.join(SAMPLES, file))
        assert ("created %s from" % template).encode() in done.stdout, done.stdout
        assert native("GET", "/sandbox-templates/" + template).status == 200
        again = abx("create", "templates", "-f", os.path.join(SAMPLES, file), check=False)
        assert again.returncode == 1 and template.encode() in again.stderr, again.stderr


@step("the sample env applies with the cluster id alone filled in, and is warm")
def _():
    abx("create", "envs", "-f", "-", stdin=sample("e2b_sandboxenv.yaml"))
    wait_warm("e2b", 60)
    assert native("GET", "/envs/e2b/sandboxpools").json["items"][0]["spec"]["replicas"] == 2


@step("abx shows it as the examples' pages do: in the list, and alone, with its pool and idle Pods")
def _():
    assert b"e2b-envd" in abx("envs").stdout
    assert b"e2b-envd" in abx("envs", "e2b").stdout
    assert b"e2b-1c2gi" in abx("envs", "e2b", "pools").stdout
    assert abx_json("envs", "e2b")["status"]["idleReplicas"] > 0


@step("it serves sandboxes: the template's own image, size and account")
def _():
    sandbox = Sandbox("e2b")
    assert sandbox.sh("id -un") == "user\n"
    assert sandbox.sh("sudo id -un", user="user") == "root\n"
    assert sandbox.sh("python3 -c 'print(2 ** 10)'") == "1024\n"
    info = e2b("GET", "/sandboxes/" + sandbox.id).json
    assert info["cpuCount"] == 1 and info["memoryMB"] == 2048, info
    assert sandbox.kill() == 204


@step("by pool, by cluster and env, and by cluster and pool; an unknown cluster and scaling group are refused by name")
def _():
    for template in ("%s::e2b" % CLUSTER, "%s::e2b-1c2gi" % CLUSTER):
        assert Sandbox(template).kill() == 204
    answer = e2b("POST", "/sandboxes", {"templateID": "elsewhere::e2b", "timeout": 60})
    assert answer.status >= 400 and "elsewhere" in answer.text, str(answer)
    answer = e2b("POST", "/sandboxes", {"templateID": "e2b", "timeout": 60,
                                        "metadata": {"agentbox.scitix.ai/scaling-group": "64c1ti"}})
    assert answer.status == 503 and "64c1ti" in answer.text, str(answer)


@step("the privileged template starts its container privileged; the basic one does not")
def _():
    abx("create", "envs", "-f", "-", stdin=env_like_sample("e2b-docker", "e2b-envd-docker"))
    wait_warm("e2b-docker", 60)
    sandbox = Sandbox("e2b-docker//host:")
    full = int(sandbox.sh("cat /proc/self/status", user="root").split("CapEff:")[1].split()[0], 16)
    assert full & (1 << 21), "no CAP_SYS_ADMIN in a privileged container: %x" % full
    assert sandbox.sh("grep -c . /proc/self/uid_map; cat /proc/self/uid_map", user="root").split()[1:3] == ["0", "0"]
    assert sandbox.kill() == 204
    plain = Sandbox("e2b")
    capabilities = int(plain.sh("cat /proc/self/status", user="root").split("CapEff:")[1].split()[0], 16)
    assert not capabilities & (1 << 21), "CAP_SYS_ADMIN without privileged: %x" % capabilities
    assert plain.sh("cat /proc/self/uid_map", user="root").split()[1] != "0"
    assert plain.kill() == 204


@step("the kata template is refused with a message that names its class, and nothing is made")
def _():
    made = abx("create", "templates", "-f", os.path.join(SAMPLES, KATA), check=False)
    assert made.returncode == 1 and b"kata-fc" in made.stderr, made.stderr
    assert native("GET", "/sandbox-templates/e2b-envd-kata").status == 404


@step("envs can be deleted, and their Pods go; a template in use cannot")
def _():
    done = abx("delete", "templates", "e2b-envd", check=False)
    assert done.returncode == 1 and b"e2b" in done.stderr, (done.stdout, done.stderr)
    for env in ("e2b", "e2b-docker"):
        abx("delete", "envs", env)
        wait_for("env %s is gone" % env, lambda: native("GET", "/envs/" + env).status == 404, 60)
    for template in TEMPLATES:
        abx("delete", "templates", template)
        assert native("GET", "/sandbox-templates/" + template).status == 404


finish()
