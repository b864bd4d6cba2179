"""Numbers that a benchmark of shift needs beyond a metric's mean: one file each, pure functions of arrays."""
