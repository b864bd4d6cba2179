"""The kinds of pages of a board's site, one module each: `pages(site)` yields the pages of its kind. To add a kind, add
a module."""
