"""``python -m sightline`` is the command ``sightline``."""

from sightline.cli import app

if __name__ == "__main__":
    app(prog_name="sightline")
