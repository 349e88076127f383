"""Generic functions: one name, an implementation per class, for interpreter and compiled code."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar

from sightline.jit.cache import Kernel, note_registration, uncached
from sightline.jit.numba_compat import class_of, counts_references, is_kernel, overload_with

__all__ = [
    "GenericFunction",
    "Registered",
    "callable_for",
    "entry_for",
    "generic",
    "guarded",
    "interpreted",
    "is_ours",
    "parts_of",
    "registered",
]

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R", covariant=True)


class Registered(NamedTuple):
    """What was registered for a class, by any generic function."""

    compiled: bool  # all of it
    ours: bool  # all of it is part of this package


_REGISTERED: dict[type, Registered] = {}
_NOTHING = Registered(True, True)
_PACKAGE = __name__.split(".")[0]

#: Makes, of an implementation and the class that it is for, one that checks what it returns.
Guard = Callable[[Callable[..., Any], type], FunctionType]


def is_ours(function: Any) -> bool:
    """Whether a function is part of this package."""
    module: str = function.__module__
    return module.split(".")[0] == _PACKAGE


def guarded(implementation: Callable[..., Any], cls: type, guard: Guard) -> Callable[..., Any]:
    """Put a guard around an implementation of a user's own, compiled if that is.

    The library's own are trusted, and cost nothing.
    """
    if is_ours(implementation):
        return implementation
    wrapped = guard(implementation, cls)
    wrapped.__module__ = implementation.__module__
    return uncached(wrapped) if is_kernel(implementation) else wrapped


class GenericFunction(Generic[P, R]):
    """A function that dispatches on the class of its first argument, compiled or not.

    Implementations are added with :meth:`register`.  The interpreter finds them as
    :func:`functools.singledispatch` does, for subclasses too; compiled code finds them by the very
    class of a ``NamedTuple``.  Registering a compiled implementation serves both.

    Parameters
    ----------
    function : callable
        What is called for a class without an implementation; by compiled code too, if it is a
        kernel.
    rebuild : callable, optional
        Makes the result from what the kernel given to :meth:`returns_plainly` returns.  Needed
        where the result is a named tuple: numba makes it by calling its class, and if a signal
        such as Ctrl-C is pending at that moment, the interpreter crashes; and where an argument is
        a random generator (see ``compiled``).
    check : callable, optional
        Applied to the results of implementations that are plain Python.
    guard : callable, optional
        Put around implementations that are not part of this package: see :func:`guarded`.
    """

    __name__: str

    def __init__(
        self,
        function: Callable[P, R],
        *,
        rebuild: Callable[..., Any] | None = None,
        check: Callable[[Any], Any] | None = None,
        guard: Guard | None = None,
    ) -> None:
        functools.update_wrapper(self, function)
        self.__name__ = function.__name__.lstrip("_")  # choose = generic(_choose, ...)
        self._default = function if is_kernel(function) else None
        self._table = functools.singledispatch(getattr(function, "py_func", function))
        self._find: Callable[[type], Callable[..., R]] = self._table.dispatch
        self._kernels: dict[type, Any] = {}
        self._rebuild = rebuild
        self._check = check
        self._guard = guard
        self._plain_kernel: Callable[..., Any] | None = None
        # A user's own kernel may allocate, ours do not: numba takes options per overload.
        overload_with(self, self._find_counting, counts=True)
        overload_with(self, self._find_not_counting, counts=False)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the implementation for the class of the first argument."""
        return self._find(args[0].__class__)(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<generic function {self.__name__}>"

    def __reduce__(self) -> str:
        """Pickle by name, as functions are: there is one of each in a process."""
        return self.__name__

    def register(self, cls: type, /) -> Callable[[F], F]:
        """Add the implementation for a class, as a decorator."""

        def decorate(implementation: F) -> F:
            self._add(cls, implementation)
            return implementation

        return decorate

    def returns_plainly(self, kernel: F, /) -> F:
        """Set the kernel through which the interpreter calls kernels, without named tuples."""
        self._plain_kernel = kernel
        return kernel

    def dispatch(self, cls: type, /) -> Callable[..., Any]:
        """Find what the interpreter calls for a class."""
        return self._find(cls)

    @property
    def kernels(self) -> dict[type, Any]:
        """Compiled implementations by class."""
        return self._kernels

    def interpret(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the implementation for the class of the first argument, without compiled code."""
        cls = args[0].__class__
        implementation = self._table.dispatch(cls)
        kernel = self._kernels.get(cls)
        if kernel is None and implementation is self._table.dispatch(object):
            kernel = self._default
        if kernel is not None:
            implementation = interpreted(kernel)
        result: R = implementation(*args, **kwargs)
        return result

    def _add(self, cls: type, implementation: Callable[..., Any]) -> None:
        before = _REGISTERED.get(cls, _NOTHING)
        ours = is_ours(implementation)
        note_registration(self.__module__, cls.__module__, implementation.__module__)
        if self._guard is not None:
            implementation = guarded(implementation, cls, self._guard)
        _REGISTERED[cls] = Registered(
            before.compiled and is_kernel(implementation), before.ours and ours
        )
        called = implementation
        if is_kernel(implementation):
            self._kernels[cls] = implementation
            if self._rebuild is not None:
                called = self._call_plain_kernel
        elif self._check is not None and not ours:
            called = functools.partial(self._call_checked, implementation)
        self._table.register(cls, called)

    def _call_plain_kernel(self, *arguments: Any) -> Any:
        assert self._rebuild is not None
        assert self._plain_kernel is not None, f"{self!r} needs returns_plainly"
        return self._rebuild(*self._plain_kernel(*arguments))

    def _call_checked(self, implementation: Callable[..., Any], *arguments: Any) -> Any:
        assert self._check is not None
        return self._check(implementation(*arguments))

    def _find_counting(self, *types: Any) -> Any:
        return self._source_for(types[0], counts=True)

    def _find_not_counting(self, *types: Any) -> Any:
        return self._source_for(types[0], counts=False)

    def _source_for(self, numba_type: Any, counts: bool) -> Any:
        """Find what numba compiles for the type of a first argument; None if there is nothing."""
        kernel = self._kernels.get(class_of(numba_type), self._default)
        if kernel is None or counts_references(kernel) is not counts:
            return None
        return kernel.py_func


def generic(
    function: Callable[P, R],
    *,
    rebuild: Callable[..., Any] | None = None,
    check: Callable[[Any], Any] | None = None,
    guard: Guard | None = None,
) -> GenericFunction[P, R]:
    """Make a :class:`GenericFunction`, as a decorator or by a call with options.

    Parameters
    ----------
    function : callable
        What is called for a class without an implementation.
    rebuild, check, guard : callable, optional
        See :class:`GenericFunction`.
    """
    return GenericFunction(function, rebuild=rebuild, check=check, guard=guard)


def parts_of(value: Any) -> list[Any]:
    """List a state and its nested named tuples."""
    parts = [value]
    for part in parts:  # which grows on the way
        if isinstance(part, tuple):
            parts += [entry for entry in part if isinstance(entry, tuple)]
    return parts


def registered(*values: Any) -> Registered:
    """Sum up what was registered for the parts of these values."""
    found = [_REGISTERED.get(type(part), _NOTHING) for value in values for part in parts_of(value)]
    return Registered(all(one.compiled for one in found), all(one.ours for one in found))


def callable_for(function: Callable[..., Any], *values: Any) -> Callable[..., Any]:
    """Find what the interpreter is to call for a state: compiled code cannot call plain parts."""
    return function if registered(*values).compiled else interpreted(function)


def entry_for(
    kernel: Callable[..., Any], arguments: tuple[Any, ...], state: Any
) -> Callable[..., Any]:
    """Find what the interpreter is to call again and again with arguments of these types."""
    if not registered(state).compiled:
        return interpreted(kernel)
    return kernel.entry(arguments) if isinstance(kernel, Kernel) else kernel


@functools.cache
def interpreted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Version of a function that runs in the interpreter, with every kernel that it calls.

    For states with a part in plain Python, which compiled code cannot call.
    """
    if isinstance(function, GenericFunction):
        return function.interpret
    source = getattr(function, "py_func", function)
    if not isinstance(source, FunctionType):
        return function
    namespace = dict(source.__globals__)
    for name in source.__code__.co_names:
        value = namespace.get(name)
        if isinstance(value, GenericFunction) or is_kernel(value):
            namespace[name] = interpreted(value)
    closure = source.__closure__ and tuple(map(_interpreted_cell, source.__closure__))
    return FunctionType(source.__code__, namespace, source.__name__, source.__defaults__, closure)


def _interpreted_cell(cell: CellType) -> CellType:
    """Variable of a closure, a kernel in it being one that runs in the interpreter."""
    value = cell.cell_contents
    kernel = isinstance(value, GenericFunction) or is_kernel(value)
    return CellType(interpreted(value)) if kernel else cell
