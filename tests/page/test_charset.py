"""Each step of charset detection, in the order in which they are tried."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_dripper.page.charset import decode_html

SAMPLES = {
    "ja": "これは日本語の文章です。テストのために書かれています。",
    "zh": "这是一个中文网页，用于测试编码检测。",
    "tw": "這是一個中文網頁，用於測試編碼檢測。",
    "ko": "이것은 한국어 웹 페이지입니다.",
    "ru": "Это русская страница для проверки кодировки.",
    "fr": "Où est passé l’été à Besançon “ici” — déjà vu",
    "el": "Αυτή είναι μια ελληνική σελίδα",
    "he": "זה עמוד בעברית לבדיקה",
    "pl": "Zażółć gęślą jaźń",
}

# Python's codec, language of the sample, label as servers write it
ENCODINGS = [
    ("utf-8", "ru", "utf-8"),
    ("cp932", "ja", "Shift_JIS"),
    ("euc_jp", "ja", "EUC-JP"),
    ("iso2022_jp", "ja", "iso-2022-jp"),
    ("gb18030", "zh", "gb2312"),
    ("gbk", "zh", "GBK"),
    ("big5", "tw", "big5"),
    ("cp949", "ko", "euc-kr"),
    ("cp1251", "ru", "windows-1251"),
    ("koi8-r", "ru", "koi8-r"),
    ("cp1252", "fr", "iso-8859-1"),
    ("cp1252", "fr", "us-ascii"),
    ("cp1253", "el", "windows-1253"),
    ("cp1255", "he", "windows-1255"),
    ("iso8859-2", "pl", "latin2"),
]
DETECTABLE = sorted({(codec, lang) for codec, lang, _ in ENCODINGS if lang != "pl"})


def page(lang: str, meta: str = "") -> str:
    return (
        f"<!DOCTYPE html><html><head>{meta}<title>t</title></head><body>{f'<p class=x>{SAMPLES[lang]}</p>' * 5}</body>"
    )


@pytest.mark.parametrize(("codec", "lang", "label"), ENCODINGS)
@pytest.mark.parametrize("where", ["header", "meta", "http-equiv", "xml"])
def test_label(codec: str, lang: str, label: str, where: str) -> None:
    """The charset in the header or in the page itself is interpreted as in browsers."""
    declaration = {
        "header": "",
        "meta": f'<meta charset="{label}">',
        "http-equiv": f'<meta http-equiv="Content-Type" content="text/html; charset={label}">',
        "xml": "",
    }[where]
    text = page(lang, declaration)
    if where == "xml":
        text = f'<?xml version="1.0" encoding="{label}"?>' + text
    assert decode_html(text.encode(codec), label if where == "header" else None) == text


def test_label_behind_a_long_comment() -> None:
    text = page("pl", f'<!--{"x" * 3_000}--><meta charset="latin2">')
    assert decode_html(text.encode("iso8859-2")) == text


@pytest.mark.parametrize(("codec", "lang"), DETECTABLE)
@pytest.mark.parametrize("charset", [None, "utf-8", "no-such-charset", ""])
def test_missing_or_false_label(codec: str, lang: str, charset: str | None) -> None:
    """A page without a label, or with a wrong one, is recognised by its bytes."""
    text = page(lang, '<meta charset="utf-8">' if charset == "utf-8" else "")
    assert decode_html(text.encode(codec), charset) == text


@pytest.mark.parametrize("label", ["iso-8859-1", "windows-1251", "shift_jis", "utf-16"])
def test_utf8_wins_over_a_false_label(label: str) -> None:
    """Valid UTF-8 is read as UTF-8, whatever the server declares."""
    text = page("fr", f'<meta charset="{label}">')
    assert decode_html(text.encode(), label) == text


MARKS = {
    "utf-8": codecs.BOM_UTF8,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32-le": codecs.BOM_UTF32_LE,
}


@pytest.mark.parametrize("codec", MARKS)
@pytest.mark.parametrize("charset", [None, "utf-8", "windows-1252"])
def test_byte_order_mark(codec: str, charset: str | None) -> None:
    """A byte order mark wins over the header and is not part of the text."""
    text = page("ja")
    assert decode_html(MARKS[codec] + text.encode(codec), charset) == text


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("charset", [None, "utf-8", "utf-16"])
def test_wide_without_byte_order_mark(codec: str, charset: str | None) -> None:
    """UTF-16 and UTF-32 are recognised by the zero bytes in the markup."""
    text = page("fr")
    assert decode_html(text.encode(codec), charset) == text


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("lang", ["ru", "zh"])
def test_the_header_speaks_for_a_wide_text_with_little_markup(codec: str, lang: str) -> None:
    """It has few zero bytes, and Cyrillic is valid UTF-8 then."""
    text = f"<p>{SAMPLES[lang] * 2}</p>"
    assert decode_html(text.encode(codec), codec.removesuffix("-be")) == text


@pytest.mark.parametrize("charset", [None, "iso-8859-1", "utf-8"])
def test_one_broken_byte_does_not_change_the_encoding(charset: str | None) -> None:
    """A UTF-8 page with one broken character stays UTF-8, and only that character is lost."""
    text = page("fr")
    assert decode_html(text.encode() + b"\xff", charset) == text + "\ufffd"


@pytest.mark.parametrize(
    ("lines", "letters", "broken", "found"),
    [(200, 24, 2, 24), (200, 24, 4, 0), (40, 500, 12, 500), (40, 500, 25, 0)],
)
def test_broken_bytes_among_letters_beyond_ascii(lines: int, letters: int, broken: int, found: int) -> None:
    """If more than a tenth of these are broken, or a hundredth of all characters, the page is not UTF-8."""
    text = "<p>plain text of a page</p>" * lines + "é" * letters
    assert decode_html(text.encode() + b"\xff" * broken).count("é") == found


def test_cut_within_a_character() -> None:
    """A body that was cut off, as by DOWNLOAD_MAXSIZE, only loses the character at the cut."""
    body = page("ja").encode()
    end = body.rindex("。".encode())
    assert decode_html(body[: end + 2]) == body[:end].decode()


NO_ENCODINGS = "utf-7 zlib idna unicode_escape undefined punycode hex mbcs a\0b \ud800 é".split()


@pytest.mark.parametrize("charset", NO_ENCODINGS)
def test_invalid_charset(charset: str) -> None:
    """Labels for no text encoding, or for one that only Python has, count as missing."""
    text = page("fr") + r"\u0041 +ADw-b+AD4-"
    assert decode_html(text.encode("cp1252"), charset) == text


@pytest.mark.parametrize("charset", ["x-user-defined", None])
def test_nuls_stay_for_the_parser(charset: str | None) -> None:
    """A few NULs do not make a page UTF-16."""
    assert decode_html(b"<p>a\0b</p>" + b"<p>text</p>" * 20, charset) == "<p>a\0b</p>" + "<p>text</p>" * 20


@given(st.text())
def test_round_trip(text: str) -> None:
    """Any text with a declared encoding survives a round trip through UTF-8, except for a byte order mark at its
    start."""
    text = text.encode("utf-8", "replace").decode()
    if "\0" not in text and "\x1b" not in text:
        assert decode_html(text.encode()) == text.removeprefix("\ufeff")


@given(st.binary(), st.none() | st.text() | st.sampled_from([label for _, _, label in ENCODINGS]))
def test_never_raises(body: bytes, charset: str | None) -> None:
    assert isinstance(decode_html(body, charset), str)
