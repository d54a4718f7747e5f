"""HTML files that need nothing else: no script, no font, no address; figures are inside."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import jinja2
from markdown_it import MarkdownIt
from markupsafe import Markup


def render(template: str, **values: Any) -> str:
    """A page of `tracking/pages`; all that is put into it is escaped."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("tracking", "pages"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template(template).render(**values)


def address(png: bytes) -> str:
    """A picture as an address that holds it."""
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def sweep_page(title: str, markdown: str, figures: Mapping[str, bytes]) -> str:
    """A sweep's table and sentences, and its figures as PNG by name. HTML in it stays text."""
    text = MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown)
    drawn = [{"name": name, "address": address(png)} for name, png in figures.items()]
    return render("report.html", title=title, text=Markup(text), figures=drawn)
