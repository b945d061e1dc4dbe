"""With the bundled model, small pages are extracted as a whole, and pages without content are empty."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from scrapy_dripper.data import FallbackReason
from scrapy_dripper.extractor import Extractor

WORDS = {
    "en": "The old lighthouse keeper counted nine gulls on the railing before the fog came in and "
    "took the whole bay from him so that he lit the lamp at noon and wrote in his book that it "
    "was the longest day of May",
    "de": "Der alte Müller trug an jenem Morgen drei Säcke Mehl über die Brücke weil sein Esel krank "
    "war und niemand im Dorf ihm helfen wollte obwohl er jedem von ihnen im Winter davor noch "
    "Brot auf Vorrat gegeben hatte und kein Geld nahm",
    "ru": "Старый паромщик перевозил людей через реку каждое утро и знал по имени всех кто спешил на "
    "рынок с корзинами рыбы и яблок а вечером он чинил лодку пил чай с мёдом и слушал как шумит "
    "вода под старым деревянным мостом",
    "ar": "كان ذلك الصياد العجوز يخرج إلى البحر قبل شروق الشمس ويعود عند الظهر ومعه سلة من السمك يبيعها "
    "في السوق الصغير قرب الميناء ثم يجلس مع أصدقائه في المقهى ويحكي لهم عن الأمواج والرياح "
    "والجزر البعيدة التي لم يرها أحد",
    "zh": "老 船夫 每天 清晨 把 村民 送到 对岸 的 集市 傍晚 再 接 他们 回家 他 说 河水 记得 每 一个 "
    "人 的 脚步 也 记得 每 一场 雨 和 每 一次 离别 所以 他 从来 不 唱歌 只 听",
    "ko": "늙은 등대지기는 매일 저녁 계단을 올라가 등불을 켜고 바다를 바라보며 지나가는 배의 수를 "
    "공책에 적었다 그리고 아침이 오면 불을 끄고 빵을 구워 항구의 아이들에게 나누어 주면서 "
    "어젯밤 본 별의 이름을 하나씩 가르쳐 주곤 했다 아무도 그의 나이를 알지 못했다 그러나 모두 "
    "그를 좋아했고 자주 찾아왔다",
}
LENGTHS = (1, 3, 7, 15, 25, 40)


def fragments() -> Iterator[tuple[str, list[str]]]:
    """Return 180 HTML fragments of 1 to 40 words, each with the texts that must be extracted."""
    for text in WORDS.values():
        words = text.split()
        for n in LENGTHS:
            run = " ".join(words[:n])
            rows = [words[k : k + 2] for k in range(0, n, 2)]
            yield f"<p>{run}.</p>", [run]
            yield f"<h2>{words[-1]}</h2><p>{run}.</p>", [words[-1], run]
            yield "<ul>" + "".join(f"<li>{' '.join(row)}</li>" for row in rows) + "</ul>", [" ".join(r) for r in rows]
            cells = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
            yield f"<table>{cells}</table>", words[:n]
            yield f"<pre><code>{run}</code></pre>", [run]


@pytest.fixture(scope="module")
def extractor() -> Iterator[Extractor]:
    one = Extractor()
    yield one
    one.close()


def plain(text: str | None) -> str:
    return " ".join(re.sub(r"[|`*#\-]+", " ", text or "").split())


def test_fragments_come_out_whole(extractor: Extractor) -> None:
    cases = list(fragments())
    assert len(cases) == 180
    found = extractor.extract([html for html, _ in cases])

    broken = [
        html
        for (html, texts), one in zip(cases, found, strict=True)
        if not all(text in plain(one.text) and text in plain(one.markdown) for text in texts)
    ]
    assert len(broken) <= 2, broken


NAVIGATION = (
    "<header><a href=/>My site</a><nav><ul><li><a href=/a>About us</a><li><a href=/b>All posts</a><li>"
    "<a href=/c>Contact</a></ul></nav></header>"
)
FOOTER = "<footer><p>© 2026 My site. All rights reserved.</p></footer>"
LITTLE = [
    ("<p>Hello world, this is my page.</p>", "Hello world, this is my page."),
    ("<h1>Opening hours</h1><p>We are open on Monday from nine to five.</p>", "Opening hours\nWe are open on Monday"),
    ("<table><tr><th>Fruit<th>Price</tr><tr><td>Apple<td>1</tr><tr><td>Pear<td>2</tr></table>", "Pear"),
    ("<ul><li>milk<li>eggs<li>bread</ul>", "eggs"),
    ("<pre>print('hello')</pre>", "print('hello')"),
    ("<p><math><mi>a</mi><mo>=</mo><mi>b</mi></math></p>", "a"),
    ("<h1>Red hat</h1><span class=price>19 €</span>", "19 €"),
    ("<article><header><h1>Red hat</h1></header><p>A hat that is red.</p></article>", "Red hat"),
    ("<p>It is a red hat.</p><p><a href=/more>Read more</a></p>", "It is a red hat."),
]


@pytest.mark.parametrize(("body", "text"), LITTLE)
@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "<html><head><title>Page</title></head><body>{}</body></html>",
        f"<title>Page</title>{NAVIGATION}<main>{{}}</main>{FOOTER}",
    ],
)
def test_little_pages_come_out_without_the_boilerplate_around_them(
    extractor: Extractor, body: str, text: str, around: str
) -> None:
    (found,) = extractor.extract([around.format(body)])

    assert found.fallback_reason is None
    assert text in (found.text or "")
    assert "About us" not in (found.text or "")
    assert "rights reserved" not in (found.text or "")


@pytest.mark.parametrize(
    "body",
    [
        "<h1>Just a moment...</h1><p>Checking your browser before accessing example.com.</p>",
        "<center><h1>404 Not Found</h1></center><hr><center>nginx</center>",
        "<h1>Access Denied</h1><p>You don't have permission to access this resource.</p>",
        "<div id=root></div><noscript>You need to enable JavaScript to run this app.</noscript>",
        "<h1>Page not found</h1><p>Sorry, the page that you are looking for does not exist.</p>",
        "<h1>ページが見つかりません</h1>",
        "<p>Click <a href=/x>here</a> to be redirected.</p>",
        "<div>Loading...</div>",
        "<form>Search our shop <input></form><div id=app></div><nav>Cart</nav>",  # a shell that a script would fill
    ],
)
@pytest.mark.parametrize("around", ["{}", NAVIGATION + "<main>{}</main>" + FOOTER])
def test_pages_without_content_are_empty(extractor: Extractor, body: str, around: str) -> None:
    (found,) = extractor.extract([around.format(body)])

    assert found.fallback_reason is FallbackReason.NO_MAIN
    assert found.text == ""
