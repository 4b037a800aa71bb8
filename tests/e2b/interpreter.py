"""What every release of PyPI e2b-code-interpreter does against the platform. TAP."""
import base64
import threading
import time

import e2b_code_interpreter as ci

from tap import finish, step


class Held:
    sandbox = None


def run(code, **more):
    return Held.sandbox.run_code(code, **more)


@step("create: the default template")
def _():
    make = getattr(ci.Sandbox, "create", ci.Sandbox)  # 1.x has the constructor alone
    Held.sandbox = make(timeout=300, envs={"OF_SANDBOX": "everywhere"})


@step("state is kept from cell to cell, cells are counted")
def _():
    run("x = 41")
    done = run("x + 1")
    assert (done.text, done.error, done.execution_count) == ("42", None, 2), done


@step("stdout and stderr come in their order, while the cell runs")
def _():
    seen, times = [], []

    def note(message):
        seen.append((message.line, message.error))
        times.append(time.monotonic())

    done = run("import sys, time\nprint('one', flush=True)\ntime.sleep(1)\nprint('two', file=sys.stderr, flush=True)\n"
               "time.sleep(1)\nprint('three')", on_stdout=note, on_stderr=note)
    assert seen == [("one\n", False), ("two\n", True), ("three\n", False)], seen
    assert times[2] > times[1] > times[0] and times[2] - times[0] > 1, times
    assert (done.logs.stdout, done.logs.stderr) == (["one\n", "three\n"], ["two\n"])


@step("an error has name, value and traceback")
def _():
    done = run("def f():\n    return 1 / 0\nf()")
    assert (done.error.name, done.error.value) == ("ZeroDivisionError", "division by zero")
    assert "return 1 / 0" in done.error.traceback


@step("several results of several kinds")
def _():
    seen = []
    done = run("from IPython.display import *\ndisplay(HTML('<b>b</b>'))\ndisplay(Markdown('*m*'))\n{'a': [1, 2]}",
               on_result=seen.append)
    assert [list(each.formats()) for each in done.results] == [["text", "html"], ["text", "markdown"], ["text", "json"]]
    assert len(seen) == 3 and done.results[0].html == "<b>b</b>" and done.results[2].json == {"a": [1, 2]}
    assert [each.is_main_result for each in done.results] == [False, False, True]


@step("a plot is a PNG of its size, and its data")
def _():
    plot, = run("import matplotlib.pyplot as plt\nplt.figure(figsize=(4, 3), dpi=100)\nplt.bar(['a', 'b'], [1, 2])\n"
                "plt.show()").results
    png = base64.b64decode(plot.png)
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    assert 250 < int.from_bytes(png[16:20], "big") < 500 and 200 < int.from_bytes(png[20:24], "big") < 400
    if hasattr(plot, "chart"):  # not in the oldest
        assert [(bar.label, bar.value) for bar in plot.chart.elements] == [("a", 1), ("b", 2)]


@step("envs: the cell's alone, over the sandbox's")
def _():
    code = "import os; os.environ.get('OF_SANDBOX'), os.environ.get('OF_CELL')"
    assert run(code, envs={"OF_CELL": "here"}).text == "('everywhere', 'here')"
    assert run(code, envs={"OF_SANDBOX": "hidden"}).text == "('hidden', None)"
    assert run(code).text == "('everywhere', None)"


@step("contexts are apart, and have a folder")
def _():
    Held.sandbox.files.write("/home/user/sub/data.txt", "data")
    context = Held.sandbox.create_code_context(cwd="/home/user/sub")
    assert (context.language, context.cwd) == ("python", "/home/user/sub")
    assert run("x", context=context).error.name == "NameError"
    assert run("open('data.txt').read()", context=context).text == "data"
    assert run("import os; os.getcwd()").text == "/home/user"
    if hasattr(Held.sandbox, "restart_code_context"):
        run("y = 1", context=context)
        Held.sandbox.restart_code_context(context)
        assert run("y", context=context).error.name == "NameError"
        assert context.id in [each.id for each in Held.sandbox.list_code_contexts()]
        Held.sandbox.remove_code_context(context)
        assert context.id not in [each.id for each in Held.sandbox.list_code_contexts()]


@step("a cell that takes too long is interrupted, the next one runs")
def _():
    try:
        run("import time\nfor i in range(600): time.sleep(1)", timeout=2)
    except ci.TimeoutException if hasattr(ci, "TimeoutException") else Exception as error:
        assert "imeout" in type(error).__name__ + str(error), error
    else:
        raise AssertionError("no timeout")
    assert run("i > 0 and x").text == "41"


@step("two clients at once: each in its context")
def _():
    context = Held.sandbox.create_code_context()
    got = {}

    def other():
        got["other"] = run("import time; time.sleep(2); 'other'", context=context).text

    thread = threading.Thread(target=other)
    thread.start()
    got["own"] = run("'own'").text
    thread.join()
    assert got == {"own": "own", "other": "other"}, got


@step("a kernel that dies is told of, and the next cell has a fresh one")
def _():
    done = run("import os; os._exit(7)")
    assert done.error.name == "ContextRestarting" and "exit code 7" in done.error.value, done.error
    assert run("x").error.name == "NameError"


@step("a language that is not here is refused by name")
def _():
    try:
        run("1", language="cobol")
    except Exception as error:
        assert "no kernel for cobol" in str(error), error
    else:
        raise AssertionError("it ran")


@step("kill")
def _():
    assert Held.sandbox.kill() is not False


finish()
