# Stands between ours and an Ironic, and counts.
"""What is asked through it is passed on as it is, and noted with its answer."""

import contextlib
import http.client
import http.server
import json
import threading
import time
from collections import Counter

# Headers that are between two neighbours only.
NEAR = {"connection", "keep-alive", "transfer-encoding", "host"}


class Asked:
    """A request that was answered."""

    def __init__(self, method, path, body, status, begun):
        self.method, self.status, self.begun = method, status, begun
        self.machine = path.split("?")[0].removeprefix("/v1/nodes").strip("/").split("/")[0]
        self.is_list = method == "GET" and path.startswith("/v1/nodes?")
        told = json.loads(body) if body else None
        self.target = told.get("target") if isinstance(told, dict) else None
        ops = told if isinstance(told, list) else []
        self.reserves = any(it["op"] == "add" and it["path"] == "/instance_uuid" for it in ops)

    def is_done(self):
        """Whether it was acted upon."""
        return self.status < 300


class Counted(http.server.ThreadingHTTPServer):
    """A proxy before an Ironic."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, endpoint):
        super().__init__(("127.0.0.1", 0), Passing)
        self.port, self.lock = int(endpoint.rsplit(":", 1)[1]), threading.Lock()
        self.asked, self.under_way, self.most = [], 0, 0
        self.endpoint = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def stop(self):
        """Passes nothing on any more."""
        self.shutdown()
        self.server_close()

    def passed(self, method, path, headers, body):
        """The answer to a request, which is counted from its beginning to its end."""
        with self.lock:
            self.under_way += 1
            self.most = max(self.most, self.under_way)
        begun, status = time.monotonic(), 0
        near = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            near.request(method, path, body, headers)
            answer = near.getresponse()
            status, text = answer.status, answer.read()
            return status, answer.getheaders(), text
        finally:
            near.close()
            with self.lock:
                self.under_way -= 1
                self.asked.append(Asked(method, path, body, status, begun))

    def took(self):
        """How many seconds lie between the first request and the last one."""
        begun = [it.begun for it in self.asked]
        return max(begun) - min(begun)

    def lists(self):
        """When the lists of all machines began."""
        return sorted(it.begun for it in self.asked if it.is_list)

    def of_machines(self, which):
        """How many requests of a kind were acted upon, by machine."""
        return Counter(it.machine for it in self.asked if it.is_done() and which(it))


class Passing(http.server.BaseHTTPRequestHandler):
    """One connection of ours."""

    protocol_version = "HTTP/1.1"

    def passes(self):
        """Passes one request on, and its answer back."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        kept = {name: value for name, value in self.headers.items() if name.lower() not in NEAR}
        status, headers, text = self.server.passed(self.command, self.path, kept, body)
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in NEAR | {"content-length"}:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        # Who asked may wait no more.
        with contextlib.suppress(ConnectionError):
            self.wfile.write(text)

    do_GET = do_PUT = do_PATCH = do_POST = do_DELETE = passes
