"""Readers' comments: detection, keeping and dropping."""

from __future__ import annotations

import numpy as np
import pytest
from lxml.html import document_fromstring

from scrapy_dripper.choose import with_replies
from scrapy_dripper.choose.comments import in_comments
from scrapy_dripper.choose.scored import Labels, ScoredPage
from scrapy_dripper.config import Config
from scrapy_dripper.data import Document, Extraction
from scrapy_dripper.extractor import Extractor
from scrapy_dripper.page.blocks import cut
from scrapy_dripper.testing import page as page_of
from tests.output.test_posts import Engine

STORY = "<article><h1>The mill</h1>" + "<p>The old mill by the river grinds again, after forty years of rest.</p>" * 4
PAGE = (
    f"<title>The mill</title><body class='single comments-open'>{STORY}</article><section id='comments'>"
    "<h3>Two comments</h3><ol class='comment-list'>"
    "<li class='comment depth-1'><p>Ann says:</p><p>My grandfather worked there as a boy.</p><a href='#'>Reply</a>"
    "<li class='comment'><p>Bo says:</p><p>MAYBE the best news of the week.</p><a href='#'>Reply</a></ol>"
    "<div id='respond'><form><p>Leave a comment</p></form></div></section><footer><p>Imprint</p></footer>"
)


def inside(html: str) -> list[bool]:
    return in_comments(cut(document_fromstring(f"<body class='has-comments'>{html}</body>"), "")).tolist()


@pytest.mark.parametrize(
    ("attributes", "are"),
    [
        ("id=comments", True),
        ("class='post comment even depth-1'", True),
        ("class='Comments__list'", True),
        ("class='commentlist'", True),
        ("class='wp-block-comments'", True),
        ("class='article-comments-section'", True),
        ("id='comment-4711'", True),
        ("id=disqus_thread", True),
        ("id=respond", True),
        ("id=commentform", True),
        ("class='reply-list'", True),
        ("itemscope itemtype='https://schema.org/Comment'", True),
        ("itemscope itemtype='http://schema.org/UserComments'", True),
        ("itemprop=comment", True),
        ("role=comment", True),
        ("class='comments-open'", False),
        ("class='post no-comments'", False),
        ("class='commentary'", False),
        ("class='recent-comments'", False),
        ("class='comment-count'", False),
        ("class='fa-comment'", False),
        ("id='respondents'", False),
        ("class='discussion'", False),
        ("itemtype='https://schema.org/Commentary'", False),
        ("itemprop=commentCount", False),
        ("role=main", False),
    ],
)
def test_what_holds_comments(attributes: str, are: bool) -> None:
    assert inside(f"<p>text</p><div {attributes}><div><p>mine</div></div><p>text</p>") == [False, are, False]


class Reader(Engine):
    """An engine that labels the stories main, and any other blocks that it is given."""

    def __init__(self, *words: str, page_type: str | None = None) -> None:
        super().__init__(page_type)
        self.words = words

    def probability(self, text: str) -> float:
        if any(word in text for word in self.words):
            return 0.9
        return 0.001 if "Imprint" in text or "Reply" in text else 0.02


def extracted(engine: Reader, comments: str, page: str = PAGE) -> Extraction:
    return Extractor(Config(comments=comments), engine).extract([page])[0]


def test_comments_are_kept() -> None:
    """Comments keep the names of their authors, and lose buttons and forms."""
    text = extracted(Reader("mill"), "keep").text or ""
    assert text.startswith(extracted(Reader("mill"), "auto").text or "?")
    for words in ("Ann says:", "My grandfather", "Bo says:", "MAYBE the best"):
        assert words in text
    for words in ("Reply", "Leave a comment", "Imprint"):
        assert words not in text


@pytest.mark.parametrize("page_type", [None, "article", "forum"])
def test_a_page_of_posts_keeps_them(page_type: str | None) -> None:
    """If posts are most of the main text, they are kept on any type of page."""
    engine = Reader("grandfather", "MAYBE", "says", page_type=page_type)
    assert extracted(engine, "drop").text == extracted(engine, "auto").text != ""


def test_posts_of_a_forum_are_not_comments() -> None:
    """This holds even if the first post is longer than all answers."""
    answers = [extracted(Reader("mill", "MAYBE", page_type=kind), "drop").text or "" for kind in ("forum", "article")]
    assert ["MAYBE" in answer for answer in answers] == [True, False]


def test_nothing_is_main_without_a_text_to_comment() -> None:
    assert extracted(Reader(), "keep").text == ""


def test_it_is_a_documents_choice() -> None:
    """``auto`` leaves the answer of the engine."""
    documents = [Document(PAGE, config=Config(comments=wish)) for wish in ("auto", "drop", "keep")]
    texts = [found.text or "" for found in Extractor(Config(), Reader("mill", "MAYBE")).extract(documents)]
    assert [("MAYBE" in text, "grandfather" in text) for text in texts] == [(True, False), (False, False), (True, True)]


def test_the_bundled_model() -> None:
    """By default, the model drops the comments of an article."""
    long = PAGE.replace("<article>", "<article>" + "<p>Millers from five villages came to see the wheel turn.</p>" * 9)
    auto, keep, drop = (
        Extractor(Config(comments=wish)).extract([long])[0].text or "" for wish in ("auto", "keep", "drop")
    )
    assert "grandfather" not in drop
    assert "grandfather" in keep
    assert "old mill" in drop
    assert len(drop) <= len(auto) <= len(keep)


POST = (
    "<div class='post {0}' id=p{1}><p class=author>by <strong>{2}</strong> on 2 May 2021</p>"
    "<div class=content>{3}</div><div class=signature>Sent from {2}</div></div>"
)
STORY_LINE = (
    "Wells in the valley run dry every summer, and each year their pumps must reach a little deeper than before."
)
THREAD = [("Ann", "The pump of the well has run dry, and nothing comes up any more."), ("Bo", "Which one?")]
THREAD += [("Ann", "The old one."), ("Cy", "<p>Mine, too.</p>"), ("Bo", "Thanks!")]


@pytest.mark.parametrize(
    ("page_type", "first", "above", "added"),
    [
        ("forum", [0, 0.9, 0], "", ["Which one?", "The old one.", "Thanks!"]),
        ("forum", [0, 0.1, 0], "", []),  # nothing tells which part of a post is its text
        ("article", [0, 0.9, 0], "", []),
        ("forum", [0.9, 0, 0.9, 0], f"<p>{STORY_LINE}</p>", []),  # the posts are comments on it
    ],
)
def test_the_replies_of_a_thread_are_kept(page_type: str, first: list[float], above: str, added: list[str]) -> None:
    """Of a post that the model leaves out, the parts are added that are main in the others, and no others."""
    posts = "".join(POST.format("bg1 bg2".split()[i % 2], i, *post) for i, post in enumerate(THREAD))
    page = page_of(
        f"<h1>Pumps</h1><main>{above}{posts}<div hidden>{POST.format('bg1', 9, 'Di', 'Unseen.')}</div></main>"
    )
    p = np.array([0, *first, *([0] * (len(page.blocks) - 1 - len(first)))], dtype=np.float32)
    main = p > 0.5
    after = with_replies(ScoredPage(page, Labels(p, page_types={page_type: 1.0})), main)

    assert [page.blocks.text[i] for i in np.flatnonzero(after & ~main).tolist()] == added
    assert after[main].all()


@pytest.mark.parametrize(
    ("types", "added"),
    [
        ({"forum": 1.0}, ["Thanks!"]),
        ({"article": 0.7, "forum": 0.3}, ["Thanks!"]),  # models are often unsure of a thread of questions
        ({"article": 0.8, "forum": 0.2}, []),
        ({}, []),
    ],
)
def test_a_thread_may_be_one_form(types: dict[str, float], added: list[str]) -> None:
    posts = "".join(POST.format("bg1", i, *post) for i, post in enumerate(THREAD))
    page = page_of(f"<h1>Pumps</h1><form>{posts}</form>")
    likely = [post[1].removeprefix("<p>").removesuffix("</p>") for post in THREAD[:4]]
    main = np.array([text in likely for text in page.blocks.text])
    after = with_replies(ScoredPage(page, Labels(main.astype(np.float32), page_types=types)), main)

    assert [page.blocks.text[i] for i in np.flatnonzero(after & ~main).tolist()] == added
