"""Drawings as element trees: well-formed and escaped because no text is glued together.

Only presentation attributes are used, never ``style``: the pictures pass the
strictest content security policy.
"""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree.ElementTree import Element, SubElement, tostring

NAMESPACE = "http://www.w3.org/2000/svg"


def canvas(width: int, height: int, title: str) -> Element:
    """Give an empty drawing that scales, with a name for screen readers."""
    root = Element("svg", {"xmlns": NAMESPACE, "viewBox": f"0 0 {width} {height}", "role": "img"})
    text(root, "title", title)
    return root


def draw(parent: Element, tag: str, **attributes: object) -> Element:
    """Add a shape; numbers are rounded, and ``stroke_width`` becomes ``stroke-width``."""
    return SubElement(parent, tag, {name.replace("_", "-"): _value(v) for name, v in attributes.items()})


def text(parent: Element, tag: str, words: str, **attributes: object) -> Element:
    """Add an element that holds words."""
    element = draw(parent, tag, **attributes)
    element.text = words
    return element


def points(corners: Iterable[tuple[float, float]]) -> str:
    """Give the corners in the form that ``polygon`` and ``polyline`` read."""
    return " ".join(f"{_value(x)},{_value(y)}" for x, y in corners)


def render(root: Element) -> str:
    """Give the drawing's text."""
    return tostring(root, encoding="unicode")


def _value(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
