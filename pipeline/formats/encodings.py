"""Detect the encoding of a text, or find candidates if it is uncertain."""

import codecs
import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import combinations, islice, pairwise
from typing import NamedTuple

from pipeline.errors import InputError, UsageError
from pipeline.formats.edits import Bytes
from pipeline.rules.payee_names import MISREAD
from pipeline.wording import Sentence

ENCODINGS = (
    *("utf-8", "cp1252", "cp1250", "cp850", "cp852", "iso-8859-2", "mac-roman", "cp1257", "cp1254"),
    *("cp1255", "cp1251", "cp1253", "mac-latin2", "latin-1", "iso-8859-15", "iso-8859-5", "iso-8859-7"),
    *("iso-8859-9", "cp866", "koi8-r", "koi8-u", "cp737", "cp857", "cp775", "cp1256", "shift_jis", "euc-kr"),
    *("cp860", "cp861", "cp862", "mac-cyrillic", "iso-8859-4", "gb18030", "big5", "cp869"),
    *("iso-8859-3", "iso-8859-16", "mac-greek", "mac-turkish", "mac-romanian", "iso-8859-6", "cp855"),
    *("utf-16-le", "utf-16-be"),
)
"""The encodings to propose, the likely ones first; users may name any other that Python reads."""
_UTF_8 = ("utf-8", "utf-8-sig")
_OF_OTHER_THINGS = {"utf-7", "idna", "punycode", "unicode-escape", "raw-unicode-escape", "mbcs", "oem"}
"""Python codecs that no file uses, or that differ between machines."""
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
"""Start of a text -> its encoding; the mark of UTF-32 starts like that of UTF-16."""
BYTE_ORDER_MARKS = (codecs.BOM_UTF8, *(mark for mark, _ in _MARKS))
_ASCII = bytes(range(128))
_CHUNK_BYTES = 64 * 1024
_READINGS_MAX = 3
_LINES_MAX = 500  # number of lines that show whether an encoding is right
_LANGUAGES_MAX = 3
_CELLS_SHOWN = 3
_CELL_CHARS_MAX = 40
_MISREAD = re.compile(MISREAD)
_HIGH = re.compile(rb"[\x80-\xff]")
_LINE_WITH_HIGH = re.compile(rb"[^\r\n]*[\x80-\xff][^\r\n]*")
_CELL = re.compile(rb'[,;\t"]')
_WORD = re.compile(r"[^\W\d_]+")
_WORD_CHARS_MIN = 3
_LATIN_LAST = "\u024f"
_VOWEL = re.compile("[αεηιουωάέήίόύώϊϋΐΰаеёиоуыэюяєії]", re.IGNORECASE)
_MARK = re.compile(r"[^\w\s\x00-\x7f]")
_MARK_WITHIN = re.compile(r"(?<=[^\W\d_])[^\w\s\x00-\x7f](?=[^\W\d_])")
_WITHIN = "\u2019\u2010\u2011\u2013·"
"""Characters allowed within words: an apostrophe, hyphens, and the Catalan middle dot."""
_AROUND = "\u2018\u2019\u2013“”„«»—…€£§°ºª·\xa0"


class Reading(NamedTuple):
    """A possible reading of a text, in one encoding."""

    encoding: str
    cells: tuple[str, ...]  # the first cells that another encoding would read differently


def codec_of(encoding: str) -> str:
    """Return the codec with this name or alias (UsageError: Python has no such text encoding)."""
    codec = ""
    try:
        codec = codecs.lookup(encoding).name
        is_text = codec not in _OF_OTHER_THINGS and '"a,1"\n'.encode(codec).decode(codec) == '"a,1"\n'
    except (LookupError, ValueError):
        is_text = False
    if not is_text:
        raise UsageError(
            Sentence("csv.encoding_not_supported", encoding=encoding),
            advice=Sentence("csv.choose_encoding", encodings=list(ENCODINGS)),
        )
    return codec


def is_utf_8(codec: str) -> bool:
    """True if a codec is UTF-8."""
    return codec in _UTF_8


@cache
def keeps_ascii(codec: str) -> bool:
    """True if an encoding keeps every ASCII byte, so that line endings are found in its bytes."""
    try:
        return _ASCII.decode(codec) == _ASCII.decode("ascii")
    except UnicodeError:
        return False


@cache
def has_one_byte_each(codec: str) -> bool:
    """True if each character of an ASCII-compatible encoding is one byte."""
    return keeps_ascii(codec) and len(b"\x81\x40\xa1\xa1".decode(codec, "replace")) == 4


def marked_encoding(head: Bytes) -> str | None:
    """Return the encoding that a byte order mark shows, except UTF-8; None without a mark.

    >>> marked_encoding("a".encode("utf-16")), marked_encoding("a".encode("utf-32")), marked_encoding(b"a")
    ('utf-16', 'utf-32', None)
    """
    start = bytes(head[:4])
    return next((encoding for mark, encoding in _MARKS if start.startswith(mark)), None)


def wide_encoding_of(start: bytes | str) -> str:
    r"""Return the encoding of an unmarked text with NUL bytes, by the byte order of its first letter.

    >>> wide_encoding_of("P".encode("utf-16-be")), wide_encoding_of("P\0a")
    ('utf-16-be', 'utf-16-le')
    """
    return "utf-16-be" if start[:1] in (b"\0", "\0") else "utf-16-le"


def not_utf_8_at(text: Bytes) -> int | None:
    """Return the offset of the first byte that is not UTF-8; None if the text is valid."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(text), _CHUNK_BYTES):
        stop = start + _CHUNK_BYTES
        # The chunk may end inside a character: the decoder keeps its first bytes.
        kept = len(decoder.getstate()[0])
        try:
            decoder.decode(text[start:stop], final=stop >= len(text))
        except UnicodeDecodeError as error:
            return start - kept + error.start
    return None


def has_utf_8_signs(text: Bytes) -> bool:
    """True if a text is valid UTF-8 with multi-byte characters, which text in other encodings rarely is.

    >>> has_utf_8_signs("Zoë".encode()), has_utf_8_signs("Zoë".encode("latin-1")), has_utf_8_signs(b"Zoe")
    (True, False, False)
    """
    return not text[:].isascii() and not_utf_8_at(text) is None


def refuse_false_encoding(data: bytes, encoding: str, *, where: str) -> None:
    """Refuse UTF-8 if another encoding is given (InputError): names would be misread."""
    if not is_utf_8(codec_of(encoding)) and has_utf_8_signs(data):
        sentence = Sentence("csv.file_is_utf_8", where=where, encoding=encoding)
        raise InputError(sentence, advice=Sentence("advice.read_as_utf_8"))


def refuse_other_encoding(data: bytes, encoding: str, *, where: str) -> None:
    """Refuse an encoding in which most names are misspelt, if there is a better one (InputError)."""
    if has_one_byte_each(codec_of(encoding)):
        lines = islice(_LINE_WITH_HIGH.finditer(data), _LINES_MAX)
        cells = [cell for line in lines for cell in _CELL.split(line[0]) if _HIGH.search(cell)]
        if better_encoding(cells, encoding) is not None:
            raw = b"\n".join(cells)
            text = raw.decode(encoding, "replace")
            found = [each for each in readings(raw) if raw.decode(each.encoding) != text]
            sentence = Sentence("csv.names_misspelt_in_encoding", where=where, encoding=encoding)
            raise InputError(sentence, advice=_advice(found))


def not_in_encoding(data: bytes, offset: int, *, where: str, encoding: str = "utf-8") -> InputError:
    """Return the refusal of a text with an invalid byte, and the encodings that fit."""
    if b"\0" in data[max(0, offset - _CHUNK_BYTES) : offset + _CHUNK_BYTES]:
        read_as = Sentence("advice.read_as_if_csv", choices=[wide_encoding_of(data[:2])])
        advice = Sentence("csv.give_csv_itself"), read_as
        return InputError(Sentence("csv.not_a_text_file", where=where), advice=advice)
    line = data.count(b"\n", 0, offset) + data.count(b"\r", 0, offset) - data.count(b"\r\n", 0, offset) + 1
    reason = Sentence(
        "csv.byte_not_in_encoding", where=where, line=line, encoding=encoding.replace("utf", "UTF")
    )
    found = readings(data)
    if not found and _is_mostly_utf_8(data):
        return InputError(
            reason, advice=(Sentence("csv.correct_line_not_utf_8"), Sentence("csv.export_as_utf_8"))
        )
    if not found:
        choose = Sentence("advice.choose_encoding", choices=list(ENCODINGS[1:]))
        return InputError(reason, advice=(Sentence("csv.export_as_utf_8"), choose))
    return InputError(reason, advice=_advice(found))


def _advice(found: Sequence[Reading]) -> Sentence:
    pairs = [Sentence("advice.reading", encoding=each.encoding, cells=[*each.cells]) for each in found]
    choices = [each.encoding for each in found]
    return Sentence("advice.choose_reading", choices=choices, readings=pairs)


def _is_mostly_utf_8(data: bytes) -> bool:
    """True if most lines with characters beyond ASCII are UTF-8: any other encoding would misread them."""
    lines = Counter(not_utf_8_at(line[0]) is None for line in _LINE_WITH_HIGH.finditer(data))
    return lines[True] >= max(1, lines[False])


def readings(data: bytes) -> list[Reading]:
    """Return the two or three most likely readings of a text that is not UTF-8, the likeliest first.

    In a wrong encoding, names have signs within words, capitals after small letters, or letters that no
    language combines. Encodings that read every cell alike count as one.
    """
    cells = (cell for line in _LINE_WITH_HIGH.finditer(data) for cell in _CELL.split(line[0]))
    raw = dict.fromkeys(filter(_HIGH.search, cells))
    first = data[:_CHUNK_BYTES].lstrip().split(b"\n", 1)[0].decode("ascii", "ignore")
    header = re.split(r"[\W_]+", first.lower())
    spoken = {name for name, each in _alphabets().items() if each.words & {*header}}
    found: dict[str, tuple[tuple[int, ...], str]] = {}
    for place, encoding in enumerate(ENCODINGS[1:-2]):
        try:
            text = b"\n".join(raw).decode(encoding)
        except UnicodeDecodeError:
            continue
        if text not in found and (oddity := _oddity(text, spoken)) is not None:
            found[text] = ((*oddity, place), encoding)
    ranked = sorted((rank, encoding, text) for text, (rank, encoding) in found.items())
    least = ranked[0][0][0] if ranked else 0
    return [
        Reading(encoding, tuple(cell.strip()[:_CELL_CHARS_MAX] for cell in text.split("\n")[:_CELLS_SHOWN]))
        for rank, encoding, text in ranked[:_READINGS_MAX]
        if rank[0] <= least + 1
    ]


def better_encoding(cells: Sequence[bytes], encoding: str) -> str | None:
    r"""Return the likeliest encoding of cells if most, at least two, are impossible in this one; else None.

    Impossible are also words with letters of two languages, such as Dvo\xf8\xe1k, if the other encoding has
    half as many. A single cell may be damaged. A C1 control (O\x92Brien) shows the mistake to its own row.
    """
    raw = b"\n".join(cells)

    def odd_count(codec: str) -> int:
        texts = raw.decode(codec, "replace").split("\n")
        return sum(
            bool(is_misread) or _has_odd_words(text) or not all(map(_is_of_one_language, _WORD.findall(text)))
            for text, is_misread in zip(texts, map(_MISREAD.search, texts), strict=True)
        )

    odd = odd_count(encoding)
    found = readings(raw) if odd > max(1, len(cells) // 2) else []
    return next((each.encoding for each in found if odd_count(each.encoding) <= odd // 2), None)


class _Alphabet(NamedTuple):
    letters: frozenset[str]
    scripts: tuple[str, ...]
    words: frozenset[str]

    def has(self, letter: str) -> bool:
        return letter in self.letters or unicodedata.name(letter, "").startswith(self.scripts or ("\0",))


@cache
def _alphabets() -> Mapping[str, _Alphabet]:
    given = tomllib.loads((files(__package__) / "alphabets.toml").read_text("utf-8"))
    return {
        name: _Alphabet(
            frozenset(each.get("letters", "") + each.get("letters", "").upper()),
            tuple(each.get("script", "").split()),
            frozenset(each["words"].split()),
        )
        for name, each in given.items()
    }


def _oddity(text: str, spoken: Iterable[str]) -> tuple[int, ...] | None:
    """Return how odd a reading is, by languages, headers and signs; None if it is impossible."""
    is_odd = _has_odd_words(text) or any(_is_misplaced(text, sign) for sign in _MARK.finditer(text))
    is_odd = is_odd or any(unicodedata.category(each) == "Cc" for each in text if each != "\n")
    if is_odd or not (taken := _languages(text)):
        return None
    unheard = not any(names & {*spoken} for names in taken)
    strange = sum(map(_is_strange, _WORD.findall(text)))
    return len(taken[0]), int(unheard), strange, len(_MARK.findall(text))


def _has_odd_words(text: str) -> bool:
    """True if a word is impossible, or has a sign between its letters."""
    return any(map(_is_odd, _WORD.findall(text))) or any(
        sign[0] not in _WITHIN and sign[0].isprintable() for sign in _MARK_WITHIN.finditer(text)
    )


def _languages(text: str) -> list[set[str]]:
    """Return the smallest sets of languages that have all letters of a text; empty if three are too few."""
    letters = {letter for letter in text if not letter.isascii() and letter.isalpha() and letter not in "ªº"}
    covered = [(name, {one for one in letters if each.has(one)}) for name, each in _alphabets().items()]
    for count in range(1, _LANGUAGES_MAX + 1):
        taken = [
            {name for name, _ in some}
            for some in combinations(covered, count)
            if set.union(*(has for _, has in some)) == letters
        ]
        if taken:
            return taken
    return []


@cache
def _is_of_one_language(word: str) -> bool:
    letters = [letter for letter in word if not letter.isascii() and letter not in "ªº"]
    return any(all(map(each.has, letters)) for each in _alphabets().values())


def _is_strange(word: str) -> bool:
    """True if a word is unusual in names: it starts with a small letter, or has none of its vowels."""
    is_cased = len(word) >= _WORD_CHARS_MIN and not word.isascii() and word.lower() != word.upper()
    return is_cased and (word[0].islower() or (word[0] > _LATIN_LAST and not _VOWEL.search(word)))


def _is_odd(word: str) -> bool:
    """True if a word mixes two scripts, or has a capital or small letter in an impossible position."""
    scripts = {"CJK" if letter > "\u2fff" else unicodedata.name(letter, " ").split()[0] for letter in word}
    scripts -= {"MODIFIER", "FEMININE", "MASCULINE"}
    if len(scripts) > 1 or not {*"ªº"}.isdisjoint(word[:-1]):  # abbreviations, such as Mª, end in them
        return True
    pairs = list(pairwise(word))
    beyond = [(one, two) for one, two in pairs if not (one + two).isascii()]
    is_mixed = any(letter.islower() for letter in word[1:])
    if any(two.isupper() and (one.islower() or is_mixed) for one, two in beyond):
        return True
    small = [letter for letter in word if letter.islower()]
    is_loud = sum(letter.isupper() for letter in word) > len(small) and len(word) > 2
    return is_loud and any(not letter.isascii() and letter not in "ßı" for letter in small)


def _is_misplaced(text: str, sign: re.Match[str]) -> bool:
    """True if a sign is where no name has it: within a word, or anywhere."""
    before, after = text[sign.start() - 1 : sign.start()], text[sign.end() : sign.end() + 1]
    if before.isalpha() and after.isalpha():
        return sign[0] not in _WITHIN
    return sign[0] not in _AROUND or (after.isalpha() and sign[0] in "£§°ºª…·€")
