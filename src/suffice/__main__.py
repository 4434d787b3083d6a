"""`python -m suffice` is the same as `suffice`."""

from suffice.cli import main

__all__: list[str] = []

if __name__ == "__main__":
    main()
