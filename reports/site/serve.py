"""Shows the report to a browser on this machine."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from hil.base.errors import ConfigError, RigError
from hil.reports.site.build import REPORT


def serve_site(out: Path, port: int, *, say: Callable[[str], None]) -> None:
    """Serve OUT/report on loopback until interrupted; port 0 takes a free one.

    Raises:
        ConfigError: there is no report.
        RigError: the port is taken.
    """
    report = out / REPORT
    if not (report / "index.html").is_file():
        raise ConfigError(f"{report}: there is no report.", next_step="build it: hil report build")
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), partial(_Handler, directory=str(report)))
    except OSError as error:
        raise RigError(
            f"could not serve {report} on port {port}: {error.strerror}.",
            next_step="leave --port out, which takes a free one",
        ) from error
    with server:
        say(f"http://127.0.0.1:{server.server_port}/ shows {report}; Ctrl-C ends it.")
        server.serve_forever()


class _Handler(SimpleHTTPRequestHandler):
    """Serves files as they are now, and shows the text files instead of offering to save them."""

    extensions_map = {  # noqa: RUF012 - SimpleHTTPRequestHandler's
        **SimpleHTTPRequestHandler.extensions_map,
        **dict.fromkeys((".md", ".jsonl"), "text/plain; charset=utf-8"),
    }

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        """Say nothing of each request."""
