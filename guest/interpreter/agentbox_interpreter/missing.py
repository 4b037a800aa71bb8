"""Answers in the server's place when a package is missing: what, and what to do. Standard library only."""
import http.server
import socket


def text_of(error):
    return ("the code interpreter needs the Python package ipykernel and what it depends on in the sandbox's image (Debian: "
            "python3-ipykernel); this image's python3 says: %s" % error)


class Handler(http.server.BaseHTTPRequestHandler):
    timeout = 30
    text = ""

    def answer(self):
        body = self.text.encode()
        self.send_response(404)  # the one refusal whose text every SDK shows
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        self.close_connection = True

    do_GET = do_POST = do_DELETE = do_PUT = do_PATCH = do_HEAD = do_OPTIONS = answer

    def log_message(self, format, *args):  # the name is the base class's
        pass


def serve(error):
    listener = socket.socket(fileno=0)
    Handler.text = text_of(error)
    server = http.server.ThreadingHTTPServer(listener.getsockname(), Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = listener
    server.serve_forever()
