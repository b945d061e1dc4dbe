"""Copy labels: what the buttons beside code are called, in any language, and where they say so."""

from __future__ import annotations

import re

from lxml import etree

from scrapy_dripper.page.nodes import short_text
from scrapy_dripper.page.tags import LONGEST_CLASS
from scrapy_dripper.page.vocabulary import Group, either

LABELS: Group = (
    *(
        "copy(?: (?:code|text|snippet|command|link|this))?(?: to (?:the )?clipboard)?",
        "copied(?: to (?:the )?clipboard)?",
    ),
    *(
        "click to copy",
        "toggle (?:word wrap|overflow)",
        "(?:un)?wrap lines",
        "(?:view|show) (?:raw|plain)",
        "copy failed",
    ),
    *("(?:code |text )?(?:in (?:die )?zwischenablage )?kopieren", "(?:in zwischenablage )?kopiert"),
    *("copier(?: (?:le code|dans le presse-papiers?))?", "copié"),
    *("copiar(?: (?:el )?c[oó]digo| al portapapeles| para a área de transferência)?", "copiado", "¡copiado"),
    *("copia(?: (?:il )?codice| negli appunti)?", "copiato", "kopi[eë]er(?:en)?(?: naar klembord)?", "gekopieerd"),
    *("kopiuj(?: kod| do schowka)?", "skopiowano", "(?:с)?копировать(?: код| в буфер обмена)?", "скопировано"),
    *("kopyala", "kodu kopyala", "kopyalandı", "kopiér", "kopier(?:a)?(?: kod)?", "kop[ií]rovat", "sao chép", "نسخ"),
    *("(?:点击|一键)?复制(?:代码|成功|到剪贴板)?", "已复制", "複製(?:程式碼|代碼)?", "已複製", "代码解读", "自动换行"),
    *("(?:コードを)?コピー(?:する|しました)?", "(?:코드 )?복사(?:하기|됨)?"),
)
"""What a button that copies or wraps code is called, and what it says after a click, complete."""

_names = re.compile(r"cop(?:y|ied|ier)|clipboard|kopier", re.I).search
_labels = re.compile(
    rf"(?:([a-z][\w+#.-]{{0,19}})[\s|·:]{{1,9}})??(?:(?:{either(LABELS)})[\s!.|·✓✔]{{0,9}}){{1,6}}", re.I
).fullmatch
LONGEST_LABELS = 120
"""Maximum length of all labels of a listing, in characters."""


def copy_label(text: str) -> str | None:
    """Return None unless a text consists of copy labels. Return the word before them, which may name the language."""
    match = _labels(text.strip()) if len(text) <= LONGEST_LABELS else None
    return (match[1] or "").lower() if match else None


def is_copy_label(element: etree._Element) -> bool:
    """Return True for an element in code that is named for copying, and says nothing else.

    Its name has to tell, because the text alone may be code, such as ``COPY``.
    """
    if not any(_names((element.get(name) or "")[:LONGEST_CLASS]) for name in ("class", "id", "slot")):
        return False
    text = short_text(element)
    return text is not None and (not text.strip() or copy_label(text) is not None)
