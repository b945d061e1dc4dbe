"""Convert AsciiMath to LaTeX, following the grammar of https://asciimath.org."""

from __future__ import annotations

import re

from scrapy_dripper.output.math.tex import argument, group, join, polish, text, tidy
from scrapy_dripper.output.math.tex_symbols import FUNCTIONS, LETTERS

MAX_DEPTH = 40
"""Maximum nesting of brackets. Anything deeper is read as text."""

_COMMANDS = {
    "+-": "pm", "-+": "mp", "*": "cdot", "**": "ast", "***": "star", "//": "/", "\\\\": "backslash", "xx": "times",
    "-:": "div", "@": "circ", "o+": "oplus", "ox": "otimes", "o.": "odot", "^^": "wedge", "^^^": "bigwedge",
    "vv": "vee", "vvv": "bigvee", "nn": "cap", "nnn": "bigcap", "uu": "cup", "uuu": "bigcup", "!=": "neq",
    "<=": "leq", "lt": "<", "gt": ">", "le": "leq", "ge": "geq", ">=": "geq", "-<": "prec", "-<=": "preceq",
    ">-": "succ", ">-=": "succeq",
    "in": "in", "!in": "notin", "sub": "subset", "sup": "supset", "sube": "subseteq", "supe": "supseteq", "-=": "equiv",
    "~=": "cong", "~~": "approx", "~": "sim", "prop": "propto", "or": "text{ or }", "and": "text{ and }", "not": "neg",
    "=>": "Rightarrow", "if": "text{ if }", "<=>": "iff", "iff": "iff", "AA": "forall", "EE": "exists", "_|_": "bot",
    "TT": "top", "|--": "vdash", "|==": "models", "int": "int", "oint": "oint", "del": "partial", "grad": "nabla",
    "O/": "emptyset", "oo": "infty", "aleph": "aleph", ":.": "therefore", ":'": "because", "/_": "angle",
    "/_\\": "triangle", "...": "ldots", "cdots": "cdots", "vdots": "vdots", "ddots": "ddots", "diamond": "diamond",
    "square": "square", "|__": "lfloor", "__|": "rfloor", "|~": "lceil", "~|": "rceil", "CC": "mathbb{C}",
    "NN": "mathbb{N}", "QQ": "mathbb{Q}", "RR": "mathbb{R}", "ZZ": "mathbb{Z}", "uarr": "uparrow", "darr": "downarrow",
    "rarr": "rightarrow", "->": "to", "->>": "twoheadrightarrow", ">->": "rightarrowtail", "|->": "mapsto",
    "larr": "leftarrow", "harr": "leftrightarrow", "rArr": "Rightarrow", "lArr": "Leftarrow", "hArr": "Leftrightarrow",
    "sum": "sum", "prod": "prod", "quad": "quad", "qquad": "qquad", "setminus": "setminus", "times": "times",
    "div": "div", "pm": "pm", "infty": "infty", "to": "to", "cdot": "cdot", "ne": "neq", "leq": "leq", "geq": "geq",
    "rightarrow": "rightarrow", "partial": "partial", "nabla": "nabla", "forall": "forall", "exists": "exists",
    "approx": "approx", "equiv": "equiv", "subset": "subset", "cup": "cup", "cap": "cap", "mod": "bmod",
    "mapsto": "mapsto", "therefore": "therefore", "ldots": "ldots", "neg": "neg",
}  # fmt: skip
_RELATIONS = frozenset(
    "= != < > <= >= lt gt le ge ne leq geq in !in sub sup sube supe -= ~= ~~ ~ prop -> to => <=> iff |-> + - +- -+ pm "
    "xx times nn uu vv ^^ or and if".split()
)
_UNARY = {
    "sqrt": "\\sqrt{}", "hat": "\\hat{}", "bar": "\\overline{}", "vec": "\\vec{}", "dot": "\\dot{}", "ddot": "\\ddot{}",
    "tilde": "\\tilde{}", "ul": "\\underline{}", "underline": "\\underline{}", "ubrace": "\\underbrace{}",
    "obrace": "\\overbrace{}", "cancel": "\\cancel{}", "overline": "\\overline{}", "bb": "\\mathbf{}",
    "bbb": "\\mathbb{}", "cc": "\\mathcal{}", "tt": "\\mathtt{}", "fr": "\\mathfrak{}", "sf": "\\mathsf{}",
    "mathbf": "\\mathbf{}", "mathbb": "\\mathbb{}", "mathcal": "\\mathcal{}", "mathrm": "\\mathrm{}",
}  # fmt: skip
_FENCED = {
    "abs": ("|", "|"), "norm": ("\\|", "\\|"), "floor": ("\\lfloor", "\\rfloor"), "ceil": ("\\lceil", "\\rceil"),
}  # fmt: skip
_BINARY = {
    "frac": "\\frac{0}{1}", "root": "\\sqrt[0]{1}", "stackrel": "\\overset{0}{1}", "overset": "\\overset{0}{1}",
    "underset": "\\underset{0}{1}",
}  # fmt: skip
_OPEN = {"(": "(", "[": "[", "{": "\\{", "(:": "\\langle", "<<": "\\langle", "{:": ".", "|:": "|"}
_CLOSE = {")": ")", "]": "]", "}": "\\}", ":)": "\\rangle", ">>": "\\rangle", ":}": ".", ":|": "|"}
_LIMITS = ("\\sum", "\\prod", "\\int", "\\lim", "\\bigcap", "\\bigcup")
_TALL = ("\\frac", "\\sum", "\\prod", "\\int", "\\begin")

_words = sorted(
    {*_COMMANDS, *_UNARY, *_FENCED, *_BINARY, *_OPEN, *_CLOSE, *FUNCTIONS, *(name[1:] for name in LETTERS.values())},
    key=len,
)
_token = re.compile(
    r"\s*(?:(?P<text>\"[^\"]*\"|(?:text|mbox)\s*(?:\([^)]*\)|\{[^}]*\}|\[[^\]]*\]))|(?P<number>\d+(?:\.\d+)?)|(?P<name>"
    + "|".join(re.escape(word) for word in reversed(_words))
    + r")|(?P<other>\S))",
    re.DOTALL,
).match
_joints = re.compile(r" ([-=+<>]) ").sub
_ESCAPED = {"#": "\\#", "$": "\\$", "%": "\\%", "&": "\\&", "\\": "\\backslash", "}": "\\}", "{": "\\{"}


def latex(source: str) -> str:
    """Convert an AsciiMath formula to LaTeX without delimiters and with balanced braces. Never raises."""
    reader = _Reader(source)
    pieces: list[str] = []
    while reader.kind:
        pieces.append(reader.expression())
        if reader.kind:  # an unmatched closing bracket
            pieces += (_ESCAPED.get(char, char) for char in reader.word)
            reader.advance()
    return polish(join(pieces))


class _Reader:
    """A recursive descent parser for one formula."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0
        self._depth = 0
        self.kind = self.word = ""
        self.advance()

    def advance(self) -> None:
        """Read the next token. ``kind`` is empty at the end."""
        found = _token(self._source, self._at)
        if found is None:
            self.kind = self.word = ""
            return
        self._at = found.end()
        self.kind = found.lastgroup or ""
        self.word = found[self.kind]

    def expression(self, until: str = "") -> str:
        """Return everything up to a closing bracket, or up to a bar if one is open."""
        pieces: list[str] = []
        while self.kind and self.word not in _CLOSE and self.word != until:
            word = self.word
            piece = self._scripted()
            if self.word == "/" and self.kind:
                self.advance()
                below = self._scripted(bare=True) if self.kind and self.word not in _CLOSE else ""
                piece = f"\\frac{group(_bare(piece))}{group(below)}"
            if word in _RELATIONS and pieces and pieces[-1][-1:] != " ":
                piece = f" {piece} "
            elif word in (",", ";") or piece.startswith(_LIMITS):
                piece += " "
            pieces.append(piece)
        return join(pieces)

    def _scripted(self, bare: bool = False) -> str:
        """Return a simple expression with its sub- and superscript."""
        base = self._simple()
        below = above = ""
        if self.word == "_" and self.kind:
            self.advance()
            below = "_" + argument(_tight(self._simple()))
        if self.word == "^" and self.kind:
            self.advance()
            above = "^" + argument(_tight(self._simple()))
        if bare and not below and not above:
            return _bare(base)
        return (base or "{}") + below + above if below or above else base

    def _simple(self) -> str:
        kind, word = self.kind, self.word
        if not kind or self._depth >= MAX_DEPTH:
            self.advance()
            return "" if not kind else text(word)
        self._depth += 1
        written = self._one(kind, word)
        self._depth -= 1
        return written

    def _one(self, kind: str, word: str) -> str:
        if word in _CLOSE:
            return ""
        self.advance()
        if kind == "text":
            return text(word[1:-1] if word[0] == '"' else re.split(r"[(\[{]", word, maxsplit=1)[1][:-1])
        if word in _OPEN:
            return self._bracketed(word)
        if word == "|":
            content = self.expression(until="|")
            if self.word != "|":
                return join(["|", content])
            self.advance()
            return _between("|", content, "|")
        if word in _FENCED:
            left, right = _FENCED[word]
            return _between(left, _bare(self._simple()), right)
        if word in _UNARY:
            return _UNARY[word].replace("{}", group(_bare(self._simple())), 1)
        if word in _BINARY:
            first, second = tidy(_bare(self._simple())), tidy(_bare(self._simple()))
            head, middle, _ = re.split("[01]", _BINARY[word])
            return f"{head}{first}{middle}{second}}}"
        if word in _COMMANDS:
            command = _COMMANDS[word]
            return command if command in "<>/" else f"\\{command}"
        if kind == "name":
            return f"\\{word}"
        return _ESCAPED.get(word, "" if word in "_^" else word)

    def _bracketed(self, opening: str) -> str:
        start = self._at - len(self.word)
        content = self.expression()
        closing = self.word if self.kind else ""
        if closing:
            rows = self._rows(start)
            self.advance()
            if rows:
                return _matrix(rows, opening, closing)
        left, right = _OPEN[opening], _CLOSE.get(closing, ".")
        if closing and "." in (left, right):
            return join([f"\\left{left}", content, f"\\right{right}"])
        return _between(left, content, right if closing else "")

    def _rows(self, start: int) -> list[str]:
        """Return the rows of a matrix if that is the content of a bracket: ``[a, b], [c, d]``."""
        inner = self._source[start : self._at - len(self.word)].strip()
        if inner[:1] not in ("[", "(") or len(inner) > 2_000:
            return []
        close = "]" if inner[0] == "[" else ")"
        rows: list[str] = []
        depth = begin = 0
        for i, char in enumerate(inner):
            if char in "([{":
                begin = i + 1 if depth == 0 else begin
                depth += 1
            elif char in ")]}":
                depth -= 1
                if depth == 0:
                    if char != close:
                        return []
                    rows.append(inner[begin:i])
            elif depth == 0 and char not in ", \n\t":
                return []
        return rows if len(rows) > 1 and len({row.count(",") for row in rows}) == 1 and self._depth < 8 else []


def _matrix(rows: list[str], opening: str, closing: str) -> str:
    content = " \\\\ ".join(" & ".join(latex(cell) for cell in _cells(row)) for row in rows)
    pair = opening + closing
    if pair == "{:}":
        return f"\\begin{{cases}} {content} \\end{{cases}}"
    name = {"[]": "bmatrix", "()": "pmatrix", "{}": "Bmatrix", "|::|": "vmatrix"}.get(pair, "matrix")
    matrix = f"\\begin{{{name}}} {content} \\end{{{name}}}"
    return (
        matrix
        if name != "matrix" or pair == "{::}"
        else join([f"\\left{_OPEN[opening]}", matrix, f"\\right{_CLOSE[closing]}"])
    )


def _cells(row: str) -> list[str]:
    cells, depth, begin = [], 0, 0
    for i, char in enumerate(row):
        depth += (char in "([{") - (char in ")]}")
        if char == "," and depth == 0:
            cells.append(row[begin:i])
            begin = i + 1
    return [*cells, row[begin:]]


def _between(left: str, content: str, right: str) -> str:
    """Put content in brackets, which grow with it."""
    if right and any(command in content for command in _TALL):
        return join([f"\\left{left}", content, f"\\right{right}"])
    return join([left, content, right])


def _tight(tex: str) -> str:
    """Return a sub- or superscript, which has no spaces."""
    return _joints(r"\1", _bare(tex))


def _bare(tex: str) -> str:
    """Return an argument without brackets that only group it."""
    for opening, closing in (
        ("\\left(", "\\right)"),
        ("\\left\\{", "\\right\\}"),
        ("(", ")"),
        ("\\{", "\\}"),
        ("[", "]"),
    ):
        if tex.startswith(opening) and tex.endswith(closing) and len(tex) >= len(opening) + len(closing):
            inner = tex[len(opening) : -len(closing)]
            depth = 0
            for char in inner:
                depth += (char in "([") - (char in ")]")
                if depth < 0:
                    return tex
            return inner.strip(" ") if inner.count("{") == inner.count("}") else tex
    return tex
