"""A template reads the sentences that it wrote, and nothing else."""

from guichet.domain.sentences import Message, Sentences


class Links(Sentences):
    NONE_LEFT = "no link is left"
    LEFT = "{count} links are left (of {owner})"
    CLOSED = "{link} is closed: {why}"


def test_a_template_writes_a_sentence_and_reads_it_back() -> None:
    sentence = Links.LEFT(count=3, owner="a (b) c")
    assert sentence == "3 links are left (of a (b) c)"
    assert Links.read(sentence) == Message("left", {"count": "3", "owner": "a (b) c"})
    assert Links.read(Links.NONE_LEFT()) == Message("none_left", {})
    assert Links.LEFT.facts == ["count", "owner"]


def test_a_fact_may_be_empty_or_have_several_lines() -> None:
    sentence = Links.CLOSED(link="", why="it ended\nyesterday: {count}")
    assert Links.read(sentence) == Message("closed", {"link": "", "why": "it ended\nyesterday: {count}"})


def test_what_no_template_wrote_is_not_read() -> None:
    for sentence in ("", "no link is left.", "3 links are left of me", "NO LINK IS LEFT"):
        assert Links.read(sentence) is None
