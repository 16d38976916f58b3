"""One function's code in the place of another's, while all else stays as it is.

A function that was imported by name elsewhere is the same object there, so that its
`__code__` need only be exchanged once. What a module or a class does when it is loaded
(constants, defaults of arguments, fields) cannot be exchanged so.
"""

import gc
from types import CodeType, FunctionType

# By name in the file ("Class.method"); of nested functions the outermost alone.
Codes = dict[str, CodeType]


def functions_of(path: str) -> list[FunctionType]:
    """The functions that were loaded from a file, also those inside of decorators."""
    living = [o for o in gc.get_objects() if isinstance(o, FunctionType)]
    return [f for f in living if f.__code__.co_filename == path]


def changed_codes(right: str, mutated: str, path: str) -> Codes | None:
    """The functions that differ between two sources, or None where more than that does.

    >>> source = "A = 1\\ndef f():\\n    return A\\n"
    >>> [*changed_codes(source, source.replace("return A", "return 2"), "room.py")]
    ['f']
    >>> changed_codes(source, source.replace("A = 1", "A = 2"), "room.py")
    """
    before, after = (compile(s, path, "exec", 0, True) for s in (right, mutated))
    changed: Codes = {}
    return changed if _compare(before, after, changed) else None


def _compare(before: CodeType, after: CodeType, changed: Codes) -> bool:
    """Notes the functions that differ; False where what surrounds them differs too."""
    inner, new_inner = _inner_codes(before), _inner_codes(after)
    if _own(before) != _own(after) or len(inner) != len(new_inner):
        return False
    for old, new in zip(inner, new_inner, strict=True):
        if old.co_name != new.co_name:
            return False
        if _is_function(old):
            if old != new:
                changed[new.co_qualname] = new
        elif not _compare(old, new, changed):
            return False
    return True


def _inner_codes(code: CodeType) -> list[CodeType]:
    return [const for const in code.co_consts if isinstance(const, CodeType)]


def _own(code: CodeType) -> tuple[object, ...]:
    consts = [repr(c) for c in code.co_consts if not isinstance(c, CodeType)]
    return code.co_code, code.co_names, consts


def _is_function(code: CodeType) -> bool:
    return bool(code.co_flags & 0x2)  # CO_NEWLOCALS: a class's body has it not


def swap(functions: list[FunctionType], codes: Codes) -> bool:
    """Gives the functions their new code; False where one of them is not there."""
    found = set()
    for function in functions:
        name = function.__code__.co_qualname
        if name in codes:
            function.__code__ = codes[name]
            found.add(name)
    return found == set(codes)
