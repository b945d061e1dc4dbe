"""Detect lines that can change with every visit to a page: counters and relative times."""

from __future__ import annotations

import re

MOST_CHARS = 40
"""Maximum length of such a line, in characters."""

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


def is_counter(line: str) -> bool:
    """Return True for a short line that only holds a counter or a relative time: ``1,204 views``, ``3 hours ago``.

    The function knows the words of eleven languages. A line with other words or a currency sign is not a counter.
    """
    if len(line) > MOST_CHARS or not any(map(str.isdigit, line)) or not _PRICED.isdisjoint(line):
        return False
    words = _letters(line.casefold())
    return _KNOWN.issuperset(words) and not _SAYING.isdisjoint(words)
