"""A claim's id names the equation, or the section, that its place is in; a claim renumbered everywhere is noticed."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

import stamps
from linewise.ledger import collate
from linewise.ledger.coverage import Source, read_sources

SOURCES = read_sources(stamps.ROOT)
CLAIMS = [(row.claim.id, row.claim.place) for row in collate(stamps.ROOT)]


def misnumbered(claims: list[tuple[str, str]], sources: list[Source]) -> Iterator[str]:
    """Yield one sentence for each id whose number is not that of its place.

    An id without a slash, or ``article/`` with a number, is an equation that a sentence of its place displays;
    ``5.1.4/slug`` is a section that its place is in; ``article/7-slug`` is about an equation of the article. What is
    said of the article goes for the report.
    """
    displayed = {row.at: row.equations for source in sources for row in source.rows}
    equations = {number for numbers in displayed.values() for number in numbers}
    for name, place in claims:
        places = [one.strip().removeprefix("beyond ") for one in place.split(";")]
        shown = {number for one in places for number in displayed.get(one, ())}
        if match := re.fullmatch(r"(article|report)/(\d+)(-.*)?", name):
            number = f"{match[1][0].upper()}.{match[2]}"
            if number not in (equations if match[3] else shown):
                yield f"{name}: {'no row' if match[3] else f'no row of {place}'} displays ({number})"
        elif "/" not in name and name not in shown:
            yield f"{name}: no row of {place} displays ({name})"
        elif re.match(r"[\d.]+/", name) and name.partition("/")[0] not in {one.split()[0] for one in places}:
            yield f"{name}: its place is {place}"


def test_ids_are_numbered_as_their_places() -> None:
    assert list(misnumbered(CLAIMS, SOURCES)) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("5.1.5", "5.1.6"),
        ("5.1.5", "5.1.77"),
        ("5.5.3", "5.5.4"),
        ("article/7", "article/8"),
        ("article/7", "article/77"),
        ("article/11-limit", "article/17-limit"),
        ("5.1.7/stack", "5.1.6/stack"),
        ("5.1.7/stack", "5.1.77/stack"),
    ],
)
def test_a_renumbered_claim_is_noticed(old: str, new: str) -> None:
    assert old in dict(CLAIMS)
    renumbered = [(new if name == old else name, place) for name, place in CLAIMS]
    (fault,) = misnumbered(renumbered, SOURCES)
    assert fault.startswith(f"{new}: ")
