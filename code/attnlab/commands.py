"""What the commands of this package share: how they read their options, what --help says, and how they end.

A command ends in one of four ways: 0, done; 1, something outside of it is missing or fails (a package, the disk);
2, the options are wrong; 130, Ctrl-C. Each failure is one line on standard error that says what was given, what was
expected, and how to go on.

Modules that take long to load, or that come with an optional group, are imported by the body of a command, after its
options are read: ``--help`` needs the core of the package alone.
"""

from __future__ import annotations

import argparse
import functools
import os
import re
import shlex
import signal
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from types import FrameType
from typing import NoReturn

from attnlab.threads import in_main_thread, one_thread

#: Every command of the package, and what it does.
COMMANDS = {
    "attnlab.heads.extract": "take the queries and keys of every head from a local model",
    "attnlab.report": "measure the heads of a local model, and draw them on one page",
    "attnlab.heads.train": "train the small decoders, and keep the queries and keys of their heads",
    "attnlab.heads.weights": "train the decoder of one seed again, and keep its weights",
    "attnlab.heads.prune": "remove or replace heads of the shipped decoder, and measure its output",
    "attnlab.heads.prune_pretrained": "remove heads of the pretrained decoder, and measure its loss",
    "attnlab.recall": "train the models of the chapter on associative recall",
    "attnlab.translation": "train the models of the chapter on few data",
    "attnlab.experiments.locality": "train decoders on texts with and without locality",
    "attnlab.experiments.four_bits": "round or disturb weights by 4 bits, and measure the heads",
    "attnlab.experiments.sinks": "hide the first token from a model, and measure its loss",
    "attnlab.experiments.sparsity_benchmark": "compare four ways to compute the sparsity of a row",
    "attnlab.experiments.public_implementations": "compare this package with public ones",
}


@dataclass(frozen=True)
class Command:
    """A program of the package.

    module : what follows ``python -m``.  about : its docstring, which begins with the command line and a colon.
    takes : how long it takes.  writes : what it writes, and where.
    kept : what an interruption leaves and how to go on, with the names of options in braces.
    extra : the optional group of the package that it needs; "" if the core is enough.
    called : its options by the names that the functions behind it give them in their errors.
    """

    module: str
    about: str
    takes: str
    writes: str
    kept: str
    extra: str = ""
    called: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The program as one types it."""
        return f"python -m {self.module}"

    def parser(self) -> argparse.ArgumentParser:
        """Return a parser without options, whose help says all that holds for the whole command."""
        extra = f'the extra "{self.extra}" of the package: {_installation(self.extra)}'
        kept = self.kept.format_map(_Names())
        parts = (
            f"Needs: {extra if self.extra else 'nothing beyond the core of the package.'}",
            f"Takes: {self.takes}",
            f"Writes: {self.writes}",
            f"After Ctrl-C: {kept}.",
        )
        about = self.about.partition(": ")[2]
        return Parser(
            prog=self.name,
            description=about[:1].upper() + about[1:],
            epilog="\n\n".join(parts),
            formatter_class=_Formatter,
        )

    def carry_out(
        self,
        parser: argparse.ArgumentParser,
        body: Callable[[argparse.Namespace, str], str],
        arguments: Sequence[str] | None = None,
    ) -> int:
        """Read the options, do the work and return the exit status.

        body : from the options, and the line that was typed, to the sentence that is printed at the end.
        arguments : the options; those of the process unless given.
        """
        given = parser.parse_args(arguments)
        line = shlex.join(["python", "-m", self.module, *(sys.argv[1:] if arguments is None else arguments)])
        kept = self.kept.format_map({name: str(value) for name, value in vars(given).items()})
        with one_interruption(of_the_process=arguments is None):
            return self._carried_out(functools.partial(body, given, line), kept)

    def _carried_out(self, body: Callable[[], str], kept: str) -> int:
        try:
            with one_thread():
                print(body())
        except KeyboardInterrupt:
            return self.end(f"interrupted; {kept}", 130)
        except ModuleNotFoundError as error:
            if not self.extra or (error.name or "attnlab").partition(".")[0] in {"attnlab", "attnmath"}:
                raise
            lacking = f'{error.name} is not installed; it comes with the extra "{self.extra}"'
            return self.end(f"{lacking}: {_installation(self.extra)}", 1)
        except (OSError, MemoryError) as error:
            place = getattr(error, "filename", None)
            reason = getattr(error, "strerror", None) or self._in_its_words(error) or type(error).__name__
            return self.end(f"{f'cannot read or write {place}: ' if place else ''}{reason}; {kept}", 1)
        except (ValueError, TypeError) as error:
            return self.end(f"error: {self._in_its_words(error)}", 2)
        return 0

    def _in_its_words(self, error: BaseException) -> str:
        name, colon, rest = str(error).partition(": ")
        return f"{self.called.get(name, name)}{colon}{rest}"

    def end(self, message: str, status: int) -> int:
        """Say on standard error why the command ends, and return its exit status."""
        print(f"{self.name}: {message}", file=sys.stderr)
        return status


@contextmanager
def one_interruption(*, of_the_process: bool) -> Iterator[None]:
    """Let the first Ctrl-C raise `KeyboardInterrupt` and the next ones pass, so that what it ends is ended in order.

    A second one in the middle of that would leave processes behind that wait for work.
    of_the_process : the process ends with the body, so that none is heard until then.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler or not in_main_thread():
        yield  # somebody else decides
        return
    heard = False

    def first(number: int, frame: FrameType | None) -> None:
        nonlocal heard
        if not heard:
            heard = True
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, first)
    try:
        yield
    finally:
        if not (heard and of_the_process):
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _looked_up(read: Callable[[str], Path]) -> Callable[[str], Path]:
    """Return the reader of a path, for which a path that the system refuses to look up is a wrong option."""

    @functools.wraps(read)
    def checked(text: str) -> Path:
        try:
            return read(text)
        except OSError as error:  # a folder that may not be entered, a name that is too long, a folder that is gone
            expected = "expected a path that can be looked up"
            raise argparse.ArgumentTypeError(f"{expected}, got {text} ({error.strerror})") from None

    return checked


@_looked_up
def folder(text: str) -> Path:
    """Return a folder that files can be written to, though it need not exist yet."""
    return _place(Path(text), "a folder to write to", Path(text))


@_looked_up
def table(text: str) -> Path:
    """Return a file that can be written, though it need not exist yet, nor its folder."""
    path = Path(text)
    if path.is_dir():
        raise argparse.ArgumentTypeError(f"expected a file to write, got the folder {path}")
    if path.suffix.lower() == ".json":
        raise argparse.ArgumentTypeError(f"expected a table such as {path.with_suffix('.csv')}, got {path}, its record")
    return _place(path.absolute().parent, "a file to write", path)


@_looked_up
def existing_file(text: str) -> Path:
    """Return a file that can be read."""
    if not Path(text).is_file() or not os.access(text, os.R_OK):
        raise argparse.ArgumentTypeError(f"expected a file to read, got {text}")
    return Path(text)


@_looked_up
def existing_path(text: str) -> Path:
    """Return a folder that is there, or a file that can be read."""
    if not Path(text).is_dir() and not (Path(text).is_file() and os.access(text, os.R_OK)):
        raise argparse.ArgumentTypeError(f"expected a folder, or a file to read, got {text}")
    return Path(text)


def whole(least: int) -> Callable[[str], int]:
    """Return the reader of an option that is a whole number of at least so much."""

    def read(text: str) -> int:
        if not re.fullmatch(r"-?\d{1,4000}", text.strip()) or int(text) < least:
            got = text if len(text) < 50 else f"{text[:20]}... of {len(text)} characters"
            raise argparse.ArgumentTypeError(f"expected a whole number of at least {least}, got {got}")
        return int(text)

    return read


def jobs(text: str) -> int:
    """Return a number of processes: one or more, or -1 for as many as there are cores."""
    if text.strip() != "-1" and (not text.strip().isdecimal() or int(text) == 0):
        raise argparse.ArgumentTypeError(f"expected a number of processes, or -1 for all cores, got {text}")
    return int(text)


def positive(text: str) -> float:
    """Return a number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text}")
    return value


def _place(directory: Path, expected: str, given: Path) -> Path:
    """Return what was given if files can be made in a folder, which may have to be made as well."""
    nearest = directory.absolute()
    while not nearest.exists() and nearest != nearest.parent:
        nearest = nearest.parent
    if not nearest.is_dir():
        raise argparse.ArgumentTypeError(f"expected {expected}, got {given}, and {nearest} is a file")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise argparse.ArgumentTypeError(f"expected {expected}, got {given}, and {nearest} cannot be written")
    return given


def _installation(extra: str) -> str:
    """Return the line that brings an optional group: by name where the package is installed, else from its folder."""
    try:
        metadata.version("attention-checked")
    except metadata.PackageNotFoundError:
        return f'pip install ".[{extra}]" in the folder of the book'
    return f'pip install "attention-checked[{extra}]"'


class _Names(dict[str, str]):
    """Options by the names that --help shows them under."""

    def __missing__(self, name: str) -> str:
        return name.upper()


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line; the usage is what --help is for."""

    def error(self, message: str) -> NoReturn:
        """End the program with the message and the status 2."""
        self.exit(2, f"{self.prog}: {message} (--help lists the options)\n")


class _Formatter(argparse.HelpFormatter):
    """Help with its paragraphs and lists."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        blocks = re.split(r"(\n\n|\n(?=\* ))", text.replace("``", "").strip())
        return "".join(block if block.isspace() else self._wrapped(block, width, indent) for block in blocks)

    @staticmethod
    def _wrapped(block: str, width: int, indent: str) -> str:
        hanging = "  " if block.startswith("* ") else ""
        return textwrap.fill(" ".join(block.split()), width, initial_indent=indent, subsequent_indent=indent + hanging,
                             break_on_hyphens=False)  # fmt: skip
