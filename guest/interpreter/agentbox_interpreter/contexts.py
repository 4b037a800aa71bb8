"""Contexts: each a language, a folder and a kernel with its own state. Kernels start when they are first needed.

The cells of a context run one after the other. A kernel that dies is told of once, in the cell it died in or, when it died in
between, in the next one, which then does not run: what it builds on is gone.
"""
import asyncio
import os
import uuid

from . import events
from .kernel import KEEPALIVE_SECONDS, Died, Kernel, zmq_context
from .languages import Languages, OWN

CONTEXTS_MAX = 32
WAITING_MAX = 64
HOME = "/home/user"


class NotFound(Exception):
    pass


class TooMany(Exception):
    pass


class BadRequest(Exception):
    pass


class Unsupported(Exception):
    pass


def restarted(why=""):
    return events.error("ContextRestarting", "Context was restarted" + (": the kernel's state is lost, %s" % why if why else ""))


class Context:
    def __init__(self, table, language, cwd):
        self.table, self.language, self.cwd = table, language, cwd
        self.id = str(uuid.uuid4())
        self.kernel = None
        self.lock = asyncio.Lock()
        self.waiting = 0
        self.is_removed = False
        self.variables = {}  # the sandbox's, as the kernel has them

    def describe(self):
        return {"id": self.id, "language": self.language, "cwd": self.cwd}

    async def start(self, variables):
        """A fresh kernel; call with the lock held."""
        spec = self.table.languages.spec(self.language)
        kernel = Kernel(self.table.zmq, spec, self.cwd if os.path.isdir(self.cwd) else "/", {**os.environ, **variables})
        self.kernel, self.variables = kernel, dict(variables)
        try:
            await kernel.start()
        except BaseException:
            await self.drop(kernel)
            raise

    async def drop(self, kernel):
        if self.kernel is kernel:
            self.kernel = None
        await asyncio.shield(kernel.stop())

    async def restart(self, variables):
        """What runs now ends with an error; what waits runs in the fresh kernel."""
        if self.kernel:
            await self.drop(self.kernel)
        async with self.lock:
            if not self.kernel and not self.is_removed:
                await self.start(variables)

    async def remove(self):
        self.is_removed = True
        if self.kernel:
            await self.drop(self.kernel)

    def cell_metadata(self, variables, env_vars):
        """What our kernels read beside the code (cell_env.py)."""
        asked = {"env_vars": env_vars or {}}
        if variables != self.variables:
            asked["variables"] = {"old": list(self.variables), "new": variables}
            self.variables = dict(variables)
        return {"agentbox": asked}

    async def execute(self, code, variables, env_vars, emit):
        """Runs a cell; emit(event) gets what comes of it. When cancelled, the cell is interrupted."""
        if self.waiting >= WAITING_MAX:
            raise TooMany("%d executions wait in context %s already" % (self.waiting, self.id))
        self.waiting += 1
        try:
            await self._turn(emit)
        finally:
            self.waiting -= 1
        try:
            await self._cell(code, variables, env_vars, emit)
        finally:
            if self.kernel and self.kernel.request is not None and not self.kernel.has_died:
                self.table.keep(self._settle(self.kernel))  # it is nobody's turn until the kernel is free
            else:
                self.lock.release()

    async def _turn(self, emit):
        turn = asyncio.ensure_future(self.lock.acquire())
        try:
            while not (await asyncio.wait([turn], timeout=KEEPALIVE_SECONDS))[0]:
                await emit(events.KEEPALIVE)
        except BaseException:
            turn.cancel()
            if turn.done() and not turn.cancelled():
                self.lock.release()
            raise

    async def _cell(self, code, variables, env_vars, emit):
        if self.is_removed:
            await emit(events.error("ContextRemoved", "Context was removed"))
            return
        if self.kernel and self.kernel.has_died:
            why = self.kernel.exit_text()
            await self.drop(self.kernel)
            await emit(restarted(why))
            return
        if not self.kernel:
            await self.start(variables)
        kernel = self.kernel
        try:
            await kernel.execute(code, self.cell_metadata(variables, env_vars), emit)
        except Died as error:
            is_restart = self.kernel is not kernel
            if not is_restart:
                await self.drop(kernel)
            await emit(restarted("" if is_restart else str(error)))

    async def _settle(self, kernel):
        try:
            await kernel.settle()
        finally:
            self.lock.release()


class Contexts:
    def __init__(self):
        self.zmq = zmq_context()
        self.languages = Languages()
        self.by_id = {}
        self.defaults = {}  # language to context
        self.tasks = set()
        self.default("python")

    def default(self, language):
        """The context of code that names none; its kernel starts with the first cell."""
        context = self.defaults.get(language)
        if context is None or context.is_removed:
            self.languages.spec(language)
            context = self.defaults[language] = self._add(Context(self, language, HOME))
        return context

    def _add(self, context):
        if len(self.by_id) >= CONTEXTS_MAX:
            raise TooMany("there are %d contexts already; remove one first" % len(self.by_id))
        self.by_id[context.id] = context
        return context

    def keep(self, coroutine):
        """Runs on its own, to its end."""
        task = asyncio.ensure_future(coroutine)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def find(self, context_id):
        if context_id not in self.by_id:
            raise NotFound("Context %s not found" % context_id[:64])
        return self.by_id[context_id]

    async def create(self, language, cwd, variables):
        self.languages.spec(language)
        if cwd is None:
            cwd = HOME
        elif not os.path.isabs(cwd):
            raise BadRequest("cwd: %s is not an absolute path" % cwd[:256])
        elif not os.path.isdir(cwd):
            raise BadRequest("cwd: there is no folder %s" % cwd[:256])
        context = self._add(Context(self, language, cwd))
        try:
            async with context.lock:
                await context.start(variables)
        except BaseException:
            del self.by_id[context.id]
            raise
        return context

    async def remove(self, context):
        self.by_id.pop(context.id, None)
        await context.remove()

    def check_env_vars(self, context, env_vars):
        if env_vars and context.language not in OWN:
            raise Unsupported("env_vars is not supported for %s, only for %s" % (context.language, ", ".join(OWN)))

    async def close(self):
        for context in list(self.by_id.values()):
            await context.remove()
