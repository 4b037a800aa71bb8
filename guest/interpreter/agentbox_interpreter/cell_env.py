"""Environment variables of one cell: set before it, as they were after it."""
import contextlib
import os


def update(asked):
    """The sandbox's own variables changed since the kernel has them."""
    for name in asked["old"]:
        if name not in asked["new"]:
            os.environ.pop(name, None)
    os.environ.update(asked["new"])


@contextlib.contextmanager
def of_cell(metadata):
    asked = (metadata or {}).get("agentbox", {})
    if "variables" in asked:
        update(asked["variables"])
    wanted = asked.get("env_vars", {})
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
