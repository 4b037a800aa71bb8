"""What only envd knows: whether a token is the sandbox's, and the variables its commands get."""
import json
import os

from tornado import httpclient

ENVD = "http://127.0.0.1:%s/envs" % os.environ.get("AGENTBOX_ENVD_PORT", "49983")


class Denied(Exception):
    """The sandbox has a token, and this is not it."""


class Unreachable(Exception):
    """envd did not answer as it should."""


async def variables(token):
    """The sandbox's variables, for whoever holds its token (or when it has none)."""
    headers = {"X-Access-Token": token} if token else {}
    try:
        answer = await httpclient.AsyncHTTPClient().fetch(ENVD, headers=headers, raise_error=False, request_timeout=10)
    except OSError as error:
        raise Unreachable("envd cannot be asked: %s" % error)
    if answer.code == 401:
        raise Denied()
    if answer.code != 200:
        raise Unreachable("envd answered %d" % answer.code)
    return {str(name): str(value) for name, value in json.loads(answer.body).items()}
