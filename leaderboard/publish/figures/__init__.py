"""The pages' figures, as pure functions: numbers in, SVG and its table of data out. Colours come from the style sheet,
so that a figure is light or dark as its page is; no two series differ by colour alone."""
