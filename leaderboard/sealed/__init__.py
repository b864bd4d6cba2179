"""Sealed draws: unpublished test rows of a benchmark, generated from a secret seed that the board commits to before
the window opens and reveals after it closes.

window.py       the terms of a window, its commitment, and its state in the ledger
profile.py      difficulty profiles, and the comparison of two samples
drawing.py      the draw: the same generator with another seed, and the public test's difficulty profile
draw_folder.py  the files for participants: inputs without labels
benchmark.py    the benchmark of a window, for harness, validator and scorer
predicting.py   training on the public rows and predicting the draw, with the harness
answers.py      the file of predictions for a window, packed and checked
seal.py         sealing a benchmark; export.py writes the draw, submit.py accepts predictions and returns receipts
                (receipt.py)
close.py        closing a window, scoring its submissions (scoring.py), revealing the seed; results.py: the results
contrast.py     public against sealed rows: a contamination probe
verify.py       verification of everything by anybody; deadlines.py: of the times
"""
