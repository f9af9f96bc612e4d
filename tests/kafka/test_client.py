"""Settings come from a file that may not change what delivery rests on; no password is told to anybody."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from ps2stream.errors import BrokerError, ConfigError
from ps2stream.kafka.client import Kafka, read_properties

NOWHERE = "127.0.0.1:1"


def kafka_with(tmp_path: Path, text: str) -> Kafka:
    file = tmp_path / "kafka.properties"
    file.write_text(text, encoding="utf-8")
    return Kafka(NOWHERE, str(file))


def test_lines_are_names_and_values(tmp_path: Path) -> None:
    text = "# about\n! also\n\n  sasl.username = me \nsasl.password==a=b#c\nempty=\n"
    kafka_with(tmp_path, text)
    assert read_properties(tmp_path / "kafka.properties") == {
        "sasl.username": "me",
        "sasl.password": "=a=b#c",
        "empty": "",
    }


@pytest.mark.parametrize("line", ["secret", "=secret", " = secret"])
def test_a_line_of_another_form_is_named_but_not_shown(tmp_path: Path, line: str) -> None:
    with pytest.raises(ConfigError, match=r"kafka\.properties, line 2: must be name=value") as caught:
        kafka_with(tmp_path, f"a=b\n{line}\n").admin()
    assert "secret" not in str(caught.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.properties cannot be read"):
        Kafka(NOWHERE, str(tmp_path / "none.properties")).consumer(group_id="g")
    (tmp_path / "binary").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="binary cannot be read"):
        Kafka(NOWHERE, str(tmp_path / "binary")).producer()


def test_what_delivery_rests_on_is_not_for_the_file_to_say(tmp_path: Path) -> None:
    text = (
        "isolation.level=read_uncommitted\ngroup.id=mine\nenable.auto.commit=true\ntransactional.id=mine\n"
        "enable.idempotence=false\nbootstrap.servers=elsewhere:1\nlinger.ms=77\nfetch.wait.max.ms=99\n"
        "auto.offset.reset=earliest\n"
    )
    kafka = kafka_with(tmp_path, text)
    settings = kafka._settings({"linger.ms": 5}, {"isolation.level": "read_committed", "group.id": "ours"})
    assert settings["isolation.level"] == "read_committed"
    assert settings["group.id"] == "ours"
    assert settings["bootstrap.servers"] == NOWHERE
    assert settings["linger.ms"] == "77"


def test_a_setting_that_nobody_knows_is_an_error_without_its_value(tmp_path: Path) -> None:
    with pytest.raises(BrokerError, match=r'No such configuration property: "sasl.pasword"') as caught:
        kafka_with(tmp_path, "sasl.pasword=secret\n").producer()
    assert "secret" not in str(caught.value)


def test_a_password_is_in_no_message_and_in_nothing_that_is_sent(tmp_path: Path) -> None:
    text = "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.username=me\nsasl.password=secret\n"
    kafka = kafka_with(tmp_path, text)
    kafka.producer()
    assert pickle.loads(pickle.dumps(kafka)) == kafka
    assert b"secret" not in pickle.dumps(kafka)
    assert "secret" not in f"{kafka!r} {kafka}"
    with pytest.raises(BrokerError, match="cannot look at Kafka 127") as caught, kafka.telling("look"):
        kafka.admin().list_topics("x", timeout=0.2)
    assert "secret" not in str(caught.value)
