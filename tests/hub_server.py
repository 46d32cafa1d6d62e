"""A stand-in for the Hugging Face Hub on loopback, so that what reads from the Hub is tested for real, offline.

    ROOT/models/ORG/NAME/...      ROOT/datasets/ORG/NAME/...

Every repository has one branch, `main`, whose commit is a hash of its files. Downloads only. What the clients
insist on: `ETag` and `X-Repo-Commit` on every file, and `X-Error-Code` to tell what is missing.
"""

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

API_ROUTE = re.compile(
    r"/api/(?P<kind>models|datasets)/(?P<repo>[\w.-]+/[\w.-]+?)"
    r"(?:/(?P<what>revision|tree|paths-info)/(?P<revision>[^/]+)(?:/(?P<path>.+))?)?"
)
FILE_ROUTE = re.compile(
    r"/(?P<kind>datasets/)?(?P<repo>[\w.-]+/[\w.-]+)/resolve/(?P<revision>[^/]+)/(?P<path>.+)"
)


@dataclass(frozen=True)
class Repository:
    """The files below one folder, addressed as the Hub addresses them."""

    folder: Path

    def paths(self) -> list[str]:
        return sorted(p.relative_to(self.folder).as_posix() for p in self.folder.rglob("*") if p.is_file())

    def commit(self) -> str:
        """40 hex digits that change with the content of the repository."""
        listing = [f"{path} {self.etag(path)}" for path in self.paths()]
        return hashlib.sha1("\n".join(listing).encode()).hexdigest()

    def etag(self, path: str) -> str:
        return hashlib.sha1((self.folder / path).read_bytes()).hexdigest()

    def entry(self, path: str) -> dict[str, Any]:
        target = self.folder / path
        if target.is_dir():
            return {
                "type": "directory",
                "path": path,
                "size": 0,
                "oid": hashlib.sha1(path.encode()).hexdigest(),
            }
        return {"type": "file", "path": path, "size": target.stat().st_size, "oid": self.etag(path)}

    def tree(self, below: str, recursive: bool) -> list[dict[str, Any]]:
        start = self.folder / below
        found = start.rglob("*") if recursive else start.glob("*")
        return [self.entry(p.relative_to(self.folder).as_posix()) for p in sorted(found)]


class HubHandler(BaseHTTPRequestHandler):
    """Answers the handful of routes that `datasets`, `transformers` and `huggingface_hub` use for downloads."""

    protocol_version = "HTTP/1.1"
    root: Path
    requests: list[str]

    def do_GET(self) -> None:
        self.requests.append(f"{self.command} {self.path}")
        url = urlsplit(self.path)
        path = unquote(url.path)
        if route := API_ROUTE.fullmatch(path):
            query = {key: values[-1] for key, values in parse_qs(url.query).items()}
            self.answer_api(
                route["kind"], route["repo"], route["what"], route["revision"], route["path"], query
            )
        elif route := FILE_ROUTE.fullmatch(path):
            self.answer_file(
                "datasets" if route["kind"] else "models", route["repo"], route["revision"], route["path"]
            )
        else:
            self.fail("NotFound", f"no route {path}")

    do_HEAD = do_GET

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.requests.append(f"POST {self.path}")
        route = API_ROUTE.fullmatch(unquote(urlsplit(self.path).path))
        if route and route["what"] == "paths-info" and (repo := self.find(route["kind"], route["repo"])):
            asked = json.loads(body)["paths"]
            self.send_json([repo.entry(path) for path in asked if (repo.folder / path).exists()])
        else:
            self.fail("NotFound", f"no route {self.path}")

    def find(self, kind: str, repo: str, revision: str | None = None) -> Repository | None:
        """The repository, or None after an answer that says what is missing."""
        found = Repository(self.root / kind / repo)
        if not found.folder.is_dir():
            self.fail("RepoNotFound", f"no repository {repo}")
            return None
        if revision not in (None, "main", found.commit()):
            self.fail("RevisionNotFound", f"no revision {revision}")
            return None
        return found

    def answer_api(
        self,
        kind: str,
        name: str,
        what: str | None,
        revision: str | None,
        path: str | None,
        query: dict[str, str],
    ) -> None:
        if (repo := self.find(kind, name, revision)) is None:
            return
        if what == "tree":
            if (repo.folder / (path or "")).is_dir():
                self.send_json(repo.tree(path or "", query.get("recursive", "").lower() == "true"))
            else:
                self.fail("EntryNotFound", f"no folder {path}")
            return
        siblings = [{"rfilename": path} for path in repo.paths()]
        self.send_json(
            {"id": name, "sha": repo.commit(), "private": False, "gated": False, "siblings": siblings}
        )

    def answer_file(self, kind: str, name: str, revision: str, path: str) -> None:
        if (repo := self.find(kind, name, revision)) is None:
            return
        commit = {"X-Repo-Commit": repo.commit()}
        if path not in repo.paths():
            self.fail("EntryNotFound", f"no file {path}", commit)
            return
        content = (repo.folder / path).read_bytes()
        headers = {"ETag": f'"{repo.etag(path)}"', "Accept-Ranges": "bytes", **commit}
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if asked:
            first, last = int(asked[1]), min(int(asked[2] or len(content)), len(content) - 1)
            headers["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
            content = content[first : last + 1]
        self.send(206 if asked else 200, content, "application/octet-stream", headers)

    def send_json(self, value: object) -> None:
        self.send(200, json.dumps(value).encode(), "application/json", {})

    def fail(self, code: str, message: str, headers: dict[str, str] | None = None) -> None:
        told = {"X-Error-Code": code, "X-Error-Message": message, **(headers or {})}
        self.send(404, json.dumps({"error": message}).encode(), "application/json", told)

    def send(self, status: int, body: bytes, kind: str, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Silent: the requests are kept in `requests` for the tests that ask."""


@contextmanager
def serve(root: Path) -> Iterator[tuple[str, list[str]]]:
    """Serve the repositories below `root` on a free loopback port until the block ends.

    Yields:
        The address, and a list to which every request is added as `METHOD PATH`.
    """
    requests: list[str] = []
    handler = type("BoundHubHandler", (HubHandler,), {"root": root, "requests": requests})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", requests
        finally:
            server.shutdown()
            thread.join()
