"""An object store by HTTP: puts that fail after they have happened, cut and slow answers, races."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
from werkzeug.wrappers import Request, Response

from ps2stream.errors import MissingError, StateError
from ps2stream.store import object_store
from ps2stream.store.object_store import ObjectStore
from ps2stream.store.urls import store_at
from s3_server import BUCKET, Fault, Forward, S3Server

ERROR = Response("<Error><Code>InternalError</Code></Error>", 500)


def failing_once(what: str, answer: Callable[[Request, Forward], Response]) -> Fault:
    """Let the first request of a kind be answered by a fault."""
    left = [1]

    def fault(request: Request, forward: Forward) -> Response:
        if request.method == what and left:
            left.pop()
            return answer(request, forward)
        return forward()

    return fault


def lost(request: Request, forward: Forward) -> Response:
    """Do it, and say that it failed."""
    forward()
    return ERROR


def not_done(request: Request, forward: Forward) -> Response:
    return ERROR


def cut(request: Request, forward: Forward) -> Response:
    """Do it, and close the connection without an answer."""
    forward()
    request.environ["werkzeug.socket"].close()
    return ERROR


def in_conflict(request: Request, forward: Forward) -> Response:
    """Say what S3 says to one of two conditional puts that come at once, of which neither need win."""
    return Response("<Error><Code>ConditionalRequestConflict</Code></Error>", 409)


@pytest.mark.parametrize("fault", [lost, not_done, cut, in_conflict])
def test_a_put_if_absent_that_fails_on_the_way_has_still_one_winner_who_knows_it(
    s3: S3Server, fault: Fault
) -> None:
    store = s3.store()
    with s3.failing(failing_once("PUT", fault)), s3.counting() as requests:
        assert store.put_if_absent("a", b"one")
    assert sum(method == "PUT" for method, _ in requests) > 1, "the fault was met"
    assert not store.put_if_absent("a", b"one"), "the same content from another call does not win"
    assert store.get("a").to_pybytes() == b"one"
    assert store.list() == ["a"]


@pytest.mark.parametrize("fault", [lost, not_done, cut])
def test_a_put_and_a_writer_go_on_after_a_fault(s3: S3Server, fault: Fault) -> None:
    store = s3.store()
    with s3.failing(failing_once("PUT", fault)):
        store.put("a", b"one")
    with s3.failing(failing_once("PUT", fault)), store.writer("b") as file:
        file.write(b"two")
    with s3.failing(failing_once("GET", fault)):
        assert store.get("a").to_pybytes() == b"one"
    with s3.failing(failing_once("GET", fault)):
        assert store.list() == ["a", "b"]
    with s3.failing(failing_once("DELETE", fault)):
        store.delete("a")
    assert store.list() == ["b"]


def test_one_who_lost_is_told_so_even_if_the_answer_was_lost(s3: S3Server) -> None:
    store = s3.store()
    store.put_if_absent("a", b"other")
    with s3.failing(failing_once("PUT", lost)):
        assert not store.put_if_absent("a", b"mine")
    store.put("b", b"without a token")
    with s3.failing(failing_once("PUT", lost)):
        assert not store.put_if_absent("b", b"mine")


def test_what_nobody_can_know_is_an_error_and_the_next_look_tells(s3: S3Server) -> None:
    store = s3.store(patience_s=0.3)
    done = threading.Event()

    def gone_after_the_put(request: Request, forward: Forward) -> Response:
        if request.method == "PUT" and not done.is_set():
            forward()
            done.set()
        return ERROR

    with s3.failing(gone_after_the_put), pytest.raises(StateError, match=r"cannot write s3://.*/a: "):
        store.put_if_absent("a", b"one")
    assert store.get("a").to_pybytes() == b"one"


def test_a_store_that_fails_for_longer_than_its_patience_is_an_error_for_every_call(s3: S3Server) -> None:
    store = s3.store(patience_s=0.2)
    store.put("a", b"one")
    with s3.failing(not_done):
        for call, message in (
            (lambda: store.put("a", b""), "cannot write s3://.*/a: "),
            (lambda: store.put_if_absent("b", b""), "cannot write s3://.*/b: "),
            (lambda: store.get("a"), "cannot read s3://.*/a: "),
            (lambda: store.list("log"), "cannot list s3://.*/log: "),
            (lambda: store.delete("a"), "cannot delete s3://.*/a: "),
        ):
            with pytest.raises(StateError, match=message) as raised:
                call()
            assert not isinstance(raised.value, MissingError)
            assert "\n" not in str(raised.value)
        with pytest.raises(StateError, match="cannot write"), store.writer("a") as file:
            file.write(b"two")
    assert store.get("a").to_pybytes() == b"one"


def test_a_slow_list_is_waited_for(s3: S3Server) -> None:
    store = s3.store()
    store.put("a", b"one")

    def slow(request: Request, forward: Forward) -> Response:
        time.sleep(0.5)
        return forward()

    with s3.failing(failing_once("GET", slow)):
        assert store.list() == ["a"]


def test_a_bucket_that_is_not_there_is_an_error(s3: S3Server) -> None:
    store = ObjectStore("s3://no-such-bucket/a", patience_s=1)
    for call in (lambda: store.put("a", b""), lambda: store.put_if_absent("a", b""), store.list):
        with pytest.raises(StateError, match=r"cannot (write|list) s3://no-such-bucket"):
            call()


def test_a_large_blob_goes_up_in_parts_and_a_part_that_fails_is_sent_again(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_store, "_PART_BYTES", 5 << 20)
    store = s3.store()
    store.put("a", b"old")
    pieces = [bytes([n]) * (1 << 20) for n in range(12)]
    for method in ("PUT", "POST"):  # a part; the beginning of the upload
        with s3.failing(failing_once(method, not_done)), s3.counting() as requests, store.writer("a") as file:
            file.writelines(pieces)
        assert [each for each, _ in requests].count("PUT") >= 3
        assert store.get("a").to_pybytes() == b"".join(pieces)
        store.put("a", b"old")
    with pytest.raises(TypeError), store.writer("a") as file:
        file.writelines([*pieces, None])  # type: ignore[list-item]
    assert store.get("a").to_pybytes() == b"old"


def test_an_upload_whose_last_answer_is_lost_is_there_once_and_whole(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_store, "_PART_BYTES", 5 << 20)
    store, whole = s3.store(), bytes(6 << 20)
    left = [1]

    def lost_at_the_end(request: Request, forward: Forward) -> Response:
        if request.method == "POST" and "uploadId" in request.args and left:
            left.pop()
            return lost(request, forward)
        return forward()

    with s3.failing(lost_at_the_end), store.writer("a") as file:
        file.write(whole)
    assert not left
    assert store.get("a").to_pybytes() == whole


_RACE = """
import sys
from ps2stream.store.urls import store_at
store, mine = store_at(sys.argv[1]), sys.argv[2].encode()
print("ready", flush=True)
sys.stdin.readline()
print(sum(store.put_if_absent(f"race/{n}", mine) for n in range(20)), flush=True)
"""


def test_among_processes_one_keeps_its_blob_though_answers_get_lost(s3: S3Server) -> None:
    store = s3.store()
    n_puts = [0]

    def lost_at_times(request: Request, forward: Forward) -> Response:
        n_puts[0] += request.method == "PUT"
        return lost(request, forward) if request.method == "PUT" and n_puts[0] % 5 == 0 else forward()

    command = [sys.executable, "-c", _RACE, store.location()]
    racers = [
        subprocess.Popen([*command, str(n)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for n in range(3)
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    with s3.failing(lost_at_times):
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.write("\n")
            racer.stdin.flush()
        n_kept = [int(racer.communicate()[0]) for racer in racers]
    found = [int(store.get(key).to_pybytes()) for key in store.list("race")]
    assert len(found) == sum(n_kept) == 20
    assert [found.count(number) for number in range(3)] == n_kept


def test_a_store_is_sent_as_its_url_and_connects_where_it_arrives(s3: S3Server) -> None:
    store = s3.store().under("a")
    store.put("b", b"one")
    again = pickle.loads(pickle.dumps(store))
    assert again == store
    assert again.get("b").to_pybytes() == b"one"
    assert len(pickle.dumps(store)) < 500


def test_a_process_forked_from_one_that_has_used_a_store_is_told_so(s3: S3Server) -> None:
    store = s3.store()
    store.put("b", b"one")
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            store.get("b")
        except StateError as error:
            os.write(write, str(error).encode())
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert "start processes by spawn" in os.read(read, 1000).decode()
    os.close(read)
    os.close(write)


def test_messages_and_traces_have_no_credentials(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "SECRET")
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.endpoint.replace("://", "://me:SECRET@"))
    store = store_at(f"s3://{BUCKET}/x")
    assert "SECRET" not in repr(store) + str(store) + store.location("a")
    object_store._connected.cache_clear()
    with s3.failing(lambda request, forward: Response("SECRET?sig=SECRET\nSECRET", 403)):
        with pytest.raises(StateError, match="cannot read s3://bucket/x/a: ") as raised:
            store.get("a")
        # What the server itself answers is shown, as far as its first line goes.
        shown = "".join(traceback.format_exception(raised.value))
        assert "me:SECRET" not in shown
    object_store._connected.cache_clear()


def test_a_signed_request_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", "sv=2024&sig=SECRET")
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("AZURE_ALLOW_HTTP", "true")
    with pytest.raises(StateError, match="cannot read az://container/x/a: ") as raised:
        ObjectStore("az://container/x", patience_s=0.1).get("a")
    assert "SECRET" not in "".join(traceback.format_exception(raised.value))


def test_a_profile_gives_the_credentials_that_the_environment_has_not(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "credentials"
    file.write_text("[mine]\naws_access_key_id = KEYOFPROFILE\naws_secret_access_key = secret\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    monkeypatch.setenv("AWS_PROFILE", "mine")
    store, seen = s3.store(), []

    def noting(request: Request, forward: Forward) -> Response:
        seen.append(request.headers["Authorization"])
        return forward()

    object_store._connected.cache_clear()
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    with s3.failing(noting):
        store.put("a", b"one")
    object_store._connected.cache_clear()
    assert "KEYOFPROFILE" in seen[0]
    monkeypatch.setattr(object_store, "is_installed", lambda module: False)
    with pytest.raises(Exception, match="AWS_PROFILE needs boto3"):
        store.put("a", b"two")
    object_store._connected.cache_clear()
