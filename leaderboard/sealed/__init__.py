"""Sealed draws: test rows of a benchmark that nobody has seen, from a secret seed committed to before the window and
revealed after it.

window.py       what a window announces, its commitment, and its state by the ledger
profile.py      cells of difficulty, and how two samples compare
drawing.py      the draw: the same generator, another seed, the public test's difficulty profile
draw_folder.py  what participants get: inputs without labels
benchmark.py    the benchmark of a window, for harness, validator and scorer
predicting.py   training on the public rows and answering the draw, by the harness
answers.py      the file of answers, packed and checked
seal.py         a board seals a benchmark; export.py writes the draw, submit.py takes answers and gives receipts
                (receipt.py)
close.py        the board closes it, scores the answers (scoring.py) and reveals the seed; results.py: what came out
contrast.py     public against sealed: a contamination probe
verify.py       everything checked again by anybody; deadlines.py: the times
"""
