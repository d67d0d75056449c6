"""`python -m undivided`: the same as the `undivided` command."""

from undivided.cli.main import app

if __name__ == "__main__":
    app(prog_name="undivided")
