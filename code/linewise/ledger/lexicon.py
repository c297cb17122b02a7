r"""The lexicon of a book: how the vague words of its sources are read, each in one way wherever it stands.

A word such as "few" or "stably" becomes a number or a relation before a verdict can rest on it. The conventions of a
book (`linewise.conventions`) name a table with an entry for each such word::

    few:
      original: [少数几个]                # the word in the sources
      words: [few, a few]                # the words of a reading that stand for it; without them no test can find it
      but: [few data]                    # phrases in which they do not
      reading: A number that stays fixed as $n$ grows.
      why: A share of $n$ would make any number few.
      weaker: A tenth of $n$.            # another reading that one could think of
      changes: {2/decay: confirmed}      # the claims whose verdict it would change, and to what
      departs: {2/hard: it is ten there} # the claims that read the word in another way, and why

A claim names the entries that it uses in its field ``words``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from linewise.conventions import TABLES, conventions_of
from linewise.entries import meant, not_text, wrong_keys
from linewise.ledger.claims import Claim, each
from linewise.ledger.collate import collate
from linewise.ledger.evidence import LedgerError

_NEEDED = ("original", "reading", "why")
_LISTS = ("original", "words", "but")
_BY_CLAIM = ("changes", "departs")


@dataclass(frozen=True, eq=False)  # an entry is a key: by its identity, since some fields are mappings
class Word:
    """An entry: a word of the sources and how it is read.

    original : the word as the sources have it, in several forms.
    reading, why : how it is read, and the reason.
    words, but : the words that stand for it in a claim, and phrases in which they stand for something else.
    weaker : another reading; `changes` says of which claims it would change the verdict, and to what.
    departs : the claims in which the word is read otherwise, each with the reason.
    """

    id: str
    original: tuple[str, ...]
    reading: str
    why: str
    words: tuple[str, ...] = ()
    but: tuple[str, ...] = ()
    weaker: str = ""
    changes: dict[str, str] = field(default_factory=dict)
    departs: dict[str, str] = field(default_factory=dict)

    @property
    def plain(self) -> list[str]:
        """Its words that are no formulas, or else its id in words.

        >>> Word("order", ("o",), "r", "w", words=("$O(", "in proportion")).plain
        ['in proportion']
        >>> Word("at-all", ("o",), "r", "w").plain
        ['at all']
        """
        return [word for word in self.words if word[0].isalpha()] or [self.id.replace("-", " ")]

    def stands_in(self, text: str) -> str:
        """Return the first of its words that a text has, outside of the phrases of `but`; "" if it has none.

        >>> few = Word("few", ("少数几个",), "five", "a hand", words=("few", "a few"), but=("few data",))
        >>> few.stands_in("Few of them."), few.stands_in("With few data, fewer of them.")
        ('few', '')
        """
        for phrase in self.but:
            text = _standing(phrase).sub("|", text)
        return next((word for word in self.words if _standing(word).search(text)), "")


def read_lexicon(root: str | Path) -> dict[str, Word]:
    """Return the entries of a book's lexicon by their ids, in the order of its table; none if the book has no lexicon.

    Raises `LedgerError` where the table is not well-formed, with a line for each entry, and `FileNotFoundError` where
    there is no such file.
    """
    place = conventions_of(root).lexicon
    if place is None:
        return {}
    path = Path(root) / place.table
    if not path.is_file():
        raise FileNotFoundError(f"lexicon: expected the table {place.table}, found no such file")
    try:
        entries = yaml.load(path.read_text(encoding="utf-8"), Loader=TABLES)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise LedgerError(f"{path}: expected YAML, got {' '.join(str(error).split())}") from None
    if not isinstance(entries, dict) or not entries:
        raise LedgerError(f"{path}: expected a mapping from ids to entries, got {entries!r}")
    found = each(lambda entry: _word(*entry, str(path)), entries.items())
    return {word.id: word for word in found}


def problems(root: str | Path) -> list[str]:
    """Return where the lexicon and the claims of a book disagree; an empty list is a clean bill.

    A claim that names an unknown entry, or none for a word of the lexicon that stands in its title, its reading or what
    holds, an entry that no claim names, an entry that speaks of a claim which does not name it, and a word of the
    sources that stands under two entries, are each a problem.
    """
    lexicon, claims = read_lexicon(root), [row.claim for row in collate(root)]
    return (
        [*_of_claims(lexicon, claims), *_of_entries(lexicon, claims)] if lexicon or any(c.words for c in claims) else []
    )


def _of_claims(lexicon: dict[str, Word], claims: Iterable[Claim]) -> Iterator[str]:
    for claim in claims:
        for name in claim.words:
            if name not in lexicon:
                yield f"{claim.id}: words: {name}: no such entry of the lexicon; {meant(name, lexicon)}"
        text = " ".join(filter(None, (claim.title, claim.reading, claim.holds)))
        for word in lexicon.values():
            if word.id not in claim.words and (form := word.stands_in(text)):
                yield f'{claim.id}: words: has "{form}" and does not name the entry {word.id} of the lexicon'


def _of_entries(lexicon: dict[str, Word], claims: list[Claim]) -> Iterator[str]:
    named = {claim.id: claim.words for claim in claims}
    first: dict[str, str] = {}
    for word in lexicon.values():
        if not any(word.id in words for words in named.values()):
            yield f"lexicon: {word.id}: no claim names it"
        for form in word.original:
            if first.setdefault(form, word.id) != word.id:
                yield f"lexicon: {word.id}: has {form}, which stands under {first[form]}"
        for claim in (*word.changes, *word.departs):
            if word.id not in named.get(claim, ()):
                why = "does not name it" if claim in named else "is no claim"
                yield f"lexicon: {word.id}: speaks of {claim}, which {why}"


def _standing(words: str) -> re.Pattern[str]:
    """Return the pattern of words that stand by themselves."""
    before, after = (r"\b" if words[at].isalnum() else "" for at in (0, -1))
    return re.compile(before + re.escape(words) + after, re.IGNORECASE)


def _word(key: Any, entry: Any, where: str) -> Word:
    """Return an entry of the table."""
    optional = [name for name in Word.__dataclass_fields__ if name not in ("id", *_NEEDED)]
    if not isinstance(key, str):
        raise LedgerError(f"{where}: {key}: {not_text(key)}")
    if wrong := wrong_keys(entry, _NEEDED, optional):
        raise LedgerError(f"{where}: {key}: {wrong}")
    for name, value in entry.items():
        kind: type = list if name in _LISTS else dict if name in _BY_CLAIM else str
        if not isinstance(value, kind) or not value:
            raise LedgerError(f"{where}: {key}: {name}: expected a {kind.__name__} that is not empty, got {value!r}")
        several: list[Any] = list(value.values()) if isinstance(value, dict) else []
        texts: list[Any] = [*several, *(value if isinstance(value, dict | list) else [value])]
        for text in texts:
            if not isinstance(text, str) or not text.strip():
                raise LedgerError(f"{where}: {key}: {name}: {not_text(text)}")
    given: dict[str, Any] = {name: tuple(value) if name in _LISTS else value for name, value in entry.items()}
    return Word(key, **given)
