"""``python -m sightline`` is the command ``sightline``."""

from sightline.cli import app

app(prog_name="sightline")
