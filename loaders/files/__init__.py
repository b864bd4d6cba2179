"""Files of data: the patterns that name them, those that are hidden, and what is raised of damaged ones."""
