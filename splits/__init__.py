"""What a split *is*: rows, manifests, rules, audits, and the catalogue of published manifests."""
