"""Statistical methods, one file each. Requires only NumPy; the tests check results against SciPy."""
