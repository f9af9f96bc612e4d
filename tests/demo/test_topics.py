from __future__ import annotations

import re

from ps2stream.demo.topics import N_WORDS, TOPICS


def test_every_topic_has_its_number_of_distinct_plain_words() -> None:
    for topic in TOPICS:
        assert len(set(topic.words)) == len(topic.words) == N_WORDS, topic.name
        assert all(re.fullmatch("[a-z]+", word) for word in topic.words), topic.name


def test_topics_are_named_apart() -> None:
    assert len({topic.name for topic in TOPICS}) == len(TOPICS)
