"""The start of a kernel's process. What is set here is what upstream's image sets, so that cells look the same."""
import ctypes
import os
import signal
import sys

import zmq
from traitlets.config import Config

from . import cell_env

# Nobody debugs a cell; without it a kernel starts sooner and is smaller.
sys.modules["debugpy"] = None
from ipykernel.ipkernel import IPythonKernel  # noqa: E402
from ipykernel.kernelapp import IPKernelApp  # noqa: E402
del sys.modules["debugpy"]

PR_SET_PDEATHSIG = 1


def follow_server():
    """No kernel outlives its server; when memory runs out, a kernel goes first."""
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write("500")
    except (OSError, AttributeError):
        pass


class PythonKernel(IPythonKernel):
    async def execute_request(self, stream, ident, parent):
        with cell_env.of_cell(parent.get("metadata")):
            await super().execute_request(stream, ident, parent)


class App(IPKernelApp):
    kernel_class = PythonKernel

    def init_iopub(self, context):
        context.setsockopt(zmq.SNDHWM, 0)  # output is never dropped; the server bounds it
        super().init_iopub(context)


def hide_ourselves():
    """The user's imports see neither this program nor its own variables."""
    sys.path[:] = [path for path in sys.path if not path.endswith(".pyz")]
    if "" not in sys.path:
        sys.path.insert(0, "")
    for name in [name for name in os.environ if name.startswith("AGENTBOX_")]:
        del os.environ[name]


def run(language, argv):
    follow_server()
    hide_ourselves()
    config = Config()
    config.InteractiveShell.colors = "NoColor"
    config.PlainTextFormatter.max_seq_length = 0
    config.HistoryManager.enabled = False
    app = App.instance(config=config)
    app.initialize(argv)
    if language == "python":
        from . import formats
        formats.install(app.shell)
    app.start()
