"""TAP on stdout, for the programs in here that run with an SDK's own packages and nothing else."""
import sys
import time
import traceback

count = failures = 0


def step(what):
    """Decorator: runs the function at once as one numbered test."""
    def run(function):
        global count, failures
        count += 1
        start = time.monotonic()
        try:
            function()
            print("ok %d - %s (%.0f ms)" % (count, what, (time.monotonic() - start) * 1000), flush=True)
        except BaseException as error:  # an SDK may raise anything; each is a failed step
            failures += 1
            print("not ok %d - %s: %s" % (count, what, str(error).replace("\n", " ")[:300]), flush=True)
            for line in traceback.format_exc(limit=6).splitlines():
                print("#   " + line, flush=True)
            if isinstance(error, KeyboardInterrupt):
                raise
    return run


def finish():
    print("1..%d" % count)
    sys.exit(1 if failures else 0)
