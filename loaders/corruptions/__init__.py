"""The common corruptions of pictures (Hendrycks and Dietterich 2019, arXiv 1903.12261), one a file.

A file `<name>.py` has `corrupt(images, severity, draws)`: pictures of shape (rows, height, width, 1 or 3), uint8, and
the same shape back; severity 1 to 5; `draws` gives each row the random numbers that its row id decides, so that a
picture is corrupted alike alone or among many. Where it has a fourth argument, `constants`, that names the set of
constants that is asked for ("" lets the size decide). `loaders/corrupt.py` finds and calls them.

All arithmetic is sums, products and quotients in a fixed order, over tables rounded to binary fractions: the bytes are
the same on every platform, and no version of an image library can change them. (The photographs of `frost` are decoded
by Pillow.)
"""
