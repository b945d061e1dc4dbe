"""Posts and links that a text embeds: a post of a social network as a quotation, a card with a link and its summary.

A model takes them for teasers, because their markup is that of teasers. What tells is their place: within the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from scrapy_dripper.page.page import Bools, Flag, Page
from scrapy_dripper.page.tags import LONGEST_CLASS
from scrapy_dripper.page.vocabulary import Group, complete, either
from scrapy_dripper.structures.items import Items, Quote

POSTS: Group = (
    *("tweet", "twitter-tweet(?:-rendered)?", "(?:static|embedded|react)-tweet", "tweet-(?:embed|card|container)"),
    *("social-(?:embed|post)", "social-media-embed", "instagram-media", "(?:bluesky|mastodon|tiktok|threads)-embed"),
    *("fb-post", "reddit-embed-bq", "reddit-card", "text-post-media"),
)
"""Classes of embedded posts: of Substack, Ghost, Vercel, and the networks themselves. Some are names of elements."""
LINKS: Group = (
    *("kg-bookmark-card", "embedded-(?:post|publication)-wrap", "digest-post-embed"),
    *("notion-bookmark", "bookmark"),
    *("(?:graf--)?mixtapeembed", "onebox", "wp-embedded-content", "external-article-widget", "(?:bookmark|embed)-card"),
    *("(?:link|url|ogp?)-?(?:card|preview|embed)", "(?:(?:internal|external)-)?blog-?card", "card-embed", "rich-link"),
)
"""Classes of cards of a link: of Ghost, Substack, Notion, Medium, Discourse, WordPress and its Japanese themes."""
COUNTS: Group = (
    *("ufi", "retweets?", "likes?", "favou?rites?", "replies", "stats", "engagement", "metrics", "actions", "counts?"),
    *("buttons?", "icons?", "cta"),
)
"""Whole names of what is in an embedded post or link, and counts its readers or invites to more."""

names = complete(POSTS, LINKS, having=("tweet", "embed", "social-", "card", "preview"))
"""Matches the class of an embed, in lower case and after white space."""
_post = re.compile(rf"\s(?:{either(POSTS)})(?=\s|$)").search
_count = re.compile(rf"[\s_-](?:{either(COUNTS)})(?=[\s_-]|$)").search
LEAST_WORDS, MOST_WORDS = 8, 300
"""Number of words of an embed. Fewer are those of a button or a deleted post, more a part of the page."""
ADDRESS = "://"
"""What an embed has in its text if it shows where its link leads. It is no button, however few its words are."""
MOST_BEHIND = 3
"""Number of blocks behind a card, one of which has to be main, because something else may stand between."""


def is_post(name: str) -> bool:
    """Return True for the class attribute of an embedded post."""
    return _post(f" {name[:LONGEST_CLASS].lower()}") is not None


def quoted(items: Items) -> Items:
    """Return an embedded post as a quotation."""
    return items if not items or (len(items) == 1 and type(items[0]) is Quote) else (Quote(items),)


def with_embeds(page: Page, main: Bools, found: Iterable[int]) -> Bools:
    """Return the labels with the embeds among some nodes that follow main text of the element that they are in.

    Behind cards of links, that text has to go on, because the cards at its end lead elsewhere.
    """
    labels: Bools = main.copy()
    tree, nodes = page.tree, list(found)
    words = page.blocks.words_before() if nodes else []
    runs: list[tuple[int, list[int]]] = []  # of embeds side by side, with the element around them
    done = 0
    for node in nodes:
        a, b = int(tree.block_start[node]), int(tree.block_end[node])
        length = words[b] - words[a]
        if a < done or length > MOST_WORDS:
            continue
        # Only the first blocks, because many without words may be in many elements around each other.
        if length < LEAST_WORDS and not any(ADDRESS in text for text in page.blocks.text[a : min(b, a + LEAST_WORDS)]):
            continue
        around = page.around(node, a, b)
        if runs and runs[-1][0] == around and a == done:
            runs[-1][1].append(node)
        elif around >= 0:
            runs.append((around, [node]))
        done = b
    for around, run in runs:
        a, b = int(tree.block_start[run[0]]), int(tree.block_end[run[-1]])
        behind = slice(b, min(int(tree.block_end[around]), b + MOST_BEHIND))
        goes_on = main[behind].any() or _post(f" {tree.names[run[0]][:LONGEST_CLASS].lower()}")
        is_text = a > tree.block_start[around] and main[a - 1] and goes_on
        if is_text and not tree.flags[page.blocks.context[a - 1]] & Flag.HEADING:
            labels[a:b] = True
            counts = (
                i
                for i in range(run[0] + 1, int(tree.end[run[-1]]))
                if _count(f" {tree.names[i][:LONGEST_CLASS].lower()}")
            )
            for i in counts:
                labels[tree.block_start[i] : tree.block_end[i]] = main[tree.block_start[i] : tree.block_end[i]]
    return labels
