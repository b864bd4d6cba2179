"""The kinds of pages of a board's site, a file each: `pages(site)` gives the pages of its kind. A new kind is a new
file."""
