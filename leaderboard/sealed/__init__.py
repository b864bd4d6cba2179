"""Sealed draws: rows of a benchmark that nobody has seen, from a seed that is committed to before and revealed after.

window.py       what a window says, its commitment, and where it stands by the ledger
profile.py      cells of difficulty, and how two samples compare
drawing.py      the draw: the same generator, another seed, the public test's difficulty profile
handing_out.py  what participants are given: inputs alone
asked.py        the benchmark of a window, for harness, validator and scorer
predicting.py   training on the public rows and answering the draw, by the harness
answers.py      the file of answers, packed and checked
sealing.py      a board opens a window, serving.py hands its draw out, collecting.py takes answers
revealing.py    the board closes it and reveals; scoring.py: what answers are worth
contrast.py     public against sealed: a contamination probe
verifying.py    and anybody checks all of it
"""
