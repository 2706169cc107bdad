"""The moving picture of the README: a recorded run as an SVG that plays by style sheets alone.

    python -m tests.first_minute.picture             run it again, record it, draw it
    python -m tests.first_minute.picture --redraw    draw the record that is there

Without animations, or where the reader wants no motion, it shows how the run ended.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple
from xml.sax.saxutils import escape

from tests.first_minute.recording import COLUMNS, LINES, Event, Recording, record

_ROOT: Final = Path(__file__).resolve().parents[2]
RECORD: Final = Path(__file__).with_name("recording.json")
IMAGES: Final = _ROOT / "docs" / "img"

_LETTER, _LINE, _MARGIN = 7.8, 18, 14
_PROMPT: Final = "$ "
_ELSEWHERE: Final = "in another terminal:"
_PER_LETTER_S: Final = 0.035
_PAUSE_S: Final = 0.9
"""Before a command is typed: somebody reads what the last one said."""
LONGEST_WAIT_S: Final = 2.0
"""What takes longer in the run is shortened to this in the picture."""
_HOLD_S: Final = 6.0
_TIMES: Final = 3
"""Then it rests at its end: what moves without end keeps people from reading."""
_SGR: Final = re.compile(r"\x1b\[([0-9;]*)m")


@dataclass(frozen=True)
class Theme:
    name: str
    paper: str
    ink: str
    dim: str
    prompt: str
    good: str
    bad: str


THEMES: Final = (
    Theme("light", "#f6f8fa", "#1f2328", "#59636e", "#0550ae", "#116329", "#a40e26"),
    Theme("dark", "#161b22", "#e6edf3", "#9198a1", "#79c0ff", "#56d364", "#ff7b72"),
)
_KINDS: Final = {"1": "b", "2": "d", "31": "bad", "32": "good", "33": "bad"}


class Span(NamedTuple):
    text: str
    kinds: frozenset[str]


class Shown(NamedTuple):
    """A line of the screen, when it appears, and how long it is typed."""

    at_s: float
    spans: tuple[Span, ...]
    typing_s: float = 0.0


def spans_of(text: str) -> Iterator[Span]:
    kinds: frozenset[str] = frozenset()
    pieces = _SGR.split(text)
    if "\x1b" in "".join(pieces[::2]):
        raise ValueError(f"more than colours: {text!r}")
    for position, piece in enumerate(pieces):
        if position % 2 == 0:
            if piece:
                yield Span(piece, kinds)
        elif piece in ("", "0"):
            kinds = frozenset()
        else:
            kinds |= {_KINDS[code] for code in piece.split(";") if code in _KINDS}


def folded(spans: Sequence[Span]) -> list[tuple[Span, ...]]:
    """As a terminal of so many columns breaks a line."""
    lines: list[list[Span]] = [[]]
    room = COLUMNS
    for text, kinds in spans:
        while text:
            if room == 0:
                lines.append([])
                room = COLUMNS
            lines[-1].append(Span(text[:room], kinds))
            text, room = text[room:], room - len(text[:room])
    return [tuple(line) for line in lines]


def screenplay(events: Sequence[Event]) -> list[Shown]:
    """The lines of the picture, with time to read and without long waits."""
    found: list[Shown] = []
    now_s, last_s = 0.0, 0.0
    for number, event in enumerate(events):
        now_s += min(event.at_s - last_s, LONGEST_WAIT_S)
        last_s = event.at_s
        if event.typed:
            if number and not any(each.typed for each in events[1:number]):
                found.append(Shown(now_s, (Span(_ELSEWHERE, frozenset("d")),)))
            now_s += _PAUSE_S
            typing_s = _PER_LETTER_S * len(event.text)
            found.append(
                Shown(now_s, (Span(_PROMPT, frozenset("p")), Span(event.text, frozenset("b"))), typing_s)
            )
            now_s += typing_s + 0.2
            continue
        for line in event.text.rstrip().split("\r\n"):
            if line.strip():
                found += [Shown(now_s, part) for part in folded(tuple(spans_of(line.rstrip())))]
    return found


def draw(recording: Recording, theme: Theme) -> str:
    lines = screenplay(recording.events)
    whole_s = max(line.at_s + line.typing_s for line in lines) + _HOLD_S
    width, height = round(COLUMNS * _LETTER + 2 * _MARGIN), LINES * _LINE + 2 * _MARGIN
    styles, parts = [_style(theme, whole_s)], []
    for number, line in enumerate(lines):
        parts.append(_line(number, line, styles, whole_s))
    styles.append(_scrolling(lines, whole_s))
    spoken = "A terminal: " + " ".join(event.text + "." for event in recording.events if event.typed)
    end = max(0, len(lines) - LINES) * _LINE
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="{escape(spoken, {chr(34): "&quot;"})}">\n'
        f"<style>{' '.join(styles)}\n@media (prefers-reduced-motion: reduce) "
        "{ * { animation: none !important; } }</style>\n"
        f'<rect class="paper" width="{width}" height="{height}" rx="8"/>\n'
        f'<svg x="{_MARGIN}" y="{_MARGIN}" width="{width - _MARGIN}" height="{LINES * _LINE}">\n'
        f'<g id="roll" transform="translate(0 {-end})">\n' + "\n".join(parts) + "\n</g>\n</svg>\n</svg>\n"
    )


def _line(number: int, line: Shown, styles: list[str], whole_s: float) -> str:
    letters = sum(len(span.text) for span in line.spans)
    words = "".join(
        f'<tspan class="{" ".join(sorted(span.kinds))}">{escape(span.text)}</tspan>'
        if span.kinds
        else escape(span.text)
        for span in line.spans
    )
    begin = _percent(line.at_s, whole_s)
    styles.append(f"#l{number} {{ animation-name: l{number}; }} "
                  f"@keyframes l{number} {{ 0% {{ opacity: 0; }} {begin} {{ opacity: 1; }} }}")  # fmt: skip
    text = (
        f'<text y="{number * _LINE + 13}" textLength="{letters * _LETTER:.1f}" '
        f'xml:space="preserve">{words}</text>'
    )
    if not line.typing_s:
        return f'<g id="l{number}">{text}</g>'
    # The letters are there at once, below a cover that moves to the right letter by letter.
    typed, way = letters - len(_PROMPT), (letters - len(_PROMPT)) * _LETTER
    end = _percent(line.at_s + line.typing_s, whole_s)
    done = _percent(line.at_s + line.typing_s + 0.05, whole_s)
    there, away = "transform: translateX(0)", f"transform: translateX({way:.1f}px)"
    styles.append(
        f"#c{number} {{ animation-name: c{number}; }} @keyframes c{number} {{ "
        f"0%, {begin} {{ opacity: 1; {there}; animation-timing-function: steps({typed}); }} "
        f"{end} {{ opacity: 1; {away}; }} {done}, 100% {{ opacity: 0; {away}; }} }}"
    )
    left, top = len(_PROMPT) * _LETTER, number * _LINE
    cover = (
        f'<g id="c{number}" opacity="0">'
        f'<rect class="paper" x="{left:.1f}" y="{top}" width="{way + _LETTER:.1f}" height="{_LINE}"/>'
        f'<rect class="cursor" x="{left:.1f}" y="{top + 1}" width="{_LETTER}" height="15"/></g>'
    )
    return f'<g id="l{number}">{text}{cover}</g>'


def _scrolling(lines: Sequence[Shown], whole_s: float) -> str:
    """The newest line is the last of the screen at most."""
    steps = ["0% { transform: translateY(0); }"]
    for number, line in enumerate(lines):
        if number >= LINES:
            up = (number - LINES + 1) * _LINE
            steps.append(f"{_percent(line.at_s, whole_s)} {{ transform: translateY({-up}px); }}")
    return f"#roll {{ animation-name: roll; }} @keyframes roll {{ {' '.join(steps)} }}"


def _percent(at_s: float, whole_s: float) -> str:
    return f"{100 * at_s / whole_s:.3f}%"


def _style(theme: Theme, whole_s: float) -> str:
    return (
        'text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; '
        f"fill: {theme.ink}; white-space: pre; }} "
        f"g {{ animation: {whole_s:.2f}s step-end {_TIMES} both; }} "
        f".paper {{ fill: {theme.paper}; }} .cursor {{ fill: {theme.dim}; }} .b {{ font-weight: 700; }} "
        f".d {{ fill: {theme.dim}; }} .p {{ fill: {theme.prompt}; }} .good {{ fill: {theme.good}; }} "
        f".bad {{ fill: {theme.bad}; }}"
    )


def drawn() -> dict[Path, str]:
    """Each file, and what it has to hold."""
    recording = Recording.load(RECORD)
    return {IMAGES / f"first-minute-{theme.name}.svg": draw(recording, theme) for theme in THEMES}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.first_minute.picture", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--redraw", action="store_true", help="keep the record")
    if not parser.parse_args().redraw:
        with tempfile.TemporaryDirectory() as directory:
            record(Path(directory)).save(RECORD)
    for path, text in drawn().items():
        path.write_text(text)
        print(f"{path.relative_to(_ROOT)}: {len(text):,} bytes")


if __name__ == "__main__":
    main()
