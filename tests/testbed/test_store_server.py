"""The S3 server over HTTP, before and after it is killed."""

from __future__ import annotations

import contextlib
import http.client
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from waiting import HANG_S

_TOOL = Path(__file__).parent.parent.parent / "tools" / "run_testbed.py"
# Anybody's: the server asks who it is, and believes everything.
_SIGNED = {
    "Authorization": "AWS4-HMAC-SHA256 Credential=testbed/20300101/us-east-1/s3/aws4_request, Signature=0"
}
_PART = b"a" * (5 << 20)


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Server:
    port: int

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=HANG_S)
        with contextlib.closing(connection):
            connection.request(method, path, body, {**_SIGNED, **named})
            answer = connection.getresponse()
            answered = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, answered, answer.read())


@contextlib.contextmanager
def served(journal: Path) -> Iterator[Server]:
    """Run a server while the context lasts, and kill it then."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, str(_TOOL), "serve-store", "127.0.0.1", str(port), str(journal)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + HANG_S
            while not _listens(port):
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.05)
            yield Server(port)
        finally:
            process.kill()


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError):
        socket.create_connection(("127.0.0.1", port)).close()
        return True
    return False


@dataclass(frozen=True)
class Story:
    """What was answered before the kill, and the server after it."""

    kept: Answer
    contest: list[int]
    upload: str
    part: str
    journal_bytes: tuple[int, int]
    again: Server


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    journal = tmp_path_factory.mktemp("store") / "journal"
    with served(journal) as server:
        assert server.ask("PUT", "/bucket").status == 200
        server.ask("PUT", "/bucket/kept", b"contents", x_amz_meta_colour="red")
        server.ask("PUT", "/bucket/deleted", b"contents")
        assert server.ask("DELETE", "/bucket/deleted").status == 204
        with ThreadPoolExecutor(8) as pool:
            contest = list(pool.map(lambda number: _create(server, "/bucket/contested", number), range(16)))
        begun = server.ask("POST", "/bucket/large?uploads").body.decode()
        upload = begun.partition("<UploadId>")[2].partition("</UploadId>")[0]
        part = server.ask("PUT", f"/bucket/large?partNumber=1&uploadId={upload}", _PART).headers["etag"]
        kept = server.ask("GET", "/bucket/kept")
    whole = journal.stat().st_size
    # What it was writing when it was killed.
    torn = journal.read_bytes()[:60]
    with journal.open("ab") as file:
        file.write(torn)
    with served(journal) as again:
        yield Story(kept, contest, upload, part, (whole, journal.stat().st_size), again)


def _create(server: Server, path: str, number: int) -> int:
    return server.ask("PUT", path, b"%d" % number, If_None_Match="*").status


def test_objects_are_there_again_with_their_times_and_tags(story: Story) -> None:
    again = story.again.ask("GET", "/bucket/kept")
    assert (again.body, again.status) == (b"contents", 200)
    for header in ("etag", "last-modified", "x-amz-meta-colour"):
        assert again.headers[header] == story.kept.headers[header]


def test_what_was_deleted_stays_deleted(story: Story) -> None:
    assert story.again.ask("GET", "/bucket/deleted").status == 404


def test_of_many_who_put_an_absent_key_one_wins_and_stays_the_winner(story: Story) -> None:
    assert sorted(story.contest) == [200] + [412] * 15
    assert story.again.ask("GET", "/bucket/contested").body == b"%d" % story.contest.index(200)
    assert _create(story.again, "/bucket/contested", 99) == 412


def test_an_upload_in_parts_goes_on(story: Story) -> None:
    second = story.again.ask("PUT", f"/bucket/large?partNumber=2&uploadId={story.upload}", b"b").headers[
        "etag"
    ]
    parts = "".join(
        f"<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>"
        for number, tag in enumerate([story.part, second], start=1)
    )
    body = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()
    assert story.again.ask("POST", f"/bucket/large?uploadId={story.upload}", body).status == 200
    assert story.again.ask("GET", "/bucket/large").body == _PART + b"b"


def test_a_request_that_was_not_written_whole_is_forgotten(story: Story) -> None:
    whole, after_restart = story.journal_bytes
    assert after_restart == whole
