"""Programs that know the instance by a domain name alone: a name server that answers every name with the listener's
address, and programs run in a mount namespace whose resolv.conf names it.
"""
import os
import socket
import subprocess
import tempfile
import threading

from harness import note

NAMESERVER = "127.0.0.77"
E2B_KEY = os.environ["E2B_API_KEY"]


def serve_names(address):
    """Every A question is answered with `address`, as long as this process lives."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((NAMESERVER, 53))

    def run():
        while True:
            question, peer = server.recvfrom(1500)
            end = question.index(b"\0", 12) + 5
            is_a = question[end - 4:end - 2] == b"\0\x01"
            answer = question[:2] + b"\x81\x80\0\x01" + (b"\0\x01" if is_a else b"\0\0") + b"\0\0\0\0" + question[12:end]
            if is_a:
                answer += b"\xc0\x0c\0\x01\0\x01\0\0\0\x05\0\x04" + socket.inet_aton(address)
            server.sendto(answer, peer)
    threading.Thread(target=run, daemon=True).start()


def run_named(program, timeout=240, **variables):
    """Runs it with `variables` and no other E2B_ or AGENTBOX_ ones but the key; shows what failed of its TAP lines.
    Gives the ended process and how many steps passed."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("E2B_", "AGENTBOX_"))}
    env.update(variables, E2B_API_KEY=E2B_KEY, NO_PROXY="*", no_proxy="*")
    with tempfile.NamedTemporaryFile("w", prefix="agentbox-names-", delete=False) as resolv:
        resolv.write("nameserver %s\noptions timeout:2 attempts:2\n" % NAMESERVER)
    try:
        os.chmod(resolv.name, 0o644)
        done = subprocess.run(["unshare", "-m", "sh", "-c", "mount --bind %s /etc/resolv.conf && exec \"$@\"" % resolv.name,
                               "sh", *program], env=env, capture_output=True, timeout=timeout)
    finally:
        os.unlink(resolv.name)
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    for line in lines:
        if line.startswith(("not ok", "#   ")):
            note(line)
    return done, sum(line.startswith("ok ") for line in lines)
