"""Derivations: sources whose rows are a pure function of another source's rows; one module each, with `rows(base,
schema, **options)`. `base` is the other source's table with `row_id`, `schema` the fields to return."""
