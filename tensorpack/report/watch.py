"""Serves the page about a run to a browser on this machine, made again for each reading."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Tuple

from ._facts import result_of
from ._page import page_of
from ._read import read_run

__all__ = ["PageServer"]

_ADDRESS = "127.0.0.1"
_HOSTS = ("127.0.0.1", "localhost")
_AT_LEAST = 60  # seconds between two reloads once the run is over
_WAIT_SECONDS = 5.0  # for a browser that has connected and says nothing


class PageServer(ThreadingHTTPServer):
    """Answers GET of its one page, on loopback only; to be used in a `with` block.

    Args:
      directory: the log directory of a run.
      port: a TCP port; 0 for a free one.
      every: seconds after which the page in a browser loads itself again.

    Attributes:
      url: the address of the page.

    Raises:
      ValueError: there is no run in the directory.
      OSError: the port cannot be used.
    """

    daemon_threads = False  # they are joined when the server is closed

    def __init__(self, directory: str, port: int = 0, every: float = 5.0) -> None:
        self._directory, self._every = directory, every
        self.page()
        super().__init__((_ADDRESS, port), _Request)
        self.url = f"http://{_ADDRESS}:{self.server_port}/"

    def page(self) -> bytes:
        """Returns the page as it is now."""
        run = read_run(self._directory)
        runs_on = bool(run.sittings) and result_of(run.sittings[-1]) == "running"
        every = self._every if runs_on else max(self._every, _AT_LEAST)
        return page_of(run, None, every).encode("utf-8", "backslashreplace")

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing: a browser that leaves while it is answered is no error."""


class _Request(BaseHTTPRequestHandler):
    timeout = _WAIT_SECONDS
    server: PageServer

    def do_GET(self) -> None:
        host = str(self.headers.get("Host", "")).rpartition(":")[0]
        if host not in _HOSTS:  # a name that leads here is a page of somebody else
            self._answer(403, b"This page is for this machine.\n", "text/plain")
        elif self.path != "/":
            self._answer(404, b"There is one page here: /\n", "text/plain")
        else:
            self._answer(*self._page())

    def _page(self) -> Tuple[int, bytes, str]:
        try:
            return 200, self.server.page(), "text/html"
        except (OSError, ValueError) as error:
            return 503, f"{error}\n".encode("utf-8", "backslashreplace"), "text/plain"

    def _answer(self, code: int, content: bytes, kind: str) -> None:
        self.send_response(code)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args: Any) -> None:
        """Says nothing: one line for each reload is of no use."""
