"""Mathematical typesetting of plain notation such as ``c* sigma^2 log n``.

Sources and terminals have plain text.  Pages have HTML of it, figures labels for matplotlib, and
formulas on a line of their own MathML, which browsers show without any script.
"""

from __future__ import annotations

import html
import re
import unicodedata

_SMALL = "alpha beta gamma delta epsilon eta theta kappa lambda mu nu xi rho sigma tau phi psi"
_CAPITAL = "Gamma Delta Theta Sigma Psi"
GREEK = {  # Unicode spells lambda as LAMDA
    name: unicodedata.lookup(f"GREEK {size} LETTER {name.upper().replace('LAMBDA', 'LAMDA')}")
    for size, names in (("SMALL", _SMALL), ("CAPITAL", _CAPITAL))
    for name in names.split()
}
_HAT = "\N{COMBINING CIRCUMFLEX ACCENT}"
_SIGNS = {"<=": "≤", ">=": "≥", "->": "→", "!=": "≠"}
_NAME = "|".join(sorted(GREEK, key=len, reverse=True))
_BASE = rf"(?:{_NAME}|[A-Za-z])"
_EXPONENT = r"(?:\{[^{}]*\}|-?[A-Za-z0-9]+(?:\.\d+)?(?:-[A-Z]+)*)"
_INDEX = r"(?:\{[^{}]*\}|(?:min|max|[A-Za-z0-9]{1,2})(?![A-Za-z0-9_]))"
_STAR = r"\*(?=_|[^\w*]|$)"
_MINUS = "\N{MINUS SIGN}"
_WORD = r"(?<![\w.\-`'])"  # what begins here is no part of a word, a path or a flag
_SYMBOL = re.compile(
    rf"{_WORD}<(?![=-])(?P<left>[^<>\n]{{1,40}}), (?P<right>[^<>\n]{{1,40}})>"
    rf"|{_WORD}sqrt\((?P<root>[^()]*)\)"
    rf"|{_WORD}(?P<base>{_BASE}|sum(?=_))(?P<hat>-hat)?(?P<star>{_STAR})?"
    rf"(?:_(?P<index>{_INDEX}))?(?P<late>{_STAR})?(?:\^(?P<power>{_EXPONENT}))?(?![\w\-])"
    rf"|(?<=[\w)|])\^(?P<exponent>{_EXPONENT})"
    r"|(?P<sign><=|>=|->|!=)"
)
_LOG = re.compile(r"(?<![\w<])([nt])(?= = |=\d)|(?<=log )([nkst])\b")


def as_html(text: str, quote: bool = True) -> str:
    """Escape text, and set its symbols: Greek letters, exponents, indices, hats, stars.

    ``quote`` says whether to escape quotation marks, too.
    """
    parts, last = [], 0
    for match in _SYMBOL.finditer(text):
        symbol = _in_html(match)
        if symbol is None:
            continue
        parts += [_plain(text[last : match.start()], quote), symbol]
        last = match.end()
    return "".join([*parts, _plain(text[last:], quote)])


def _plain(text: str, quote: bool) -> str:
    return _LOG.sub(lambda found: f"<i>{found.group()}</i>", html.escape(text, quote))


def _in_html(match: re.Match[str]) -> str | None:
    """HTML of a match; None if it is an ordinary letter or word."""
    part = match.groupdict()
    if part["left"] is not None:
        return f"⟨{as_html(part['left'])}, {as_html(part['right'])}⟩"
    if part["root"] is not None:
        inner = as_html(part["root"])
        return f"√{inner}" if re.fullmatch(r"\w+", part["root"]) else f"√({inner})"
    if part["exponent"] is not None:
        return f"<sup>{_inner(part['exponent'])}</sup>"
    if part["sign"] is not None:
        return _SIGNS[part["sign"]]
    name, star = part["base"], "*" if part["star"] or part["late"] else ""
    marks = any((part["hat"], star, part["index"], part["power"]))
    if name not in GREEK and not marks:
        return None
    hat = _HAT if part["hat"] else ""
    letter = "∑" if name == "sum" else GREEK[name] + hat if name in GREEK else f"<i>{name}{hat}</i>"
    text = letter + star
    text += f"<sub>{_inner(part['index'])}</sub>" if part["index"] else ""
    return text + (f"<sup>{_inner(part['power'])}</sup>" if part["power"] else "")


def _inner(text: str) -> str:
    """HTML of an exponent or an index, with a minus sign in place of a leading hyphen."""
    return as_html(text.strip("{}").replace("-", _MINUS) if text[0] == "-" else text.strip("{}"))


def as_label(text: str) -> str:
    """Text for a figure: the same symbols, as matplotlib has them; one with formulas stays."""
    if "$" in text:
        return text
    text = re.sub(rf"{_WORD}({_NAME})(?![\w])", lambda found: GREEK[found[1]], text)
    text = re.sub(r"sqrt\((\w+)\)", r"√\1", text)
    text = re.sub(r"(?<!\w)([cx])\*(?!\w)", r"$\1^*$", text)
    return re.sub(rf"(\w+)\^({_EXPONENT})", _raised, text)


def _raised(match: re.Match[str]) -> str:
    base = match[1]
    upright = base if len(base) == 1 and not base.isdigit() else rf"\mathregular{{{base}}}"
    power = match[2].strip("{}")
    return rf"${upright}^{{\mathregular{{{power}}}}}$"


_TOKEN = re.compile(
    rf"\s*(?:(?P<number>\d[\d.,]*\d|\d)|(?P<name>(?:{_NAME})(?![A-Za-z])|[A-Za-z]+)"
    r"(?P<hat>-hat)?|(?P<sign><=|>=|->|!=|.))"
)
_FUNCTIONS = {"log", "liminf", "min", "max", "sup", "det", "exp"}
_SUM = "<mo>∑</mo>"
_OPENING = {"(": ")", "[": "]", "|": "|", "<": ">"}


def as_mathml(formula: str) -> str:
    """Set a formula on a line of its own, such as ``R_n / (c* sigma^2 log n) -> 1``.

    Words in double quotes are text, braces group, ``a / b`` is a fraction, and ``a // b`` stays in
    one line.
    """
    return f'<math display="block">{_Reader(formula).row("")}</math>'


class _Reader:
    """Reads plain notation from left to right."""

    def __init__(self, text: str) -> None:
        texts = re.findall(r'"([^"]*)"', text)
        self.texts = iter(texts)
        self.tokens = [m for m in _TOKEN.finditer(re.sub(r'"[^"]*"', '"', text)) if m[0].strip()]
        self.at = 0

    def _peek(self) -> str:
        return self.tokens[self.at][0].strip() if self.at < len(self.tokens) else ""

    def row(self, end: str) -> str:
        """Elements until a closing sign."""
        parts: list[str] = []
        while self._peek() not in ("", end):
            if self._peek() == "/" and parts:
                self.at += 1
                if self._peek() == "/":
                    self.at += 1
                    parts.append("<mo>/</mo>")
                    continue
                parts.append(f"<mfrac>{_bare(parts.pop())}{_bare(self._scripted())}</mfrac>")
            else:
                parts.append(self._scripted())
        self.at += 1
        return "".join(parts)

    def _scripted(self) -> str:
        """One element with its star, index and exponent."""
        base = self._element()
        scripts: dict[str, str] = {}
        while (sign := self._peek()) in ("_", "^", "*") and (base == _SUM or base[:4] != "<mo>"):
            self.at += 1
            if sign == "*":
                scripts["^"] = "<mo>*</mo>" + scripts.get("^", "")
            else:
                scripts[sign] = scripts.get(sign, "") + _bare(self._element())
        if not scripts:
            return base
        kind = {"_": "msub", "^": "msup"}[next(iter(scripts))] if len(scripts) == 1 else "msubsup"
        inner = "".join(f"<mrow>{scripts[sign]}</mrow>" for sign in "_^" if sign in scripts)
        return f"<{kind}>{base}{inner}</{kind}>"

    def _element(self) -> str:
        token = self.tokens[self.at]
        self.at += 1
        if token["number"]:
            return f"<mn>{token['number']}</mn>"
        if token["name"]:
            return self._named(token["name"], bool(token["hat"]))
        sign = token["sign"]
        if sign == '"':
            return f"<mtext>&#xa0;{html.escape(next(self.texts))}&#xa0;</mtext>"
        if sign == "{":
            return f"<mrow>{self.row('}')}</mrow>"
        if sign in _OPENING and (sign != "<" or self._is_inner_product()):
            inner = self.row(_OPENING[sign])
            left, right = ("⟨", "⟩") if sign == "<" else (sign, _OPENING[sign])
            fence = "<mo>" if "<mfrac" in inner or "<msqrt" in inner else '<mo stretchy="false">'
            return f"<mrow>{fence}{left}</mo>{inner}{fence}{right}</mo></mrow>"
        return f"<mo>{html.escape(_SIGNS.get(sign, sign)).replace('-', _MINUS)}</mo>"

    def _is_inner_product(self) -> bool:
        rest = "".join(token[0] for token in self.tokens[self.at :])
        return re.match(r"[^<>]*, [^<>]*>", rest) is not None

    def _named(self, name: str, hat: bool) -> str:
        if name == "sqrt" and self._peek() == "(":
            self.at += 1
            return f"<msqrt>{self.row(')')}</msqrt>"
        if name == "sum":
            return _SUM
        symbol = f"<mi>{GREEK.get(name, name)}</mi>"
        if name in _FUNCTIONS and self._peek() != "(":
            symbol = f'<mrow>{symbol}<mspace width="0.17em"/></mrow>'
        return f'<mover accent="true">{symbol}<mo>^</mo></mover>' if hat else symbol


def _bare(element: str) -> str:
    """Drop parentheses that a fraction bar or a raised position makes needless."""
    found = re.fullmatch(r"<mrow><mo[^>]*>\(</mo>(.*)<mo[^>]*>\)</mo></mrow>", element)
    return f"<mrow>{found[1]}</mrow>" if found else element
