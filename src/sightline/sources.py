"""Source files on which a result depends, found by following imports through the package.

Import statements are read from the text in milliseconds, without importing.  Imports inside
functions and under ``TYPE_CHECKING`` count as well: one file too many is better than a result that
outlives its code.

Importing ``sightline.a.b`` runs the ``__init__.py`` of ``sightline.a``, which therefore counts.
That of ``sightline`` itself only forwards names on first use; it counts where a module imports it
by name, with all modules that it forwards.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
from collections.abc import Iterable
from pathlib import Path

_PACKAGE = __name__.split(".")[0]
_ROOT = Path(__file__).parent

# Both patterns begin with a fixed word, which makes the search fast.
_FROM = re.compile(rf"from[ \t]+({_PACKAGE}(?:\.\w+)*)[ \t]+import[ \t]+(\([^)]*\)|[^\n#;]*)")
_IMPORT = re.compile(rf"import[ \t]+(?:[\w.]+(?: as \w+)?, *)*({_PACKAGE}(?:\.\w+)*)")
_NAME = re.compile(r"(\w+|\*)(?:\s+as\s+\w+)?")
_COMMENT = re.compile(r"#[^\n]*")
# A docstring follows the line that opens a block.  The unrolled loop is three times as fast.
_DOCSTRING = re.compile(r':\n[ \t]*[rR]?"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""[ \t]*\n')


def sources_behind(*modules: str) -> tuple[Path, ...]:
    """Files of some modules, by full name, and of all that they import; sorted by module."""
    return tuple(_files()[module] for module in modules_behind(*modules))


def modules_behind(*modules: str) -> tuple[str, ...]:
    """Names of some modules and of all that they import, directly or not; sorted."""
    found: set[str] = set()
    waiting = list(modules)
    for module in modules:
        if module not in _files():
            raise ValueError(f"{_PACKAGE} has no module {module!r}")
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting += _imported_modules(module)
    return tuple(sorted(found))


@functools.cache
def hash_of(*modules: str) -> str:
    """Hash of the code behind some modules: 16 hexadecimal digits over names and contents.

    Docstrings, comment lines and blank lines do not count.
    """
    digest = hashlib.sha256()
    for module in modules_behind(*modules):
        content = _code(module)
        digest.update(f"{module}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]


def modules_importing(module: str, names: Iterable[str]) -> tuple[str, ...]:
    """Modules of this package that import one of some names from a module; sorted."""
    wanted = {(module, name) for name in names}
    return tuple(sorted(user for user in _files() if wanted & _imports(user)))


def _imports_in(text: str) -> frozenset[tuple[str, str]]:
    """Find imports of this package: pairs of a module and a name, or "" for a module."""
    found = {(match[1], "") for match in _IMPORT.finditer(text) if _begins_line(match)}
    for match in _FROM.finditer(text):
        if _begins_line(match):
            names = _NAME.findall(_COMMENT.sub("", match[2]))
            found.update((match[1], name) for name in names)
    return frozenset(found)


def modules_named_in(text: str) -> frozenset[str]:
    """Modules of this package that a text imports."""
    return _modules_of(_imports_in(text))


def _begins_line(match: re.Match[str]) -> bool:
    text, start = match.string, match.start()
    return not text[text.rfind("\n", 0, start) + 1 : start].strip(" \t")


def _modules_of(imports: Iterable[tuple[str, str]]) -> frozenset[str]:
    """Modules named by import statements; a name imported from a package may be a module."""
    files = _files()
    found = set()
    for module, name in imports:
        inner = f"{module}.{name}"
        found.add(inner if inner in files else module)
    return frozenset(found & files.keys())


@functools.cache
def _files() -> dict[str, Path]:
    """File of every module of this package."""
    files = {}
    for folder, _, names in os.walk(_ROOT):
        package = ".".join([_PACKAGE, *Path(folder).relative_to(_ROOT).parts])
        for name in names:
            stem, suffix = os.path.splitext(name)
            if suffix == ".py":
                module = package if stem == "__init__" else f"{package}.{stem}"
                files[module] = Path(folder, name)
    return files


@functools.cache  # the file may be edited while the old code still runs
def _content(module: str) -> bytes:
    return _files()[module].read_bytes()


@functools.cache
def _code(module: str) -> bytes:
    """Code of a module, without docstrings, comment lines and blank lines."""
    text = _DOCSTRING.sub(":\n", ":\n" + _content(module).decode())[2:]
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if line.strip()[:1] not in ("", "#")).encode()


@functools.cache
def _imports(module: str) -> frozenset[tuple[str, str]]:
    return _imports_in(_content(module).decode())


@functools.cache
def _imported_modules(module: str) -> frozenset[str]:
    """Modules that a module imports, and the packages that contain it except for the root."""
    parents = set()
    parent = module.rpartition(".")[0]
    while parent and parent != _PACKAGE:
        parents.add(parent)
        parent = parent.rpartition(".")[0]
    return _modules_of(_imports(module)) | parents
