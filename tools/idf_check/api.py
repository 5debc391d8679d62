# SPDX-License-Identifier: Apache-2.0
"""The API of `firmware/host/idf` against that of ESP-IDF: names, types and constants, header by header.

A function on one side and a macro with as many parameters on the other are the same to whoever calls them.
Differences that are meant stand in ``deliberate.toml``, each with its reason; an entry that is no difference
any more is reported as well.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hil.base.errors import ConfigError
from tools.idf_check.declarations import Declarations
from tools.idf_check.view import Question, View

DELIBERATE = Path(__file__).with_name("deliberate.toml")

_BUILT_IN = frozenset({"bool", "char", "double", "float", "int", "long", "short", "void"})
_HANDLE = re.compile(r"^(\w+)(\*{1,2})$")
_ANY_NUMBER = -1


@dataclass
class Side:
    """What one side says, by header."""

    answers: dict[tuple[str, Question], str] = field(default_factory=dict)
    macros: dict[str, Mapping[str, int | None]] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)

    def names_of_tags(self) -> dict[str, str]:
        """Return how structures are called by their typedefs: a tag is no name that a caller writes."""
        found: dict[str, str] = {}
        for (_, question), answer in sorted(self.answers.items(), key=lambda item: item[0]):
            match = _HANDLE.match(answer) if question.kind == "type" else None
            if match and match[1] not in _BUILT_IN:
                found.setdefault(match[1], f"{question.name}{'' if len(match[2]) == 1 else '→'}")
        return found


@dataclass(frozen=True)
class Deliberate:
    """Names that differ and why, by kind; and numbers that the firmware writes out, as ESP-IDF calls them."""

    headers: Mapping[str, str]
    names: Mapping[str, str]
    config: Mapping[str, str]
    constants: Sequence[Mapping[str, str]]


@dataclass
class Comparison:
    """``differences`` are sentences by name; ``deliberate`` counts those that are meant."""

    headers: int = 0
    functions: int = 0
    types: int = 0
    constants: int = 0
    differences: dict[str, str] = field(default_factory=dict)
    deliberate: int = 0


def headers_below(folders: Iterable[Path]) -> dict[str, Path]:
    """Return the headers of include folders by the name that a source includes them by."""
    return {str(path.relative_to(top)): path for top in folders for path in sorted(top.rglob("*.h"))}


def compare(
    host: View, idf: View, headers: Mapping[str, Path], deliberate: Mapping[str, str] | None = None
) -> Comparison:
    """Ask both sides about everything that ``headers`` declare. Raises ConfigError where ours are broken."""
    meant = dict(deliberate or {})
    result = Comparison()
    ours, theirs = Side(), Side()
    for header, path in headers.items():
        if header not in meant:
            declarations = host.declared(header, path)
            _ask(host, ours, header, declarations)
            _ask(idf, theirs, header, declarations)
            _count(result, declarations)
    found = _differences(ours, theirs)
    stale = {name: "is no difference any more" for name in meant if name not in found and name not in headers}
    result.deliberate = sum(name in meant for name in found) + sum(name in meant for name in headers)
    result.differences = {name: text for name, text in found.items() if name not in meant} | stale
    return result


def read_deliberate(path: Path = DELIBERATE) -> Deliberate:
    """Return what the file says."""
    return Deliberate(**tomllib.loads(path.read_text(encoding="utf-8")))


def questions_about(declarations: Declarations) -> list[Question]:
    """Return what there is to ask; a macro is asked for as a value, as a text, and as a macro."""
    plain = [name for name, parameters in declarations.macros.items() if parameters is None]
    # where one side has a macro the other may have a function
    calls = [name for name, parameters in declarations.macros.items() if parameters is not None]
    asked = {
        "function": [*declarations.functions, *calls],
        "type": declarations.types,
        "member": declarations.members,
        "width": declarations.bit_fields,
        "value": [*declarations.constants, *plain],
        "text": plain,
    }
    return [Question(kind, name) for kind, names in asked.items() for name in dict.fromkeys(names)]


def _ask(view: View, side: Side, header: str, declarations: Declarations) -> None:
    if why := view.compiles(header):
        side.broken[header] = why
        return
    answers = view.answers(header, questions_about(declarations))
    side.answers |= {(header, question): answer for question, answer in answers.items()}
    macros = view.macros(header)
    side.macros[header] = macros
    for name in declarations.macros:
        if name in macros:
            side.answers[header, Question("macro", name)] = _shape(macros[name])


def _shape(parameters: int | None) -> str:
    return "without parameters" if parameters is None else f"with {parameters} parameters"


def _count(result: Comparison, declarations: Declarations) -> None:
    result.headers += 1
    result.functions += len(declarations.functions)
    result.functions += sum(count is not None for count in declarations.macros.values())
    result.types += len(declarations.types) + len(declarations.members) + len(declarations.bit_fields)
    result.constants += len(declarations.constants)
    result.constants += sum(count is None for count in declarations.macros.values())


def _differences(ours: Side, theirs: Side) -> dict[str, str]:
    found = {header: f"cannot be included: {why}" for header, why in theirs.broken.items()}
    our_names, their_names = ours.names_of_tags(), theirs.names_of_tags()
    for (header, question), answer in ours.answers.items():
        if header in theirs.broken:
            continue
        mine = _renamed(answer, our_names)
        said = theirs.answers.get((header, question))
        other = None if said is None else _renamed(said, their_names)
        if mine != other and not _same_to_a_caller(ours, theirs, header, question):
            what = "is not there" if other is None else f"is {_plain(other)} in ESP-IDF"
            found.setdefault(question.name, f"{what}, {_plain(mine)} in host/idf ({question.kind}, {header})")
    return found


def _renamed(answer: str, names: Mapping[str, str]) -> str:
    return re.sub(r"[A-Za-z_]\w*", lambda word: names.get(word[0], word[0]), answer)


def _plain(answer: str) -> str:
    return answer.replace(" (*)(", " (")


def _same_to_a_caller(ours: Side, theirs: Side, header: str, question: Question) -> bool:
    """Return whether a function is a macro there, or a macro a function, with as many parameters."""
    mine, other = (_parameters(side, header, question.name) for side in (ours, theirs))
    if question.kind == "function":
        return mine is not None and other in {mine, _ANY_NUMBER} and _answer(theirs, header, question) is None
    if question.kind == "macro":
        named = question.name in theirs.macros.get(header, {})
        callable_ = mine is not None and other is not None and (mine == other or _ANY_NUMBER in {mine, other})
        return callable_ or (not named and _is_object(ours, theirs, header, question.name))
    return False


def _is_object(ours: Side, theirs: Side, header: str, name: str) -> bool:
    """Return whether a constant is a macro here and an enumeration constant of one value there."""
    value = Question("value", name)
    mine = _answer(ours, header, value)
    return mine is not None and mine == _answer(theirs, header, value)


def _answer(side: Side, header: str, question: Question) -> str | None:
    return side.answers.get((header, question))


def _parameters(side: Side, header: str, name: str) -> int | None:
    """Return how many parameters a call of ``name`` has, function or macro; None where there is neither."""
    macro = side.macros.get(header, {}).get(name)
    if macro is not None:
        return macro
    function = _answer(side, header, Question("function", name))
    if function is None:
        return None
    return _count_arguments(function.partition("(*)(")[2].removesuffix(")"))


def _count_arguments(text: str) -> int:
    if text == "void" or not text:
        return 0
    depth, commas = 0, 0
    for letter in text:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        commas += letter == "," and depth == 0
    return commas + 1


def compare_values(idf: View, expected: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return which of the numbers that the firmware writes out are not ESP-IDF's. Raises ConfigError."""
    found: dict[str, str] = {}
    for entry in expected:
        header, name, value = entry["header"], entry["name"], entry["value"]
        question = Question("value", name)
        if why := idf.compiles(header):
            raise ConfigError(f"{header} cannot be included: {why}")
        said = idf.answers(header, [question]).get(question)
        if said is None or int(said) != int(value, 0):
            found[name] = f"is {said or 'not there'} in ESP-IDF, {value} in the firmware ({header})"
    return found
