"""The names and words by which the steps after the model, and the writer of Main-HTML, recognise parts of pages.

Each group is a tuple of entries, which :func:`either` joins to a regular expression. To extend a group, add what the
pages of a generator or a language have, in lower case, and a page that has it to the tests of the module that uses the
group. An entry is plain text, or text with simple alternatives; repetitions need a bound. *Whole names* stand between
white space, hyphens and underscores, so ``logo`` matches ``site-logo`` but not ``logos``. *Parts* match anywhere in a
name. The features of the tagger have a list of their own (:mod:`scrapy_dripper.engines.tagger.lexicon`), because a
model only fits the names that it was trained with.

:class:`NameIndex` searches the class and id attributes of a page for them, all at once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from scrapy_dripper.page.tags import LONGEST_CLASS

Group: TypeAlias = tuple[str, ...]


def either(*groups: Group) -> str:
    """Return a regular expression that matches any entry of some groups, to be used inside brackets."""
    return "|".join(entry for group in groups for entry in group)


class NamePattern(NamedTuple):
    """A pattern within one class or id, for names in lower case with white space before each."""

    pattern: re.Pattern[str]
    literals: Group
    """Each match has one of them. They are looked for first, which takes far less time."""


def complete(*groups: Group, having: Group = ()) -> NamePattern:
    """Return a pattern for the complete names of some groups. An entry that is no plain text has one of ``having``."""
    return NamePattern(re.compile(rf"\s(?:{either(*groups)})(?=\s|$)"), _literals(*groups, having))


def whole(*groups: Group, having: Group = ()) -> NamePattern:
    """Return the same for whole names, which may be a part of a class or id."""
    return NamePattern(re.compile(rf"[\s_-](?:{either(*groups)})(?=[\s_-]|$)"), _literals(*groups, having))


def _literals(*groups: Group) -> Group:
    plain = {entry for group in groups for entry in group if _is_plain(entry)}
    return tuple(sorted(one for one in plain if not any(part in one for part in plain - {one})))


_is_plain = re.compile(r"[\w-]+").fullmatch

# ---------------------------------------------------------------------- parts of a page, by class or id
BOILERPLATE: Group = (
    *("nav", "navbar", "navigation", "menu", "mainmenu", "topmenu", "sitemenu"),
    *("footer", "sitefooter", "pagefooter", "siteheader", "pageheader", "topheader"),
    *("sidebar", "breadcrumb", "breadcrumbs", "toolbar", "topbar"),
)
"""Whole names of menus, and of what is around the content of each page of a site."""

BESIDE: Group = (
    *("ico", "icon", "icons", "logo", "logos", "avatar", "avatars", "badge", "badges", "emblem"),
    *("share", "sharing", "social", "sponsor", "sponsors", "sponsored", "ad", "ads", r"advert\w*", "banner"),
    *(r"promo\w*", "tracking", "pixel", "spacer", "newsletter", "related", "author", "profile"),
)
"""Whole names of images that are beside the content."""

# ---------------------------------------------------------------------- comments, by class or id
COMMENT_SYSTEMS: Group = (
    *("respond", "replies", "reply[-_]?list", "replies[-_]?list", "commento", "giscus", "isso-thread", "livefyre"),
    *("utterances", "wpdcom", "hyvor-talk-view"),
)
"""Names of the elements in which themes and services show comments, complete."""

COMMENT_PLACES: Group = (
    *("area", "block", "body", "box", "children", "component", "container", "content", "disqus", "entry", "feed"),
    *("form", "group", "holder", "inner", "item", "list", "main", "module", "outer", "page", "panel", "post", "region"),
    *("reply", "replies", "respond", "root", "row", "section", "template", "text", "thread", "tree", "view", "widget"),
    *("wrap", "wrapper"),
)
"""What may follow ``comment`` or ``comments`` in the name of an element that holds comments."""

NO_COMMENTS: Group = (
    *("no", "has", "have", "with", "without", "open", "hide", "show", "toggle", "recent", "latest", "last", "top"),
    *("fa", "icon", "hljs", "token", "code"),
)
"""What may not stand before ``comment``: states of a page, lists on other pages, icons, and comments in code."""

# ---------------------------------------------------------------------- what is shown and hidden, by class or id
UNFOLDING: Group = ("accord", "collaps", "expand", "toggl", "fold", "more", "faq", "pane")
"""Parts of names of what a script unfolds on a click."""

APPEARING: Group = (
    *("slid", "carousel", "swiper", "reveal", "fade", "anim", "aos", "wow", "lazy", "drop-?down"),
    *("answer", "spoiler", "step", "solution", "translat", "transcript", "full-?text"),
)
"""Parts of names of what a script shows in time, or on request."""


CLONES: Group = ("clone", "cloned", "clones", "duplicate")
"""Whole names of the copies that a carousel makes of its first and last items."""

SCREENS: Group = (
    *("mobile", "desktop", "tablet", "tablets", "phone", "handheld", "touch", "xs", "sm", "md", "lg", "xl", "xxl"),
    *("small", "medium", "large"),
)
"""Names of screen sizes."""

SHOWING: Group = ("hide", "hidden", "show", "shown", "visible", "only", "none")
"""What stands beside the name of a screen size if an element is only for some screens, as in ``d-md-none``."""

FOR_SCREENS: Group = ("(?:mobile|desktop)(?:copy|text|content|only|title|version|view)?", "d-none", r"hidden-\w+")
"""Whole names of elements that are only for some screens, without a size or with one apart."""

PUT_AWAY: Group = ("hidden", "hide", "invisible", "display-{1,2}none")
"""Ends of classes of elements that a style sheet hides, until a script shows them, for good, or for some screens."""

# ---------------------------------------------------------------------- what is within a text but not of it
CONTROLS: Group = (
    *("print(?: (?:this|the))?(?: (?:page|article|recipe|post|story))?", "printer[- ]friendly(?: (?:page|version))?"),
    *("save", "copy(?: link)?", "e-?mail", "reply", "quote", "report", "edit", "like", "follow", "download pdf"),
    *("(?:jump|skip|go) to (?:the )?(?:recipe|video|content|main content|comments)", "back to top", "top of page"),
    *("(?:text|font) ?size", "[1-4½]x"),
    *("(?:seite |artikel )?(?:aus)?drucken", "druckversion", "(?:zum|springe zum) (?:rezept|inhalt)", "antworten"),
    *("zitieren", "melden", "nach oben", "schriftgröße", "merken", "kopieren"),
    *("imprimer", "aller (?:à la recette|au contenu)", "répondre", "citer", "signaler", "enregistrer", "copier"),
    *("haut de (?:la )?page", "taille (?:du texte|de police)"),
    *("imprimir", "(?:ir|saltar|pular) (?:a la receta|al contenido|para a receita|para o conteúdo)", "responder"),
    *("citar", "guardar", "copiar", "salvar", "volver arriba", "voltar ao topo"),
    *("stampa", "(?:vai|salta) alla ricetta", "rispondi", "salva", "torna su", "afdrukken", "printen", "beantwoorden"),
    *("(?:ga )?naar (?:het )?recept", "opslaan", "drukuj", "odpowiedz", "przejdź do przepisu", "zapisz"),
    *("печать", "распечатать", "версия для печати", "ответить", "сохранить", "перейти к рецепту", "наверх"),
    *("印刷(?:する)?", "返信(?:する)?", "保存(?:する)?", "レシピへ", "打印", "列印", "回复", "回覆", "收藏", "复制"),
    *("인쇄", "답글", "add to (?:bag|basket|cart)", "(?:book|buy|order|shop) now", "contact (?:the )?(?:seller|agent)"),
    *("in den warenkorb", "jetzt (?:buchen|kaufen)", "ajouter au panier", "añadir (?:al carrito|a la cesta)"),
    *("adicionar ao carrinho", "aggiungi al carrello", "in winkelwagen", "dodaj do koszyka", "(?:добавить )?в корзину"),
    *("カートに(?:入れる|追加)", "加入购物车", "加入購物車", "장바구니(?: 담기)?"),
    "(?:show|see|view|load) (?:more|less|all|details|(?:the )?full description)",
    *("(?:expand|collapse)(?:d| all)", "read tooltip information"),
    "(?:enlarge|zoom|view (?:larger|full[- ]?size))(?: (?:this )?(?:image|photo|picture))?",
    *("(?:mehr|weniger|alle) (?:anzeigen|ansehen)", "(?:ein|auf)klappen", "(?:bild )?vergrößern"),
    *("(?:afficher|voir) (?:plus|moins|tout)", "agrandir(?: (?:l'image|la photo))?"),
    *("(?:ver|mostrar) (?:más|menos|mais|todo|tudo)", "ampliar(?: (?:la |a )?(?:imagen|imagem|foto))?"),
    *("(?:mostra|vedi) (?:altro|meno|tutto)", "ingrandisci", "(?:toon|bekijk) (?:meer|minder|alles)"),
    *("(?:afbeelding )?vergroten", "pokaż (?:więcej|mniej|wszystko)", "powiększ", "увеличить"),
    *("(?:показать|смотреть) (?:ещё|еще|все|больше)", "свернуть", "развернуть", "もっと(?:見る|みる)"),
    *("(?:画像を)?拡大(?:する)?", "展开(?:全文)?", "收起", "查看(?:更多|全部|大图)", "点击放大", "더 ?보기"),
    "(?:이미지|사진)? ?확대(?: ?보기)?",
)
"""What controls of a page are called, complete."""

SHARING: Group = (
    "share (?:this|it)(?: (?:page|article|post|story|recipe|event|entry))?(?: (?:on|via|with your friends))?",
    *("share on (?:facebook|twitter|x|linkedin|pinterest|whatsapp|social media)", "share (?:via|with) e-?mail"),
    "(?:was|did) (?:this|you find this) (?:page|article|answer|information|topic)? ?(?:helpful|useful)",
    *("(?:war|fanden sie) (?:diese|dieser|diesen) (?:seite|artikel) hilfreich", "cette page vous a-t-elle été utile"),
    *("¿(?:te|le) (?:ha sido|ha resultado|resultó) útil (?:esta página|este artículo)", "esta página foi útil"),
    r"(?:text|font) ?size(?:\W{1,3}(?:a|small(?:er)?|medium|normal|larger?|reset)){1,9}",
    r"schriftgröße(?:\W{1,3}(?:a|klein(?:er)?|normal|gr[oö]ß(?:er)?)){1,9}",
    r"taille (?:du texte|de police)(?:\W{1,3}(?:a|petite?|normale?|grande?)){1,9}",
    *("(?:artikel |beitrag |seite )teilen", "(?:auf|über) (?:facebook|twitter|whatsapp|linkedin) teilen"),
    "partager (?:cet article|cette page|sur (?:facebook|twitter|linkedin|whatsapp))",
    "compart(?:ir|e|ilhe|ilhar) (?:est[ae] |en |no )(?:artículo|artigo|página|post|facebook|twitter|whatsapp)",
    *("condividi (?:su facebook|questo articolo|l'articolo)", "deel dit (?:artikel|bericht)"),
    *("udostępnij (?:artykuł|na facebooku)", "поделиться(?: (?:в соцсетях|статьей|ссылкой))?"),
    *("この記事を?シェア(?:する)?", "シェアする", "分享到", "分享本文", "공유하기"),
    *("click to expand", "(?:zum )?(?:vergrößern|erweitern) (?:an)?klicken", "cliquez pour (?:agrandir|développer)"),
    *("ha(?:z|cer) clic para expandir", "clique para expandir", "clicca per (?:allargare|espandere)"),
    *("klik om te vergroten", "kliknij,? aby rozwinąć", "нажмите(?:,? чтобы раскрыть| для раскрытия)"),
    "you must be (?:logged in|registered)(?: (?:and|or) (?:logged in|registered))? to "
    "(?:post a comment|reply(?: here)?|comment)",
    "(?:please )?log ?in(?: or (?:register|sign up))? to (?:reply|comment|post a comment|leave a comment)",
    "your email address will not be published(?:. required fields are marked)?",
    *("du musst angemeldet sein, um einen kommentar abzugeben", "deine e-mail-adresse wird nicht veröffentlicht"),
    "vous devez (?:être connecté|vous connecter) pour (?:publier|poster|laisser) un commentaire",
    *("debes estar conectado para (?:publicar|enviar) un comentario", "tu correo electrónico no será publicado"),
)
"""Lines above or on the controls by which a page is shared, judged, answered or made larger, complete."""

REPLIES: Group = (
    "(?:leave|post|write|add)(?: a| your)? (?:reply|comment|response|review)",
    "(?:join|start) the (?:discussion|conversation)",
    "(?:schreibe?|hinterlasse?n?)(?: sie)? einen kommentar",
    "(?:dein )?kommentar (?:schreiben|hinterlassen|verfassen)",
    *("laisser un commentaire", "(?:ajouter|publier) un commentaire", "votre commentaire"),
    *("deja(?:r)? (?:un comentario|una respuesta)", "deixe (?:um comentário|uma resposta)", "lascia un commento"),
    *("(?:laat een|geef een) (?:reactie|antwoord)(?: achter)?", "dodaj komentarz", "(?:добавить|оставить) комментарий"),
    *("コメントを(?:残す|書く)", "发表(?:评论|回复)", "댓글 (?:남기기|쓰기)"),
)
"""Headings of the form for a comment, complete."""

TAG_LABELS: Group = (
    *("tags?", "tagged(?: (?:as|with|in))?", "keywords?", "topics?", "labels?", "filed under", "posted in"),
    *("categor(?:y|ies)", "schlagw[oö]rter?", "schlagworte", "stichw[oö]rter?", "kategorien?", "themen"),
    *("mots[- ]cl[eé]s", "étiquettes", "catégories?", "etiquetas", "palabras clave", "categorías?", "categorias?"),
    *("palavras-chave", "parole chiave", "categori[ea]", "trefwoorden", "categorieën", "tagi", "słowa kluczowe"),
    *("kategorie", "теги", "метки", "рубрики", "タグ", "カテゴリー?", "キーワード", "标签", "標籤", "分类", "分類"),
    *("关键词", "태그"),
)
"""What stands before the tags of a text and a colon."""


SIGNATURES: Group = (
    "(?:(?:post|forum|user|message|bbcode|postbit|js)[-_]?)?(?:sig|signature)(?:[-_]?(?:text|content|container))?",
)
"""Names of the elements of signatures in forums, complete."""

# ---------------------------------------------------------------------- what belongs to the headline
STANDFIRSTS: Group = (
    *("dek", "deck", "standfirst", "sub-?title", "sub-?headline", "sub-?heading", "rubric", "teaser-?text"),
    *("lead-?text", "article-?lead", "chap[oô]", "chapeau", "untertitel", "vorspann", "entradilla", "bajada"),
    *("sottotitolo", "ingress"),
)
"""Whole names of the sentence below a headline that says what the text is about."""

TITLES: Group = (
    *(r"title\d?", "headline", "head", "heading", "subject", "name", "titel", "titre", "t[ií]tulo", "titolo"),
    *("tytu[lł]", "biaoti"),
)
"""Whole names of the title of a text that is no heading."""

HEROES: Group = ("hero", "jumbotron")
"""Parts of names of the element at the top of a site, with its name, a sentence and links."""

# ---------------------------------------------------------------------- texts that are shown instead of content
ERROR_CODE = "(?:400|401|403|404|410|429|500|502|503|504)"
ERROR_REASON = (
    "(?:bad request|unauthori[sz]ed|forbidden|not found|gone|too many requests|internal server error|bad gateway"
    "|service (?:temporarily )?unavailable|gateway time-?out)"
)
"""The reasons that servers give with these codes (RFC 9110)."""

ERRORS: Group = (
    rf"(?:http |error )*{ERROR_CODE}\W+{ERROR_REASON}\b",
    r"(?:\w+\W+){0,3}page (?:you .{0,40}?)?(?:was |is |could |can|does )?(?:not |n.t |.t )(?:be )?"
    r"(?:found|exist|available)",
    *("seite nicht gefunden", "page (?:introuvable|non trouvée)", "página no encontrada", "página não encontrada"),
    *("pagina non trovata", "pagina niet gevonden", "nie znaleziono strony", "страница не найдена"),
    *("доступ запрещ[её]н", "页面(?:不存在|未找到)", "找不到(?:该)?页面", "访问被拒绝"),
    *("ページが見つかりません", "페이지를 찾을 수 없"),
)
"""Beginnings of the texts of error pages."""

WALLS: Group = (
    *(r"just a moment\b", "attention required", "pardon our interruption", "are you (?:a human|a robot|human)"),
    *(r"access (?:to this page )?(?:is |has been )?denied\b", "you (?:do not|don.t) have permission"),
    "(?:checking|verifying) (?:your browser|(?:that )?you are|if the site connection)",
    "(?:our systems have detected )?unusual traffic",
    r"(?:please |you (?:need|have) to )(?:enable|turn on|activate) (?:javascript|js|cookies)\b",
    r"(?:this )?\w+ requires javascript",
    "javascript (?:is (?:disabled|required)|must be enabled)",
    r".{0,40}\bto be redirected\b",
)
"""Beginnings of what bot walls, and pages that need scripts, say to a client that they do not serve."""

WAITING: Group = ("loading", "redirecting", "please wait", "one moment")
"""Texts to read while a page loads."""

# ---------------------------------------------------------------------- prices
CURRENCIES = (
    r"[$€£¥￥₹₽₩￦₺฿₪₫₴₦₸₱]|(?<![^\W\d])(?:usd|eur|gbp|aud|cad|chf|cny|jpy|inr|brl|mxn|sek|nok|dkk|pln|czk|huf|zar|aed"
    r"|kr|zł|kč|lei|rub|руб|грн|(?-i:RON|TRY|TL|Ft))(?![^\W\d])|(?<=\d)\s?(?:万?円|元|만?원|:-)|\brs\.?(?=\s?\d)"
)
"""A pattern for currency signs, and codes of ISO 4217 and of shops that stand beside a number."""
AMOUNT = r"(?:\d{1,3}(?:\s\d{3}){1,3}(?:[.,]\d{1,2})?|\d[\d.,'’]{0,15})[-–—]?"
"""A pattern for the number of a price, such as 1,299.00, 785 000 and 45,-."""


def folded(text: str) -> str:
    """Return a text in lower case, with the letters that ``re.I`` takes for ASCII ones replaced by these.

    A search in it is several times as fast as one with ``re.I``.
    """
    if text.isascii():
        return text.lower()
    return text.replace("\u0130", "i").lower().replace("\u0131", "i").replace("\u017f", "s")


def found_in(name: str, pattern: NamePattern) -> bool:
    """Return True if a pattern in lower case is found in a name of any case, with white space before it.

    A pattern that must match white space or a hyphen before a word is many times faster than one that may also match
    the beginning of the text.
    """
    return pattern.pattern.search(f"\n{folded(name[:LONGEST_CLASS])}") is not None


class NameIndex:
    """The names of a page's nodes as one text, because most patterns are not in any name of most pages."""

    def __init__(self, names: Sequence[str]) -> None:
        """Only the beginning of each name, with at most :data:`LONGEST_CLASS` characters, is searched."""
        self._of_nodes, self._unique = names, [*set(names)]
        self._folded = folded("\0".join([name[:LONGEST_CLASS] for name in self._unique])).split("\0") if names else []
        # Names have many parts in common. Each is searched once, with white space before it.
        self._text = "\n" + "\n".join({*" ".join(self._folded).split()}) + "\n"

    def matching(self, pattern: NamePattern) -> list[int]:
        """Return the nodes with a name of any case in which a pattern is found (:func:`found_in`)."""
        text, search = self._text, pattern.pattern.search
        lines = set[str]()
        for literal in pattern.literals:
            at = text.find(literal)
            while at >= 0:
                end = text.find("\n", at)
                lines.add(text[text.rfind("\n", 0, at) : end])
                at = text.find(literal, end)
        matched = {line[1:] for line in lines if search(line)}
        if not matched:
            return []
        pairs = zip(self._unique, self._folded, strict=True)
        found = {name for name, own in pairs if not matched.isdisjoint(own.split())}
        return [i for i, name in enumerate(self._of_nodes) if name in found]
