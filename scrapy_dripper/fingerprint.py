"""Fingerprints of a text: a hash to detect changes, and a simhash to detect near duplicates.

The simhash (Charikar 2002, *Similarity estimation techniques from rounding algorithms*) has 64 bits. In Manku, Jain,
Das Sarma 2007, *Detecting near-duplicates for web crawling*, near duplicates differ in at most 3 bits.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from zlib import crc32

import numpy as np
import numpy.typing as npt

SHINGLE = 3
"""Number of consecutive words in a shingle."""

_AT_ONCE = 1 << 16
"""Number of words to process together, to limit memory."""

# Soft hyphens, zero-width spaces and joiners, direction marks, byte order marks.
_invisible = re.compile("[\xad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]").sub
_digits = re.compile(r"\d+(?:[.,\u00a0\u202f]\d+)*").sub
# In scripts without spaces, each character is a word. Other words are runs of letters or digits. These come first,
# because most words are such runs.
_UNSPACED = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\u0e00-\u0e7f\U00020000-\U0003ffff"
_words = re.compile(rf"[^\W\d_{_UNSPACED}]+|\d+|[{_UNSPACED}]").findall
_letters = re.compile(r"[^\W\d_]+").findall

# One of these words makes a number a counter or a relative time.
_SAYING = frozenset(
    "ago view views viewed read reads like likes liked comment comments share shares reply replies vote votes follower "
    "followers vor aufrufe kommentare gelesen il vues commentaires lectures hace visitas vistas comentarios fa "
    "visualizzazioni commenti há atrás visualizações comentários geleden weergaven reacties назад просмотр просмотра "
    "просмотров комментарий комментария комментариев "
    "秒前 分钟前 小时前 天前 周前 个月前 年前 分鐘前 小時前 次浏览 浏览 阅读 次阅读 次播放 评论 条评论 次瀏覽 閱讀 "
    "分前 時間前 日前 か月前 ヶ月前 回視聴 閲覧数 件のコメント 초 전 분 시간 일 개월 조회 조회수 댓글".split()
)
# These words may occur beside one of the above. They are not enough alone: "30 minutes" may be a cooking time.
_BESIDE = frozenset(
    "k m about an a the in time times second seconds sec secs s minute minutes min mins hour hours hr hrs h day days d "
    "week weeks w month months mo year years yr yrs y mal tag tagen stunde stunden minuten sekunden woche wochen monat "
    "monaten jahr jahren y a fois jour jours heure heures semaine semaines mois ans veces día días hora horas minuto "
    "minutos semana semanas mes meses año años giorno giorni ora ore minuti settimane mesi anni dia dias ano anos "
    "vezes dag dagen uur uren minuut weken maanden jaar keer минут минуты минуту час часа часов день дня дней неделю "
    "недели недель месяц месяца месяцев год года лет раз 万 회".split()
)
_KNOWN = _SAYING | _BESIDE
_PRICED = frozenset("%$€£¥₽₩₹")


def content_hash(text: str) -> str:
    """Return a hash of a text as 32 hexadecimal digits: BLAKE2b with 128 bits (RFC 7693).

    White space and invisible characters do not count. Neither do lines that only hold counters or relative
    times (:func:`is_counter`), such as ``1,204 views`` or ``3 hours ago``. All other numbers
    count, such as prices, dates and scores.
    """
    digest = blake2b(digest_size=16)
    for line in _invisible("", text).split("\n"):
        words = " ".join(line.split())
        if words and not is_counter(words):
            digest.update(words.encode("utf-8", "surrogatepass") + b" ")
    return digest.hexdigest()


def simhash(text: str) -> str:
    """Return the simhash of a text as 16 hexadecimal digits. Near duplicates differ in few bits.

    It is computed from all runs of three words in lower case. Each character of Chinese, Japanese, Korean or Thai is a
    word, and all numbers are equal. The simhash of a text without words is zero. Takes linear time.
    """
    words = _words(_digits("0", _invisible("", text).casefold()))
    known: dict[str, int] = {}
    numbers = [known.setdefault(word, len(known)) for word in words]
    # 32 bits are enough to tell the words of a text apart. A cryptographic hash takes five times as long.
    hashes = np.array([crc32(word.encode("utf-8", "surrogatepass")) for word in known], dtype=np.uint64)
    votes = np.zeros(64, dtype=np.int64)
    most = max(1, len(words) - SHINGLE + 1) if words else 0
    for start in range(0, most, _AT_ONCE):
        part = hashes[numbers[start : min(start + _AT_ONCE, most) + SHINGLE - 1]]
        shingles = _mixed(part, max(1, len(part) - SHINGLE + 1))
        bits = np.unpackbits(shingles.astype(">u8").view(np.uint8).reshape(-1, 8), axis=1)
        votes += 2 * bits.sum(axis=0, dtype=np.int64) - len(bits)
    return np.packbits(votes > 0).tobytes().hex()


def is_counter(line: str) -> bool:
    """Return True for a line that only holds counters or relative times: ``1,204 views``, ``3 hours ago``.

    The function knows the words of eleven languages. A line with other words or a currency sign is not a counter.
    """
    if not any(map(str.isdigit, line)) or not _PRICED.isdisjoint(line):
        return False
    words = _letters(line.casefold())
    return _KNOWN.issuperset(words) and not _SAYING.isdisjoint(words)


def _mixed(hashes: npt.NDArray[np.uint64], count: int) -> npt.NDArray[np.uint64]:
    """Combine the hashes of words to a hash for each run of words, depending on their order.

    The mixing function is that of SplitMix64 (Steele, Lea, Flood 2014). Without it, texts with the same words in
    another order would have similar simhashes.
    """
    mixed: npt.NDArray[np.uint64] = np.zeros(count, dtype=np.uint64)
    for offset in range(min(SHINGLE, len(hashes))):
        mixed = mixed * np.uint64(0x9E3779B97F4A7C15) + hashes[offset : offset + count]
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return mixed
