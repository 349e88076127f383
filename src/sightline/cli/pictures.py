"""Files for figures, checked before the work whose figure they will hold."""

from __future__ import annotations

import errno
import os
from pathlib import Path

__all__ = ["check_picture"]


def check_picture(path: Path) -> None:
    """Refuse a figure that could not be written.

    Parameters
    ----------
    path : Path
        File to write later.

    Raises
    ------
    ValueError
        If the suffix is no format of figures.
    OSError
        If the file cannot be made in its folder.
    """
    from sightline.report.figures import check_format

    check_format(path)
    code = None
    if not path.parent.is_dir():
        code = errno.ENOENT
    elif path.is_dir():
        code = errno.EISDIR
    elif not os.access(path if path.exists() else path.parent, os.W_OK):
        code = errno.EACCES
    if code is not None:
        raise OSError(code, os.strerror(code), str(path))
