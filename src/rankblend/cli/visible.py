"""Characters that steer a terminal, made visible: a memory's text must not move a cursor."""

from __future__ import annotations

from rich.text import Text

__all__ = ["escaped", "visible", "visible_text"]

# C0 (but line feed and tab, which lay out), DEL, C1, line and paragraph separators, and what embeds,
# overrides or isolates the direction of text.
_C0 = [code for code in range(0x20) if chr(code) not in "\n\t"]
_OTHERS = [*range(0x80, 0xA0), 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
_PICTURES = {
    **{code: chr(0x2400 + code) for code in _C0},
    0x7F: "\N{SYMBOL FOR DELETE}",
    **dict.fromkeys(_OTHERS, "\N{REPLACEMENT CHARACTER}"),
}
_ESCAPES = {code: f"\\u{code:04x}" for code in (0x7F, *_OTHERS)}


def visible(text: str) -> str:
    """The text with a picture of each steering character, e.g. ``␛``; as long as before."""
    return text.translate(_PICTURES)


def visible_text(text: Text) -> Text:
    """`visible` for a styled text."""
    shown = visible(text.plain)
    if shown == text.plain:
        return text
    text = text.copy()
    text.plain = shown
    return text


def escaped(document: str) -> str:
    """A JSON document with the steering characters escaped that JSON itself leaves alone."""
    return document.translate(_ESCAPES)
