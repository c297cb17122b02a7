"""Where in its source a claim stands, and how a page says it."""

from __future__ import annotations

# The parts of a source that come before its first number.
_UNNUMBERED = {"note.0": "Note, opening", "report.0": "Report, abstract"}


def split_places(place: str) -> list[str]:
    """Return the sentences that a place names, which stand between semicolons.

    >>> split_places("5.1.4 p4 s4; 5.1.9 p2 s1")
    ['5.1.4 p4 s4', '5.1.9 p2 s1']
    """
    return [part.strip() for part in place.split(";")]


def is_own(place: str) -> bool:
    """Return whether a statement is the book's own, and no sentence of a source."""
    return place.startswith("beyond")


def section_in_words(section: str) -> str:
    """Name a section of a source.

    >>> section_in_words("5.1.4"), section_in_words("article.2"), section_in_words("report.2.1")
    ('Section 5.1.4', 'Article, part 2', 'Report, section 2.1')
    >>> section_in_words("note.3"), section_in_words("note.0"), section_in_words("report.0")
    ('Note, part 3', 'Note, opening', 'Report, abstract')
    """
    source, _, number = section.partition(".")
    if section in _UNNUMBERED:
        return _UNNUMBERED[section]
    words = {"article": "Article, part", "note": "Note, part", "report": "Report, section"}
    return f"{words[source]} {number}" if source in words else f"Section {section}"


def origin(place: str) -> str:
    """Say where a claim comes from.

    >>> origin("5.1.4 p4 s4"), origin("5.1 title"), origin("beyond 5.1.4")
    ('Section 5.1.4, paragraph 4, sentence 4', 'Section 5.1, heading', 'Our statement')
    """
    if is_own(place):
        return "Our statement"
    places = split_places(place)
    section, *rest = places[0].split()
    name = section_in_words(section)
    if len(rest) < 2:
        return f"{name}, heading"
    more = " and elsewhere" if len(places) > 1 else ""
    return f"{name}, paragraph {rest[0][1:]}, sentence {rest[1][1:]}{more}"
