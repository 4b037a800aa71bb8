"""A console's front door, as far as abx uses one: a list of clusters, and each cluster's API behind its id.

A console takes `Authorization: Bearer KEY` and asks the cluster with AGENTBOX-API-KEY. This one has the cluster of the
running instance, and under other names whatever it is told, so that `--cluster` has something to choose from.
"""
import http.server
import json
import threading

from harness import request

PREFIX = "/agentbox"


def start(clusters):
    """`clusters`: id to the base address of its API. The console's own address; it ends with the process."""
    class Door(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self, status, body, kind="application/json"):
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def pass_on(self):
            path = self.path.split("?")[0]
            if path == PREFIX + "/api/clusters":
                listed = {"clusters": [{"id": each, "name": each, "local": False} for each in clusters]}
                return self.answer(200, json.dumps(listed).encode())
            words = path[len(PREFIX):].split("/")  # "", "api", "clusters", ID, "v1", ...
            key = self.headers.get("Authorization", "")
            if not path.startswith(PREFIX + "/api/clusters/") or len(words) < 6 or words[3] not in clusters:
                return self.answer(404, json.dumps({"error": "no cluster at %s" % path}).encode())
            if not key.startswith("Bearer "):
                return self.answer(401, b'{"error":"a console takes Authorization: Bearer"}')
            rest = self.path[len("/".join([PREFIX] + words[1:4])):]
            length = int(self.headers.get("Content-Length", "0"))
            answer = request(self.command, clusters[words[3]] + rest, self.rfile.read(length) if length else None,
                             headers={"Content-Type": self.headers.get("Content-Type", "application/json")},
                             key=key[len("Bearer "):])
            return self.answer(answer.status, answer.body)

        do_GET = do_POST = do_PUT = do_DELETE = pass_on

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Door)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return "http://127.0.0.1:%d%s" % (server.server_port, PREFIX)
