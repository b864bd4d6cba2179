"""`python -m farshift` is the command `farshift`."""

from .cli import main

if __name__ == "__main__":
    main()
