"""The common corruptions of images (Hendrycks and Dietterich 2019, arXiv 1903.12261), by family.

A corruption is a function of `(images, severity, draws)`: images of shape (rows, height, width, 1 or 3),
uint8; it returns the same shape; severity is 1 to 5; `draws` gives each row random numbers that depend only on its row
id, so that the result does not depend on other images.
`loaders/corrupt.py` finds and calls them; a user's is `corrupt` of a module in `loaders/corruptions/`.

All arithmetic is sums, products and quotients in a fixed order, over tables rounded to binary fractions, so the bytes
are the same on every platform and do not depend on an image library. (Except that Pillow compresses by JPEG, averages
pixels for `pixelate`, and decodes the photographs of `frost`.)
"""
