"""Small faults, one at a time: what mutmut makes of a room's source.

mutmut's operators say which faults there are (a number plus one, `<` for `<=`, an
argument left out or None, a string in other letters, ...). mutmut's own run puts all
mutants of a function side by side behind a switch, for which it must leave out what is
decorated (every property) and what stands outside of functions (every constant). Here
each mutant is a whole file, so that those are mutated too.

Left out, as nothing can notice: annotations, decorators, imports, `__all__`, TypeVar,
docstrings; and mutations of the call itself of `len` and `isinstance`, which fail at
once. Left out, and counted: the wording of a message, that is a string in a `raise`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import libcst as cst
from mutmut.mutation.mutators import mutation_operators

UNSEEN = (cst.Annotation, cst.Decorator, cst.Import, cst.ImportFrom)
UNSEEN_NAMES = {"__all__", "TypeVar"}
FAIL_AT_ONCE = {"len", "isinstance"}
TOP = "(top)"


@dataclass(frozen=True, eq=False)
class Mutant:
    """One room's source with one fault in it.

    `where` is the room and the function (or class, or "(top)"); `node` is what stands
    there and `fault` what takes its place.
    """

    where: str
    module: cst.Module
    node: cst.CSTNode
    fault: cst.CSTNode

    @cached_property
    def source(self) -> str:
        """The whole file, with the fault."""
        mutated = self.module.deep_replace(self.node, self.fault)
        assert isinstance(mutated, cst.Module)
        return mutated.code

    @cached_property
    def change(self) -> tuple[str, str]:
        """The lines that differ, before and after, each set joined to one line."""
        old, new = self.module.code.splitlines(), self.source.splitlines()
        while old and new and old[0] == new[0]:
            del old[0], new[0]
        while old and new and old[-1] == new[-1]:
            del old[-1], new[-1]
        return " ".join(map(str.strip, old)), " ".join(map(str.strip, new))

    @property
    def key(self) -> tuple[str, str, str]:
        """What names it in survivors.toml: no line number, which an edit would move."""
        return (self.where, *self.change)


class _Mutator(cst.CSTVisitor):
    def __init__(self, room: str, module: cst.Module) -> None:
        self.room, self.module = room, module
        self.scope: list[str] = []
        self.n_raises = 0  # how many `raise` we are in
        self.mutants: list[Mutant] = []
        self.n_wordings = 0

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, UNSEEN) or _names(node) & UNSEEN_NAMES:
            return False
        if isinstance(node, cst.FunctionDef | cst.ClassDef):
            self.scope.append(node.name.value)
        self.n_raises += isinstance(node, cst.Raise)
        if not (isinstance(node, cst.Call) and _names(node) & FAIL_AT_ONCE):
            self.mutate(node)
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        if isinstance(original_node, cst.FunctionDef | cst.ClassDef):
            self.scope.pop()
        self.n_raises -= isinstance(original_node, cst.Raise)

    def mutate(self, node: cst.CSTNode) -> None:
        where = f"{self.room}.{'.'.join(self.scope) or TOP}"
        seen = set()
        for fault in _faults(node):
            code = self.module.code_for_node(fault)
            if code in seen:
                continue
            seen.add(code)
            if self.n_raises and isinstance(node, cst.BaseString):
                self.n_wordings += 1
            else:
                self.mutants.append(Mutant(where, self.module, node, fault))


def _faults(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    for kind, operator in mutation_operators:
        if isinstance(node, kind):
            yield from operator(node)


def _names(node: cst.CSTNode) -> set[str]:
    """The names that a call calls or an assignment assigns to."""
    if isinstance(node, cst.Call):
        return {node.func.value} if isinstance(node.func, cst.Name) else set()
    if isinstance(node, cst.Assign):
        return {t.target.value for t in node.targets if isinstance(t.target, cst.Name)}
    return set()


def mutants_of(room: str, source: str) -> tuple[list[Mutant], int]:
    """The mutants of a room's source, and how many wordings were left out.

    >>> mutants, n_wordings = mutants_of("room", "def f(x):\\n    return x + 1\\n")
    >>> [mutant.change[1] for mutant in mutants]
    ['return x - 1', 'return x + 2']
    """
    module = cst.parse_module(source)
    mutator = _Mutator(room, module)
    module.visit(mutator)
    return [m for m in mutator.mutants if _compiles(m.source)], mutator.n_wordings


def _compiles(source: str) -> bool:
    try:
        compile(source, "mutant", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True
