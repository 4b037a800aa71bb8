"""HTTP on port 49999: /health, /execute, /contexts (contract/e2b-control-api.md, section 10).

Refusals are plain text, which is what the SDKs show. /execute needs the sandbox's access token where it has one; the other
calls come without it from every SDK, and are guarded as any port of a sandbox is.
"""
import asyncio
import json
import signal
import socket
import sys

# Looking for the image's kernels imports ipykernel, and that a debugger nobody uses here.
sys.modules.setdefault("debugpy", None)

from tornado import httpserver, iostream, web

from . import access, events
from .contexts import BadRequest, Contexts, NotFound, TooMany, Unsupported
from .kernel import StartFailed
from .languages import NoSuchLanguage, normalized

BODY_MAX = 16 << 20
IDLE_SECONDS = 640

# The SDKs show the text of a 404; of other refusals the JavaScript one shows the number alone.
STATUS = {BadRequest: 400, access.Denied: 401, NotFound: 404, NoSuchLanguage: 404, TooMany: 429, StartFailed: 500,
          Unsupported: 501, access.Unreachable: 503}


def text_of(error):
    if isinstance(error, access.Denied):
        return "unauthorized: the X-Access-Token of this sandbox is needed"
    return str(error)


def checked(body, fields):
    """The fields of a JSON object, each of its type or None; anything else is refused by name."""
    try:
        given = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        raise BadRequest("the request body is not JSON")
    if not isinstance(given, dict):
        raise BadRequest("the request body is not a JSON object")
    for name, value in given.items():
        if name not in fields:
            raise BadRequest("%s: unknown field" % name[:64])
        if value is not None and not isinstance(value, fields[name]):
            raise BadRequest("%s: expected %s" % (name, "an object" if fields[name] is dict else "a string"))
    return {name: given.get(name) for name in fields}


def check_env_vars(env_vars):
    for name, value in (env_vars or {}).items():
        if not name or "=" in name or "\0" in name or not isinstance(value, str) or "\0" in value:
            raise BadRequest("env_vars: '%s' must be a name with a string" % name[:64])


@web.stream_request_body
class Handler(web.RequestHandler):
    """Reads the body up to BODY_MAX; turns what is raised into an answer."""

    @property
    def contexts(self):
        return self.application.contexts

    def set_default_headers(self):
        self.set_header("Access-Control-Allow-Origin", "*")
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.clear_header("Server")

    def prepare(self):
        self.body = bytearray()
        if int(self.request.headers.get("Content-Length") or 0) > BODY_MAX:
            self.refuse(413, "the request body is larger than %d bytes" % BODY_MAX)

    def data_received(self, chunk):
        if len(self.body) + len(chunk) <= BODY_MAX + 1:
            self.body += chunk

    def refuse(self, status, text):
        self.set_status(status)
        self.finish(text)

    def options(self, *_):
        self.set_header("Access-Control-Allow-Methods", "GET, POST, DELETE")
        self.set_header("Access-Control-Allow-Headers", self.request.headers.get("Access-Control-Request-Headers", "*"))
        self.set_status(204)
        self.finish()

    def checked(self, **fields):
        if len(self.body) > BODY_MAX:
            raise web.HTTPError(413, reason="Request Entity Too Large")
        return checked(bytes(self.body), fields)

    def token(self):
        return self.request.headers.get("X-Access-Token")

    async def variables(self):
        """The sandbox's; without its token a kernel starts without them and has them from its first cell on."""
        try:
            return await access.variables(self.token())
        except access.Denied:
            return {}

    def answer(self, value):
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps(value))

    def log_exception(self, *_):
        pass

    def write_error(self, status, exc_info=None, **_):
        error = exc_info[1] if exc_info else None
        for kind, code in STATUS.items():
            if isinstance(error, kind):
                self.refuse(code, text_of(error))
                return
        if status >= 500:
            print("agentbox-interpreter: %s %s: %r" % (self.request.method, self.request.path, error), file=sys.stderr)
        self.finish("%d %s" % (status, self._reason))


class Health(Handler):
    def get(self):
        self.answer("OK")


class Missing(Handler):
    def prepare(self):
        self.refuse(404, "%s: there is /execute, /contexts and /health" % self.request.path[:256])


class Execute(Handler):
    task = None

    async def post(self):
        asked = self.checked(code=str, context_id=str, language=str, env_vars=dict)
        if asked["code"] is None:
            raise BadRequest("code: missing")
        if asked["context_id"] and asked["language"]:
            raise BadRequest("Only one of context_id or language can be provided")
        check_env_vars(asked["env_vars"])
        variables = await access.variables(self.token())
        if asked["context_id"]:
            context = self.contexts.find(asked["context_id"])
        else:
            context = self.contexts.default(normalized(asked["language"]))
        self.contexts.check_env_vars(context, asked["env_vars"])
        self.task = asyncio.ensure_future(self.stream(context, asked, variables))
        try:
            await self.task
        except asyncio.CancelledError:
            pass

    async def stream(self, context, asked, variables):
        """Each event as a line, at once. A reader that is behind is waited for."""
        self.set_header("Content-Type", "application/x-ndjson")
        try:
            await context.execute(asked["code"], variables, asked["env_vars"], self.emit)
            self.finish(json.dumps(events.END) + "\n")
        except iostream.StreamClosedError:
            pass

    async def emit(self, event):
        self.write(json.dumps(event) + "\n")
        await self.flush()

    def on_connection_close(self):
        if self.task:
            self.task.cancel()


class ContextTable(Handler):
    def get(self):
        self.answer([context.describe() for context in self.contexts.by_id.values()])

    async def post(self):
        asked = self.checked(language=str, cwd=str)
        context = await self.contexts.create(normalized(asked["language"]), asked["cwd"] or None, await self.variables())
        self.answer(context.describe())


class ContextOne(Handler):
    async def delete(self, context_id):
        await self.contexts.remove(self.contexts.find(context_id))
        self.answer(None)


class ContextRestart(Handler):
    async def post(self, context_id):
        await self.contexts.find(context_id).restart(await self.variables())
        self.answer(None)


def application():
    app = web.Application([
        (r"/health", Health),
        (r"/execute", Execute),
        (r"/contexts", ContextTable),
        (r"/contexts/([^/]+)", ContextOne),
        (r"/contexts/([^/]+)/restart", ContextRestart),
        (r".*", Missing),
    ], log_function=lambda handler: None)
    app.contexts = Contexts()
    return app


async def run(is_warm):
    listener = socket.socket(fileno=0)
    listener.setblocking(False)
    app = application()
    server = httpserver.HTTPServer(app, idle_connection_timeout=IDLE_SECONDS, max_header_size=65536)
    server.add_socket(listener)
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    if is_warm:
        await warm(app.contexts)
    await ended.wait()
    server.stop()
    await app.contexts.close()


async def warm(contexts):
    """The default kernel, ahead of its first cell. When it cannot start, that cell will say so."""
    context = contexts.default("python")
    try:
        async with context.lock:
            await context.start({})
    except StartFailed as error:
        print("agentbox-interpreter: %s" % error, file=sys.stderr)


def serve(is_warm):
    asyncio.run(run(is_warm))
