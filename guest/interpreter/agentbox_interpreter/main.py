"""Which of the two programs this is: the server on the socket that is descriptor 0, or one of its kernels."""
import sys


def main():
    words = sys.argv[1:]
    if words[:1] == ["kernel"]:
        from . import in_kernel
        in_kernel.run(words[1], words[2:])
        return
    try:
        from . import server
    except ImportError as error:
        from . import missing
        missing.serve(error)
        return
    server.serve(is_warm="--warm" in words)
