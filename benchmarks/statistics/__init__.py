"""Statistical methods, one file each. Requires only NumPy and SciPy; the tests check results against
SciPy, statsmodels and brute force."""
