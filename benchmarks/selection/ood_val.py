"""ood_val: the best candidate on shifted validation rows. It uses labels of a shifted distribution, but no test
labels."""

PART = "ood_val"
LABELS = "true"
