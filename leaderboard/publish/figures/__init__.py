"""Figures of the pages, as pure functions from numbers to SVG and a data table. Colours come from the style sheet, so
that figures follow the page's light or dark mode; no two series differ by colour alone."""
