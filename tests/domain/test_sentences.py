"""A template reads the sentences that it wrote, and nothing else."""

import pytest

from guichet.domain.sentences import Message, Sentences


class Links(Sentences):
    NONE_LEFT = "no link is left"
    LEFT = "{count:number} links are left (of {owner})"
    CLOSED = "{link:word} is closed: {why}"
    WORTH = "worth {total:money}, {least:amount} at least"


def test_a_template_writes_a_sentence_and_reads_it_back() -> None:
    sentence = Links.LEFT(count=3, owner="a (b) c")
    assert sentence == "3 links are left (of a (b) c)"
    assert Links.read(sentence) == Message(Links.LEFT, {"count": "3", "owner": "a (b) c"})
    assert Links.read(Links.NONE_LEFT()) == Message(Links.NONE_LEFT, {})
    assert Links.LEFT.shapes == {"count": "number", "owner": ""}


def test_a_fact_may_be_empty_or_have_several_lines() -> None:
    sentence = Links.CLOSED(link="a", why="it ended\nyesterday: {count}")
    assert Links.read(sentence) == Message(Links.CLOSED, {"link": "a", "why": "it ended\nyesterday: {count}"})
    assert Links.read("a is closed: ") == Message(Links.CLOSED, {"link": "a", "why": ""})


@pytest.mark.parametrize(
    "sentence",
    [
        "",
        "no link is left.",
        "NO LINK IS LEFT",
        "three links are left (of me)",
        "a b is closed: yes",
        "worth 1, 2 at least",
    ],
)
def test_what_no_template_wrote_is_not_read(sentence: str) -> None:
    assert Links.read(sentence) is None


def test_amounts_are_those_that_commands_write() -> None:
    sentence = Links.WORTH(total="-5000.5 XOF", least="0.05")
    assert Links.read(sentence) == Message(Links.WORTH, {"total": "-5000.5 XOF", "least": "0.05"})
