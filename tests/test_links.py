from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.corpora import documents

from suffice.errors import DataError, InputError, NotReadyError
from suffice.jobs import run_in_process
from suffice.retrieval.links import (
    NAMESAKES,
    MentionLinks,
    TitleIndex,
    mention_links,
    mention_links_in_blocks,
    named_titles,
)
from suffice.types import Document

VILLAGE = documents("links")


@pytest.fixture(scope="module")
def titles() -> TitleIndex:
    return TitleIndex.of(VILLAGE)


@pytest.fixture(scope="module")
def links(titles: TitleIndex) -> MentionLinks:
    return mention_links(VILLAGE, titles)


def named(question: str, titles: TitleIndex) -> tuple[str, ...]:
    return named_titles([question], titles)[0]


def test_a_text_links_to_the_titles_it_names_in_their_order(links: MentionLinks) -> None:
    assert links.out(["ada"]) == [("morgan", "babbage")]


def test_the_longest_title_wins(links: MentionLinks) -> None:
    assert links.out(["babbage"]) == [("avenue", "york")]


def test_named_titles_come_longest_first(titles: TitleIndex) -> None:
    assert named("New York or Augustus De Morgan or Saw?", titles) == ("morgan", "york", "saw")


def test_a_parenthesis_in_a_title_need_not_be_said() -> None:
    films = TitleIndex([("a", "Crash (1996 film)"), ("b", "Crash (2004 film)"), ("c", "Other")])
    assert named("Who directed Crash?", films) == ("a", "b")


MANUAL = documents("links_manual")


def test_common_words_link_only_where_they_are_used_as_names() -> None:
    titles = TitleIndex.of(MANUAL)
    links = mention_links(MANUAL, titles)
    assert dict(zip(links.ids, links.out(links.ids))) == {
        "less(1)": ("more(1)",),
        "more(1)": ("less(1)",),
        "file(1)": (),
        "tac(1)": ("cat(1)", "look(1)"),  # "look" is rare here: nothing says that it is a verb
        "cat(1)": ("time(1)", "tac(1)"),
        "look(1)": ("time(1)",),
        "time(1)": (),
    }
    assert named("Which option of the less pager shows the time?", titles) == ()
    assert named("Which option of less(1) shows the time?", titles) == ("less(1)",)


def test_links_of_blocks_are_the_same() -> None:
    whole = mention_links(MANUAL, TitleIndex.of(MANUAL))
    titles = [(one.doc_id, one.title) for one in MANUAL]
    parts = mention_links_in_blocks(MANUAL, titles, run_in_process)
    assert parts.out(whole.ids) == whole.out(whole.ids)


def test_a_shared_title_links_to_all_its_documents_up_to_a_limit() -> None:
    many = TitleIndex([(str(n), "John Smith") for n in range(NAMESAKES + 5)])
    assert named("Who was John Smith?", many) == tuple(map(str, range(NAMESAKES)))


def test_namesakes_do_not_link_to_each_other() -> None:
    parts = [Document(n, "John Smith was here.", title="John Smith") for n in "ab"]
    assert len(mention_links(parts, TitleIndex.of(parts))) == 0


def test_documents_may_come_in_any_order_and_only_some_of_them(
    titles: TitleIndex, links: MentionLinks
) -> None:
    assert mention_links(reversed(VILLAGE), titles).out(links.ids) == links.out(links.ids)
    assert mention_links(VILLAGE[:1], titles).out(["ada", "morgan"]) == [("morgan", "babbage"), ()]


def test_documents_foreign_to_the_index_or_given_twice_are_refused(titles: TitleIndex) -> None:
    with pytest.raises(InputError, match="not in the title index"):
        mention_links([Document("stranger", "")], titles)
    with pytest.raises(InputError, match="twice"):
        mention_links([VILLAGE[0], VILLAGE[0]], titles)
    with pytest.raises(InputError, match="twice"):
        TitleIndex([("a", "One"), ("a", "Two")])


def test_nothing_in_nothing_out() -> None:
    empty = TitleIndex([])
    assert named_titles(["Who?", ""], empty) == [(), ()]
    assert len(mention_links([], empty)) == 0
    untitled = TitleIndex([("a", ""), ("b", "(!)")])
    assert named("a b !", untitled) == ()


def test_links_survive_the_disk(links: MentionLinks, tmp_path: Path) -> None:
    links.save(tmp_path / "links")
    back = MentionLinks.load(tmp_path / "links")
    assert back.ids == links.ids
    assert back.out(links.ids) == links.out(links.ids)
    assert back.into(links.ids) == links.into(links.ids)


def test_no_links_and_strange_ids_survive_the_disk(tmp_path: Path) -> None:
    for at, ids in enumerate([(), ("", "é", "\ud800", "a\x00")]):
        one = MentionLinks(ids, np.zeros(len(ids) + 1, np.int64), np.zeros(0, np.int32))
        one.save(tmp_path / str(at))
        assert MentionLinks.load(tmp_path / str(at)).ids == ids


def test_damaged_or_absent_links_say_so(links: MentionLinks, tmp_path: Path) -> None:
    with pytest.raises(NotReadyError):
        MentionLinks.load(tmp_path / "absent")
    links.save(tmp_path / "links")
    np.save(tmp_path / "links" / "targets.npy", np.zeros(3, np.int32))
    with pytest.raises(DataError):
        MentionLinks.load(tmp_path / "links")
