"""Every token that a text may contain, in one Arrow array; a text is a list of positions in it.

The tokens lie in blocks: the words that glue a text together, the words it is made of, those of the topics,
the same as hashtags, names of people, emoji, cities, and last the empty string.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ps2stream.arrays import Float64s, Int32s
from ps2stream.demo.sampling import Weighted, WeightedRows
from ps2stream.demo.topics import N_WORDS, TOPICS

N_RANKED = 30_000
# The first ranks are articles, pronouns, prepositions: half of all words written, and no one's interest.
N_GLUE = 200
N_HANDLES = 5_000

_GLUE = re.compile(r"[a-z]+('[a-z]+)?")
_CONTENT = re.compile(r"[a-z]{3,}")
# Sentences of drawn words are shown to people: leave out what no one wants to read in a demo.
_UNWELCOME = re.compile(
    r"fuck|shit|cunt|porn|nigg|fagg?|bitch|whore|slut|rapis|raped?$|raping|dick|cock|pussy|penis|vagin|boob|tits?$|anal$"
    r"|asshole|bastard|nazi|hitler|jihad|isis$|terroris|murder|suicid|kill|genocid|molest|pedo|incest|naked|nude|sex|erect"
    r"|orgasm|masturb|cum$|milf|dildo|retard|tranny|dyke|negro|jew|muslim|islam|christian|slave|holocaust|torture|corpse"
)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Tokens and where their blocks begin; draws give positions in ``tokens``."""

    tokens: pa.StringArray
    glue: Weighted
    content: Weighted
    topic_words: WeightedRows
    first_content: int
    first_topic: int
    first_hashtag: int
    first_handle: int
    first_emoji: int
    first_city: int
    inside: int  # the glue word "in", which a city's name follows

    @property
    def empty(self) -> int:
        return len(self.tokens) - 1

    def draw_glue(self, rng: np.random.Generator, n: int) -> Int32s:
        return self.glue.draw(rng, n)

    def draw_content(self, rng: np.random.Generator, n: int) -> Int32s:
        return self.content.draw(rng, n) + np.int32(self.first_content)

    def draw_topical(self, rng: np.random.Generator, topics: Int32s) -> Int32s:
        return self.topic_words.draw(rng, topics) + topics * np.int32(N_WORDS) + np.int32(self.first_topic)


def load_vocabulary(city_names: pa.StringArray) -> Vocabulary:
    """Load the most frequent English words with their frequencies."""
    # Late, for the same reason as in ``geography``.
    from wordfreq import get_frequency_dict, top_n_list

    frequency = get_frequency_dict("en")
    ranked = top_n_list("en", N_RANKED)
    topical = [word for topic in TOPICS for word in topic.words]
    glue = [word for word in ranked[:N_GLUE] if _GLUE.fullmatch(word)]
    # A topic's word comes up by its topic alone, so that what a region talks about shows in its words.
    taken = {*topical, *glue}
    content = [
        word
        for word in ranked[N_GLUE:]
        if _CONTENT.fullmatch(word) and word not in taken and not _UNWELCOME.match(word)
    ]
    blocks = [
        glue,
        content,
        topical,
        [f"#{word}" for word in topical],
        [f"@{content[rank % len(content)]}{rank % 89}" for rank in range(N_HANDLES)],
        [topic.emoji for topic in TOPICS],
        city_names.to_pylist(),
        [""],
    ]
    starts = np.cumsum([len(block) for block in blocks]).tolist()

    def weights(words: list[str]) -> Float64s:
        return np.array([frequency[word] for word in words], dtype=np.float64)

    by_rank = 1.0 / (np.arange(N_WORDS, dtype=np.float64) + 1.0)
    return Vocabulary(
        tokens=pa.array([token for block in blocks for token in block], pa.string()),
        glue=Weighted(weights(glue)),
        content=Weighted(weights(content)),
        topic_words=WeightedRows(np.tile(by_rank, (len(TOPICS), 1))),
        first_content=starts[0],
        first_topic=starts[1],
        first_hashtag=starts[2],
        first_handle=starts[3],
        first_emoji=starts[4],
        first_city=starts[5],
        inside=glue.index("in"),
    )
