"""id_val: the best candidate on in-distribution validation rows, by the observed labels, including noisy ones."""

PART = "id_val"
