"""Generic functions with an implementation per class, for the interpreter and compiled code."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar

from sightline.jit.cache import Kernel, is_internal, note_registration, uncached
from sightline.jit.numba_compat import class_of, counts_references, is_kernel, overload_with

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R", covariant=True)


class Registered(NamedTuple):
    """Properties of all implementations that are registered for a class."""

    compiled: bool  # all are compiled
    ours: bool  # all are part of this package


_REGISTERED: dict[type, Registered] = {}
_NOTHING = Registered(True, True)

#: Wraps the implementation for a class in one that checks its results.
Guard = Callable[[Callable[..., Any], type], FunctionType]


def is_ours(function: Any) -> bool:
    """Whether a function is part of this package."""
    return is_internal(function.__module__)


def guarded(implementation: Callable[..., Any], cls: type, guard: Guard) -> Callable[..., Any]:
    """Put a guard around a custom implementation, compiled if the implementation is.

    Built-in implementations are trusted and pay nothing.
    """
    if is_ours(implementation):
        return implementation
    wrapped = guard(implementation, cls)
    wrapped.__module__ = implementation.__module__
    return uncached(wrapped) if is_kernel(implementation) else wrapped


class GenericFunction(Generic[P, R]):
    """A function that dispatches on the class of its first argument, compiled or not.

    The interpreter finds implementations as :func:`functools.singledispatch` does, also for
    subclasses; compiled code finds them by the exact class of a ``NamedTuple``.  A registered
    kernel serves both.

    Parameters
    ----------
    function : callable
        Default for a class without an implementation; also in compiled code, if it is a kernel.
    rebuild : callable, optional
        Makes the result from the tuple that the kernel of :meth:`returns_plainly` returns.  Needed
        where the result is a named tuple or an argument is a random generator: numba makes a named
        tuple by calling its class, and with a signal such as Ctrl-C pending the interpreter then
        crashes.
    check : callable, optional
        Applied to the results of implementations in plain Python.
    guard : callable, optional
        Put around implementations outside of this package; see :func:`guarded`.
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
        # custom kernels may allocate, built-in ones do not; numba has options per overload
        overload_with(self, self._find_counting, counts=True)
        overload_with(self, self._find_not_counting, counts=False)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the implementation for the class of the first argument."""
        return self._find(args[0].__class__)(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<generic function {self.__name__}>"

    def __reduce__(self) -> str:
        """Pickle by name, as functions are."""
        return self.__name__

    def register(self, cls: type, /) -> Callable[[F], F]:
        """Add the implementation for a class, as a decorator."""

        def decorate(implementation: F) -> F:
            self._add(cls, implementation)
            return implementation

        return decorate

    def returns_plainly(self, kernel: F, /) -> F:
        """Set the kernel that returns plain tuples to the interpreter, as a decorator."""
        self._plain_kernel = kernel
        return kernel

    def dispatch(self, cls: type, /) -> Callable[..., Any]:
        """Find the implementation for a class that the interpreter calls."""
        return self._find(cls)

    @property
    def kernels(self) -> dict[type, Any]:
        """Compiled implementations by class."""
        return self._kernels

    def interpret(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the implementation for the class of the first argument, interpreted."""
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
        """Find the source that numba compiles for the type of a first argument; None if none."""
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
    """Make a :class:`GenericFunction`, as a decorator or by a call with its options."""
    return GenericFunction(function, rebuild=rebuild, check=check, guard=guard)


def parts_of(value: Any) -> list[Any]:
    """List a state and its nested named tuples."""
    parts = [value]
    for part in parts:  # the list grows during the loop
        if isinstance(part, tuple):
            parts += [entry for entry in part if isinstance(entry, tuple)]
    return parts


def registered(*values: Any) -> Registered:
    """Summarise the implementations registered for the parts of these values."""
    found = [_REGISTERED.get(type(part), _NOTHING) for value in values for part in parts_of(value)]
    return Registered(all(one.compiled for one in found), all(one.ours for one in found))


def callable_for(function: Callable[..., Any], *values: Any) -> Callable[..., Any]:
    """Choose a kernel or its source: compiled code cannot call parts in plain Python."""
    return function if registered(*values).compiled else interpreted(function)


def entry_for(
    kernel: Callable[..., Any], arguments: tuple[Any, ...], state: Any
) -> Callable[..., Any]:
    """Find a callable for repeated calls with arguments of exactly these types."""
    if not registered(state).compiled:
        return interpreted(kernel)
    return kernel.entry(arguments) if isinstance(kernel, Kernel) else kernel


@functools.cache
def interpreted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Version of a function that runs interpreted, with all kernels that it calls.

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
    """Variable of a closure; a kernel in it is replaced by its interpreted version."""
    value = cell.cell_contents
    kernel = isinstance(value, GenericFunction) or is_kernel(value)
    return CellType(interpreted(value)) if kernel else cell
