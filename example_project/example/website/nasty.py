"""Broken pages, generated on the fly, of the kinds that a crawl of the open web meets sooner or later."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable

from example.website.answer import Answer

HTML = "text/html"

BELL = (
    "The bell buoy off the point was cast in 1887 and has been lost three times. The first time it broke its chain and "
    "was found by children eleven miles down the coast, still ringing.",
    "The second time it was stolen, which takes a crane and a dark night. It came back after a month with a new coat "
    "of paint and a note that asked for its tone to be lowered, since it kept the baby awake.",
    "The third time nobody noticed for a year. A fog had come every week, as usual, and every week the fishermen had "
    "heard the bell, as usual. The harbour office has kept the file open ever since.",
)
RUSSIAN = (
    "Старый паромщик выходит на берег в пять утра, когда река ещё не видна, но уже слышна. Он знает по голосу воды, "
    "сколько её прибавилось за ночь, и по этому решает, какой канат брать сегодня.",
    "Паром у него деревянный, на нём помещаются две телеги или одна машина, если хозяин не боится. Мост обещали "
    "построить ещё при его отце. С тех пор приезжали четыре комиссии, и каждую он перевёз туда и обратно бесплатно.",
    "Вечером он записывает в тетрадь, кого возил: почтальона, трёх коров, невесту, учителя географии. Учитель ездит "
    "каждый день и каждый раз спрашивает, далеко ли до моря. До моря, отвечает паромщик, столько же, сколько вчера.",
)
JAPANESE = (
    "灯台の隣に、海の音を集めている小さな博物館があります。館長は元漁師の女性で、四十年間、毎朝同じ岩の上で波の音を録音してきました。",
    "棚には日付を書いた箱が一万四千個並んでいます。嵐の日の箱は重い、と彼女は言います。もちろん重さは同じですが、持ち上げるとき、だれもが少し腰を入れます。",
    "来館者は自分の生まれた日の箱を選び、窓のそばの椅子で聞くことができます。静かな朝だったと知って、泣く人もいるそうです。",
)
CHINESE = (
    "城西有一家修伞铺，只在下雨天开门。老板说，晴天修好的伞，客人不知道好不好用，雨天当场撑开，一滴也骗不了人。",
    "他用的伞骨是自己削的竹子，伞面是桐油刷过三遍的棉纸。年轻人送来的折叠伞他也修，只是每次都要叹一口气，说这种伞生来就是为了坏的。",
    "去年夏天连着下了四十天雨，他修了六百多把伞，最后把铺子门口的招牌也拆下来，给一位老太太做了伞柄。",
)
GERMAN = (
    "Über dem Bäckerladen hängt eine Uhr, die seit Jahren zehn Minuten vorgeht. Früher hätte man sie gestellt, heute "
    "fährt halb Süderstedt nach ihr zur Arbeit und kommt dadurch pünktlich.",
    "Als der neue Pächter sie richtig stellte, verpassten am nächsten Morgen dreißig Leute die Fähre. Die Gemeinde "
    "beschloss daraufhin einstimmig, dass die Bäckeruhr künftig größere Genauigkeit vermeiden möge.",
)


def paragraphs(texts: tuple[str, ...]) -> str:
    """Return texts as HTML paragraphs."""
    return "".join(f"<p>{text}</p>\n" for text in texts)


def document(title: str, body: str, *, head: str = "", lang: str = "en") -> str:
    """Return a page with the site's navigation above its body and the footer below."""
    return (
        f'<!DOCTYPE html>\n<html lang="{lang}"><head>{head}<title>{title}</title></head>\n<body>\n'
        '<div id="nav"><a href="/">Tarnwick</a> <a href="/nasty/">Nasty pages</a> <a href="#top">Top</a></div>\n'
        f'<div id="main"><h1>{title}</h1>\n{body}</div>\n'
        '<div id="footer"><a href="#imprint">Imprint</a> <a href="#privacy">Privacy</a></div>\n</body></html>\n'
    )


def pdf_bytes() -> bytes:
    """Return a small, valid PDF of one page."""
    text = b"BT /F1 18 Tf 72 720 Td (Annual report of the harbour office) Tj ET"
    objects = (
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R "
        b"/Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(text), text),
    )
    file, offsets = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n", []
    for number, content in enumerate(objects, 1):
        offsets.append(len(file))
        file += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    head = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    tail = b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, len(file))
    return file + head + table + tail


def png_bytes() -> bytes:
    """Return a valid PNG of 64 by 64 pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + bytes((x * 4, y * 4, 160)[c] for x in range(64) for c in range(3)) for y in range(64))
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 64, 64, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def no_blocks() -> Answer:
    """Elements, but no visible text."""
    body = '<div><hr><div class="x"><span></span></div><table><tr><td></td></tr></table></div>' * 40
    return Answer(f"<!DOCTYPE html><html><head></head><body>{body}</body></html>".encode(), HTML)


def only_scripts() -> Answer:
    """The shell of an application that never starts without JavaScript."""
    script = "<script>window.app = {state: 'boot', text: 'not for readers'};</script>\n" * 30
    page = f'<!DOCTYPE html><html><head><title>App</title></head><body><div id="root"></div>\n{script}</body></html>'
    return Answer(page.encode(), HTML)


def deep() -> Answer:
    """An article below 5,000 nested elements, each with its own class."""
    opened = "".join(f'<div class="level-{level}">' for level in range(5000))
    return Answer(document("Five thousand levels", opened + paragraphs(BELL) + "</div>" * 5000).encode(), HTML)


def log_lines(count: int) -> list[str]:
    """Return lines of a ship's log, all of them different."""
    winds = ("south-west", "west", "north", "light and variable", "east by south", "north-west")
    works = ("mended the mainsail", "scraped the deck", "caught nine mackerel", "met a collier", "saw no one")
    return [
        f"Day {day}: wind {winds[day % 6]}, {day % 9 + 1} knots, {works[day % 5]}, {day * 37 % 180 + 4} miles by dusk."
        for day in range(1, count + 1)
    ]


def big() -> Answer:
    """A page of 20 MB."""
    lines = log_lines(60)
    chapters = []
    size = number = 0
    while size < 20_000_000:
        number += 1
        chapters.append(f"<h2>Voyage {number}</h2>\n<p>{' '.join(lines)}</p>\n")
        size += len(chapters[-1])
    return Answer(document("The complete log", "".join(chapters)).encode(), HTML)


def many_blocks() -> Answer:
    """A page of 20,000 paragraphs."""
    body = "".join(f"<p>{line}</p>\n" for line in log_lines(20_000))
    return Answer(document("Twenty thousand days", body).encode(), HTML)


def attributes() -> Answer:
    """An element with 100,000 attributes before the article."""
    written = " ".join(f'data-a{number}="{number}"' for number in range(100_000))
    return Answer(document("A hundred thousand attributes", f"<div {written}></div>" + paragraphs(BELL)).encode(), HTML)


def unclosed() -> Answer:
    """An article, and 20,000 tags that are never closed."""
    mess = "".join(f'<font color="#{number % 4096:03x}"><b>ding ' for number in range(10_000))
    return Answer(document("Twenty thousand open tags", paragraphs(BELL) + mess).encode(), HTML)


def nul_bytes() -> Answer:
    """An article with NUL bytes in its words and its markup."""
    page = document("Nothing in between", paragraphs(BELL))
    return Answer(page.replace("bell", "be\0ll").replace("<p>", "<p>\0").encode(), HTML)


def encoded(title: str, texts: tuple[str, ...], encoding: str, content_type: str | None = HTML) -> Callable[[], Answer]:
    """Return a function that makes a page in an encoding that its markup does not declare."""
    return lambda: Answer(document(title, paragraphs(texts), lang="").encode(encoding), content_type)


def plain(body: bytes, content_type: str | None = HTML) -> Callable[[], Answer]:
    """Return a function that makes a response with the given bytes."""
    return lambda: Answer(body, content_type)


def moved() -> Answer:
    """A redirect."""
    return Answer(b"", HTML, 301, (("Location", "/nasty/new-address"),))


def gone() -> Answer:
    """An article with the status 404."""
    return Answer(document("Not found, but chatty", paragraphs(BELL)).encode(), HTML, 404)


DESCRIPTIONS = {
    "pdf": "A PDF that says it is HTML",
    "png": "An image that says it is HTML",
    "report.pdf": "A PDF that says so",
    "empty": "No bytes at all",
    "no-blocks": "Elements, but not a word to see",
    "only-scripts": "Nothing but scripts",
    "no-charset-sjis": "Shift-JIS, declared nowhere",
    "no-charset-gb18030": "GB18030, declared nowhere",
    "no-charset-1251": "windows-1251, declared nowhere",
    "bogus-charset": "windows-1251 under the name of an encoding that does not exist",
    "wrong-charset": "UTF-8, called iso-8859-1 by the header",
    "utf-16": "UTF-16 with a byte order mark",
    "nul": "NUL bytes in words and markup",
    "deep": "5,000 nested divs",
    "big": "20 MB of text",
    "attributes": "100,000 attributes on one element",
    "unclosed": "20,000 tags that nobody closes",
    "blocks": "20,000 paragraphs",
    "moved": "A redirect",
    "gone": "A 404 with an article in it",
}


def index() -> Answer:
    """The page that links to all the others."""
    rows = "".join(
        f'<tr><td><a href="/nasty/{name}">{name}</a></td><td>{what}</td></tr>\n' for name, what in DESCRIPTIONS.items()
    )
    style = (
        "<style>body{font:16px/1.6 Georgia,serif;max-width:760px;margin:30px auto;padding:0 16px}"
        "td{border-bottom:1px solid #ddd;padding:4px 18px 4px 0}#nav,#footer{font:13px Arial;color:#888}</style>"
    )
    intro = (
        "<p>Every page below breaks a rule that crawlers like to rely on. None of them is exotic: each kind turns up "
        "within the first hour of a broad crawl. A crawl of this cabinet should neither stop nor stall, and say for "
        f"each page what became of it.</p>\n<table>{rows}</table>\n"
    )
    page = document("A cabinet of nasty pages", intro, head=f'<meta charset="utf-8">{style}')
    return Answer(page.encode(), "text/html; charset=utf-8")


PAGES: dict[str, Callable[[], Answer]] = {
    "/nasty/": index,
    "/nasty/pdf": lambda: Answer(pdf_bytes(), HTML),
    "/nasty/png": lambda: Answer(png_bytes(), HTML),
    "/nasty/report.pdf": lambda: Answer(pdf_bytes(), "application/pdf"),
    "/nasty/empty": plain(b""),
    "/nasty/no-blocks": no_blocks,
    "/nasty/only-scripts": only_scripts,
    "/nasty/no-charset-sjis": encoded("音の博物館", JAPANESE, "shift_jis"),
    "/nasty/no-charset-gb18030": encoded("雨天的修伞铺", CHINESE, "gb18030"),
    "/nasty/no-charset-1251": encoded("Паромщик", RUSSIAN, "cp1251"),
    "/nasty/bogus-charset": encoded("Паромщик", RUSSIAN, "cp1251", "text/html; charset=x-cyrillic-typewriter"),
    "/nasty/wrong-charset": encoded("Die Bäckeruhr", GERMAN, "utf-8", "text/html; charset=iso-8859-1"),
    "/nasty/utf-16": encoded("Паромщик", RUSSIAN, "utf-16"),
    "/nasty/nul": nul_bytes,
    "/nasty/deep": deep,
    "/nasty/big": big,
    "/nasty/attributes": attributes,
    "/nasty/unclosed": unclosed,
    "/nasty/blocks": many_blocks,
    "/nasty/moved": moved,
    "/nasty/new-address": lambda: Answer(document("A new address", paragraphs(BELL)).encode(), HTML),
    "/nasty/gone": gone,
}
