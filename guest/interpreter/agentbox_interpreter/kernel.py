"""One running kernel: started, asked, interrupted, ended.

Its output is read as it comes and kept until it is asked for. When more than HELD_MAX of it waits, the kernel is stopped
(SIGSTOP) until its reader has caught up: so memory is bounded and nothing is lost.
"""
import asyncio
import itertools
import os
import signal
import subprocess
import sys

import zmq
import zmq.asyncio
from jupyter_client.manager import AsyncKernelManager

from . import events

HELD_MAX = 8 << 20
HELD_LOW = 1 << 20
KEEPALIVE_SECONDS = 5
START_SECONDS = 60

numbers = itertools.count(1)


class StartFailed(Exception):
    """The kernel did not come up; the text says why."""


class Died(Exception):
    """The kernel is gone; the text says how it went."""


def zmq_context():
    """Sockets that never drop a message: what waits is bounded by us, not by a count."""
    context = zmq.asyncio.Context()
    context.setsockopt(zmq.RCVHWM, 0)
    context.setsockopt(zmq.LINGER, 0)
    return context


def describe_exit(status):
    if status is None:
        return "it ended"
    if status < 0:
        return "it was killed by signal %d" % -status
    return "it ended with exit code %d" % status


class Kernel:
    """Made by start(); stop() gives everything back, however far the start came."""

    def __init__(self, context, spec, cwd, env):
        # An abstract socket name: nothing lies in the file system, and no port of the sandbox is taken.
        self.manager = AsyncKernelManager(context=context, transport="ipc",
                                          ip="@agentbox-kernel-%d-%d" % (os.getpid(), next(numbers)))
        self.manager._kernel_spec = spec  # there is no public way to give a spec that is not in a folder
        self.cwd, self.env = cwd, env
        self.client = None
        self.tasks = []
        self.request = None  # id of the request whose output is wanted
        self.arrived = asyncio.Queue()
        self.held = 0
        self.is_stopped = False
        self.exit = None  # a future of the exit status

    # ---- start and end ----

    async def start(self):
        try:
            await self.manager.start_kernel(cwd=self.cwd, env=self.env, stdin=subprocess.DEVNULL,
                                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        except OSError as error:
            raise StartFailed("the kernel cannot be started: %s" % error)
        self.exit = asyncio.ensure_future(self._wait_exit())
        self.client = self.manager.client()
        self.client.start_channels(hb=False, stdin=False)
        try:
            await asyncio.wait_for(self._become_ready(), START_SECONDS)
        except asyncio.TimeoutError:
            raise StartFailed("the kernel did not answer within %d s" % START_SECONDS)
        self.tasks = [asyncio.ensure_future(self._read(self.client.iopub_channel, "iopub")),
                      asyncio.ensure_future(self._read(self.client.shell_channel, "shell"))]

    async def _become_ready(self):
        """Asked until the answer came and its output too: only then no output is missed."""
        seen = set()
        while seen != {"shell", "iopub"}:
            self.client.kernel_info()
            for name, channel in (("shell", self.client.shell_channel), ("iopub", self.client.iopub_channel)):
                if await channel.socket.poll(100):
                    await channel.socket.recv_multipart()
                    seen.add(name)
            if self.exit.done():
                raise StartFailed("the kernel did not start: %s" % describe_exit(self.exit.result()))
        # What is still on its way belongs to a question of ours; _read drops it.

    async def _wait_exit(self):
        process = self.manager.provisioner.process
        try:
            fd = os.pidfd_open(process.pid)
        except (AttributeError, OSError):
            fd = -1
        while process.poll() is None:
            if fd < 0:
                await asyncio.sleep(0.2)
                continue
            ended = asyncio.Event()
            asyncio.get_running_loop().add_reader(fd, ended.set)
            try:
                await ended.wait()
            finally:
                asyncio.get_running_loop().remove_reader(fd)
        if fd >= 0:
            os.close(fd)
        return process.returncode

    @property
    def has_died(self):
        return self.exit is None or self.exit.done()

    def exit_text(self):
        return describe_exit(self.exit.result() if self.exit and self.exit.done() else None)

    async def stop(self):
        self._signal(signal.SIGKILL)
        if self.exit:
            await self.exit
        for task in self.tasks:
            task.cancel()
        if self.client:
            self.client.stop_channels()
        self.manager.cleanup_connection_file()

    # ---- signals ----

    def _signal(self, number):
        process = getattr(self.manager.provisioner, "process", None)
        if process is None or process.poll() is not None:
            return
        try:
            os.killpg(process.pid, number)  # it leads a group of its own
        except OSError:
            pass

    def interrupt(self):
        """As ^C: the cell ends with KeyboardInterrupt. A kernel that asks for a message instead gets one."""
        self._let_go()
        if self.manager.kernel_spec.interrupt_mode == "message":
            self.client.session.send(self.client.control_channel.socket, "interrupt_request", content={})
        else:
            self._signal(signal.SIGINT)

    def _hold(self, count):
        self.held += count
        if self.held > HELD_MAX and not self.is_stopped:
            self.is_stopped = True
            self._signal(signal.SIGSTOP)

    def _let_go(self):
        if self.is_stopped:
            self.is_stopped = False
            self._signal(signal.SIGCONT)

    # ---- messages ----

    async def _read(self, channel, name):
        session = self.client.session
        while True:
            frames = await channel.socket.recv_multipart()
            try:
                message = session.deserialize(session.feed_identities(frames)[1])
            except (ValueError, TypeError) as error:  # not one of this kernel's
                print("agentbox-interpreter: a message that is no kernel's: %s" % error, file=sys.stderr)
                continue
            if self.request is None or message["parent_header"].get("msg_id") != self.request:
                continue
            size = sum(len(frame) for frame in frames)
            self._hold(size)
            self.arrived.put_nowait((name, message, size))

    async def _next(self):
        """The next message, or None when there was none for a while; Died after the last one of a dead kernel."""
        get = asyncio.ensure_future(self.arrived.get())
        try:
            await asyncio.wait([get, self.exit], timeout=KEEPALIVE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if not get.done() and self.exit.done():
                await asyncio.wait([get], timeout=0.1)  # what it wrote last may still be on its way
            if get.done():
                name, message, size = get.result()
                self.held -= size
                if self.held <= HELD_LOW:
                    self._let_go()
                return name, message
        finally:
            get.cancel()
        if self.exit.done():
            raise Died(self.exit_text())
        return None

    async def execute(self, code, metadata, emit):
        """Runs code; emit(event) gets what comes of it. Died when the kernel ends first. One at a time."""
        session = self.client.session
        while not self.arrived.empty():  # of a cell that was interrupted
            self.held -= self.arrived.get_nowait()[2]
        message = session.msg("execute_request", metadata=metadata, content={
            "code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False,
            "stop_on_error": False})
        self.request = message["header"]["msg_id"]
        waits_for = {"reply", "idle"}
        has_failed = False
        # Not by the channel's send(): going past the waiting reader of this socket, it can swallow what would wake it.
        await self.client.shell_channel.socket.send_multipart(session.serialize(message))
        while waits_for:
            got = await self._next()
            if got is None:
                await emit(events.KEEPALIVE)
                continue
            name, message = got
            kind, content = message["header"]["msg_type"], message["content"]
            if name == "shell":
                waits_for.discard("reply")
                if content.get("status") != "ok" and not has_failed:
                    has_failed = True
                    await emit(events.error(content.get("ename", "ExecutionAborted"),
                                            content.get("evalue", "Execution was aborted"),
                                            "\n".join(content.get("traceback", []))))
            elif kind == "status" and content["execution_state"] == "idle":
                waits_for.discard("idle")
            elif kind != "error" or not has_failed:
                has_failed |= kind == "error"
                for event in events.of_message(message):
                    await emit(event)
        self.request = None

    async def settle(self):
        """After a reader left in the middle: interrupts what runs and waits until the kernel is free, or gone."""
        if self.request is None:
            return
        self.interrupt()
        try:
            while True:
                got = await self._next()
                if got and got[1]["header"]["msg_type"] == "status" and got[1]["content"]["execution_state"] == "idle":
                    break
        except Died:
            pass
        self.request = None
