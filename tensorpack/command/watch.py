"""`tensorpack watch DIR`: the page about a run, renewed in a browser as the run proceeds."""

import argparse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tensorpack.utils._words import number

from ._common import FINE, CommandError

HELP = "show the page about a run in a browser, renewed as the run proceeds"
_ADDRESS, _HOSTS = "127.0.0.1", ("127.0.0.1", "localhost")
_RUNNING, _OVER = 5, 60  # seconds between two reloads


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Serves the page of `tensorpack report` on this machine alone (127.0.0.1), and prints its "
        "address. The page in the browser loads itself again. Ctrl-C ends it."
    )
    add = parser.add_argument
    add("directory", metavar="DIR", help="the log directory of a training, such as train_log/run")
    port = number("from 0 to 65535", lambda value: value in range(65536))
    add("--port", type=port, default=0, metavar="N", help="TCP port (default: a free one)")


def run(args: Any) -> int:
    try:
        server = PageServer(args.directory, int(args.port))
    except (OSError, ValueError) as error:
        advice = ". Leave --port out." if isinstance(error, OSError) else ""
        raise CommandError(f"{error}{advice}") from error
    with server:
        url = f"http://{_ADDRESS}:{server.server_port}/"
        args.write(f"{url} shows {args.directory}. Ctrl-C ends this.")
        server.serve_forever()
    return FINE


class PageServer(ThreadingHTTPServer):
    """Answers GET of the page about a run, on loopback only; to be used in a `with` block.

    Raises:
      ValueError: there is no run in the directory.
      OSError: the port cannot be used.
    """

    daemon_threads = False  # they are joined when the server is closed

    def __init__(self, directory: str, port: int = 0) -> None:
        self._directory = directory
        self.page()
        super().__init__((_ADDRESS, port), _Request)

    def page(self) -> str:
        from tensorpack.report._facts import result_of
        from tensorpack.report._page import page_of
        from tensorpack.report._read import read_run

        run = read_run(self._directory)
        runs_on = bool(run.attempts) and result_of(run.attempts[-1], run.directory) == "running"
        return page_of(run, None, _RUNNING if runs_on else _OVER)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing: a browser that leaves while it is answered is no error."""


class _Request(BaseHTTPRequestHandler):
    timeout = 5.0  # for a browser that has connected and says nothing
    server: PageServer

    def do_GET(self) -> None:
        code, text, kind = 404, "There is one page here: /\n", "plain"
        if str(self.headers.get("Host", "")).partition(":")[0] not in _HOSTS:
            code, text = 403, "Not by this name.\n"  # by which a foreign page could read it
        elif self.path == "/":
            try:
                code, text, kind = 200, self.server.page(), "html"
            except (OSError, ValueError) as error:
                code, text = 503, f"{error}\n"
        content = text.encode("utf-8", "backslashreplace")
        self.send_response(code)
        self.send_header("Content-Type", f"text/{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args: Any) -> None:
        """Says nothing: a line for each reload is of no use."""
