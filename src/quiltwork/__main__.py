"""`python -m quiltwork` is the same as `quiltwork`."""

from quiltwork.cli import main

if __name__ == "__main__":
    main()
