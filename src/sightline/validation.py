"""Validation of public arguments; errors name the argument, its value and the allowed range."""

from __future__ import annotations

import decimal
import inspect
import itertools
import math
import numbers
import operator
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: Largest feature, reward or scale: products of four do not overflow.
LARGEST = 1e70
#: Smallest scale, such as a noise level: products of four do not underflow.
SMALLEST = 1e-70

_MOST_ENTRIES = 10**6  # of an iterable, which may be infinite
_LONGEST = 80  # characters of a value in a message
_UNKNOWN_MEMORY = 2**40  # bytes, where the system does not report its memory


def shown(value: Any) -> str:
    """Format a value for a message: on one line, shortened, and without raising."""
    if isinstance(value, int) and not isinstance(value, bool):
        return _integer_text(value)
    if isinstance(value, list | tuple | set | Mapping) and len(value) > _LONGEST:
        return f"a {type(value).__name__} of {len(value)} entries"
    try:
        written = repr(value)
    except Exception:  # custom code, or an integer that is too long to print
        return f"a {type(value).__name__}"
    is_long = len(written) > 10 * _LONGEST
    written = written[: 10 * _LONGEST]  # a megabyte would take a tenth of a second below
    if "\n" in written:
        written = " ".join(written.split())
    written = "".join(letter if letter.isprintable() else "?" for letter in written)
    is_long = is_long or len(written) > _LONGEST
    return f"{written[: _LONGEST - 3]}..." if is_long else written


def _integer_text(value: int) -> str:
    """Format an integer of any size: all digits, or a power of ten."""
    size = abs(value)
    exponent = round(math.log10(size)) if size else 0
    sign = "-" if value < 0 else ""
    if exponent >= 9 and size == 10**exponent:
        return f"{sign}10**{exponent}"
    return str(value) if size < 10**20 else f"about {sign}10**{exponent}"


def finite_array(
    name: str,
    value: ArrayLike,
    shape: tuple[int | None, ...],
    hint: str = "",
    *,
    booleans: bool = True,
) -> NDArray[np.float64]:
    """Return a contiguous float copy of ``value``; None in ``shape`` allows any length >= 1."""
    given = _real_array(name, value, "biuf" if booleans else "iuf")
    array = np.array(given, dtype=np.float64, order="C", ndmin=1)
    wanted = "(" + ", ".join("any" if n is None else str(n) for n in shape) + ")"
    fits = array.ndim == len(shape) and all(
        n is None or n == m for n, m in zip(shape, array.shape, strict=True)
    )
    if not fits:
        got = array.shape if given.ndim else shown(value)
        raise ValueError(f"{name} must have shape {wanted}{hint}, got {got}")
    if array.size == 0:
        raise ValueError(f"{name} must not be empty, got shape {array.shape}")
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{name} must be finite, got {array[where]} at index {where}")
    return array


def _real_array(name: str, value: Any, kinds: str) -> NDArray[Any]:
    """Return an array of real numbers; texts and dates are not converted."""
    allowed = f"{name} must be an array of real numbers"
    if isinstance(value, np.ma.MaskedArray):
        raise ValueError(f"{allowed}, got a masked array: fill or remove masked entries")
    try:
        array = np.asarray(value)
    except Exception as error:  # custom code may raise any exception
        if "inhomogeneous" in str(error):
            raise ValueError(f"{allowed} in rows of equal length, got {shown(value)}") from None
        raise ValueError(f"{allowed}, got {shown(value)}: {error}") from None
    if array.dtype.kind in kinds or array.size == 0:
        return array
    if array.dtype.kind == "c":
        raise ValueError(f"{allowed}: it is complex, got {shown(array.flat[0])}")
    if array.dtype.kind not in "OUSTb":
        raise ValueError(f"{allowed}, got dtype {array.dtype}")
    # NumPy converts the numbers of a list with a text to texts
    objects = np.asarray(value, dtype=object)
    for index, entry in np.ndenumerate(objects):
        if not _is_real(entry) or (isinstance(entry, bool | np.bool_) and "b" not in kinds):
            where = f" at index {index}" if index else ""
            raise ValueError(f"{allowed}, got {shown(entry)}{where}")
    return objects.astype(np.float64)


def _is_real(value: Any) -> bool:
    """Whether a value is a real number within the range of floats."""
    if isinstance(value, np.generic):
        return value.dtype.kind in "biuf"
    if not isinstance(value, numbers.Real | decimal.Decimal):
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True


def action_set(actions: ArrayLike, name: str = "actions") -> NDArray[np.float64]:
    """Return a copy of an action set, shape (k, d), with entries up to ``LARGEST``."""
    array = finite_array(name, actions, (None, None), hint=", one arm per row")
    largest = np.abs(array).max()
    if largest > LARGEST:
        raise ValueError(
            f"{name} must not exceed {LARGEST:g} in any entry, got {largest:g}: scale the features"
        )
    return array


def number(
    name: str,
    value: Any,
    *,
    above: float = -math.inf,
    at_least: float = -math.inf,
    at_most: float = math.inf,
    size: float = math.inf,
) -> float:
    """Return a finite float in the given range, with absolute value up to ``size``."""
    if isinstance(value, np.generic):
        real = value.dtype.kind in "iuf"
    else:
        real = isinstance(value, int | float) and not isinstance(value, bool)
    if not real:
        raise ValueError(f"{name} must be a number, got {shown(value)}")
    try:
        result = float(value)
    except OverflowError:
        result = math.inf if value > 0 else -math.inf
    if not math.isfinite(result) or result <= above or result < at_least:
        allowed = "finite"
        if above > -math.inf:
            allowed += f" and > {above:g}"
        if at_least > -math.inf:
            allowed += f" and >= {at_least:g}"
        raise ValueError(f"{name} must be {allowed}, got {shown(value)}")
    if result > at_most:
        raise ValueError(f"{name} must be at most {at_most:g}, got {shown(value)}")
    if abs(result) > size:
        raise ValueError(f"{name} must not exceed {size:g}, got {shown(value)}")
    return result


def scale(name: str, value: Any, *, power: int = 1) -> float:
    """Return a float from SMALLEST to LARGEST, or of their ``power``, as for a variance."""
    result = number(name, value, above=0)
    if not SMALLEST**power <= result <= LARGEST**power:
        raise ValueError(
            f"{name} must be between {SMALLEST**power:g} and {LARGEST**power:g}, "
            f"got {shown(value)}: choose another unit"
        )
    return result


def integer(name: str, value: Any, *, at_least: int, at_most: int | None = None) -> int:
    """Return a Python integer of any size that is at least ``at_least``."""
    try:
        if isinstance(value, bool):
            raise TypeError
        result = operator.index(value)
    except TypeError:
        raise ValueError(f"{name} must be an integer (such as 10**6), got {shown(value)}") from None
    if result < at_least:
        raise ValueError(f"{name} must be at least {at_least}, got {shown(result)}")
    if at_most is not None and result > at_most:
        raise ValueError(f"{name} must be at most {shown(at_most)}, got {shown(result)}")
    return result


def flag(name: str, value: Any) -> bool:
    """Return ``value`` if it is True or False."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, got {shown(value)}")
    return value


#: Names in the literature of what this library calls differently, without capitals and hyphens.
_SYNONYMS = {
    "oful": "LinUCB",
    "linoful": "LinUCB",
    "ucb": "LinUCB",
    "linrel": "LinUCB",
    "greedylinucb": "LinUCB",
    "ts": "ThompsonSampling",
    "lints": "ThompsonSampling",
    "thompson": "ThompsonSampling",
    "posteriorsampling": "ThompsonSampling",
    "vids": "BayesianIDS",
    "varianceids": "BayesianIDS",
    "frequentistids": "IDS",
    "informationdirectedsampling": "IDS",
    "greedy": "EpsilonGreedy",
    "epsgreedy": "EpsilonGreedy",
    "etc": "PEGE",
    "explorethencommit": "PEGE",
    "logisticucb": "GLMUCB",
    "ucbglm": "GLMUCB",
    "bandit": "LinearBandit",
    "contextuallinearbandit": "ContextualBandit",
    "linearcontextualbandit": "ContextualBandit",
    "partialmonitoring": "LinearGame",
    "linearpartialmonitoring": "LinearGame",
    "duelingbandit": "duel",
    "logisticbandit": "LinearBandit(rewards=Bernoulli())",
    "generalizedlinearbandit": "LinearBandit(rewards=Bernoulli())",
    "generalisedlinearbandit": "LinearBandit(rewards=Bernoulli())",
    "poissonbandit": "LinearBandit(rewards=Poisson())",
    "regretlowerbound": "lower_bound",
}
_PREFIX = 4  # letters that suffice to recognise the beginning of a name


def nearest(written: str, known: Iterable[str]) -> str | None:
    """Find the known name that was probably meant: a synonym, a misspelling or a longer form.

    None if no known name is close: an unrelated suggestion is worse than none.
    """
    names = {_letters(name): name for name in known}
    letters = _letters(written)[:_LONGEST]
    synonym = _SYNONYMS.get(letters, "")
    if synonym.partition("(")[0] in names.values():
        return synonym
    # One wrong letter in a short word, one more for every six letters of a longer one.
    most = (1 + len(letters) // 6) * (len(letters) > 2)
    distances = {
        name: _edits(letters, name) for name in names if abs(len(name) - len(letters)) <= most
    }
    if distances and min(distances.values()) <= most:
        return names[min(distances, key=lambda name: distances[name])]
    longer = [name for name in names if len(letters) >= _PREFIX and name.startswith(letters)]
    return names[min(longer, key=len)] if longer else None


def _letters(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")


def _edits(first: str, second: str) -> int:
    """Count insertions, deletions, replacements and swaps of neighbours between two words."""
    before, row = [0] * (len(second) + 1), list(range(len(second) + 1))
    for i, a in enumerate(first, 1):
        before, above, row = row, before, [i]
        for j, b in enumerate(second, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == second[j - 2] and first[i - 2] == b:
                cost = min(cost, above[j - 2] + 1)
            row.append(cost)
    return row[-1]


#: Names that a message lists.
_MOST_NAMES = 25


def one_of(name: str, value: Any, allowed: Iterable[str]) -> str:
    """Return ``value`` if it is one of the allowed names; otherwise suggest the nearest."""
    names = list(allowed)
    if isinstance(value, str) and value in names:
        return str(value)
    meant = nearest(value if isinstance(value, str) else shown(value), names)
    hint = f"; did you mean {meant!r}?" if meant else ""
    listed = ", ".join(map(repr, names[:_MOST_NAMES]))
    if len(names) > _MOST_NAMES:
        listed += f" and {len(names) - _MOST_NAMES} others"
    raise ValueError(f"{name} must be one of {listed}, got {shown(value)}{hint}")


def call_described(
    known: Mapping[str, Callable[..., Any]], description: Mapping[str, Any], what: str = "type"
) -> Any:
    """Call the function or class named by ``"type"`` with the other fields of a description."""
    fields = dict(description)
    kind = one_of(what, fields.pop("type", None), known)
    parameters = inspect.signature(known[kind]).parameters
    for name in fields:
        one_of(f"field of {kind}", name, parameters)
    for name, parameter in parameters.items():
        if parameter.default is parameter.empty and name not in fields:
            raise ValueError(f"{kind} needs a value for {name}")
    return known[kind](**fields)


def instance(name: str, value: Any, cls: type, what: str) -> None:
    """Check the class of a value; ``what`` names it in the message, such as "a Policy"."""
    if not isinstance(value, cls):
        raise ValueError(f"{name} must be {what}, got {shown(value)}")


def event(name: str, value: Any) -> None:
    """Check that a value is None or an event of threading or multiprocessing."""
    asks = getattr(value, "is_set", None)
    if value is not None and (isinstance(value, type) or not callable(asks)):
        raise ValueError(f"{name} must be a threading.Event or None, got {shown(value)}")


def text(name: str, value: Any) -> str:
    """Return a printable text on one line."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise ValueError(f"{name} must be printable text, got {shown(value)}")
    return str(value)


def entries(name: str, value: Any, what: str) -> list[Any]:
    """Return the entries of a finite iterable with at least one; ``what`` names its kind."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise ValueError(f"{name} must be {what}, got {shown(value)}")
    if isinstance(value, range) and len(value) > _MOST_ENTRIES:  # the length of others is unknown
        raise ValueError(
            f"{name} must have at most {_MOST_ENTRIES} entries, got {shown(len(value))}"
        )
    found = list(itertools.islice(value, _MOST_ENTRIES + 1))
    if not found:
        raise ValueError(f"{name} must not be empty")
    if len(found) > _MOST_ENTRIES:
        raise ValueError(f"{name} must have at most {_MOST_ENTRIES} entries, got more")
    return found


def file_path(name: str, value: Any) -> Path:
    """Return the path of a file or directory; Python takes a number for an open file."""
    if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str):
        raise ValueError(f"{name} must be the path of a file, got {shown(value)}")
    written = os.fspath(value)
    if not written or "\0" in written:
        raise ValueError(f"{name} must be the path of a file, got {shown(written)}")
    return Path(written)


def affordable(what: str, size: int) -> None:
    """Refuse, before any work, a size in bytes beyond the memory; ``what`` is "k = 3 arms"."""
    memory = _memory()
    if size > memory:
        raise ValueError(
            f"{what} would take {size_text(size)} of memory, this machine has {size_text(memory)}"
        )


def size_text(size: int) -> str:
    """Format a number of bytes: ``16 TB``."""
    for unit, name in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB")):
        if size >= unit:
            return f"{shown(size // unit)} {name}"
    return f"{size} bytes"


def _memory() -> int:
    """Bytes of memory of this machine."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not on every system
        return _UNKNOWN_MEMORY
