"""Sealed draws: unpublished test rows of a benchmark, generated from a secret seed that the board commits to before
the window opens and reveals after it closes.

window.py       the terms of a window, its commitment, and its state in the ledger
drawing.py      the draw: the same generator with another seed, and the public test's difficulty profile
published.py    the files for participants (inputs without labels), and the benchmark of a window
seal.py         sealing a benchmark; closing its window: scores, and the revealed seed
submit.py       a team's answers: predicted, packed and accepted
results.py      the results of a window, with the contrast of public and sealed rows
verify.py       verification of everything by anybody
"""
