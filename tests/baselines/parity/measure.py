"""Compute our numbers again, and store in each reference the largest difference from those of the released code.

python -m tests.baselines.parity.measure    then `make pages`, which lists the differences in docs/baselines/parity.md
"""

from .problems import of
from .reference import references

if __name__ == "__main__":
    for reference in references():
        reference.measured(of(reference)).write()
