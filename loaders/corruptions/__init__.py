"""The common corruptions of images (Hendrycks and Dietterich 2019, arXiv 1903.12261), one module each.

A module `<name>.py` has `corrupt(images, severity, draws)`: images of shape (rows, height, width, 1 or 3), uint8; it
returns the same shape; severity is 1 to 5; `draws` gives each row random numbers that depend only on its row id, so
that the result does not depend on other images. An optional fourth argument `constants` names the set of constants (""
selects it by size). `loaders/corrupt.py` finds and calls them.

All arithmetic is sums, products and quotients in a fixed order, over tables rounded to binary fractions, so the bytes
are the same on every platform and do not depend on an image library. (Except that the photographs of `frost` are
decoded by Pillow.)
"""
