"""`PauliSum`: observables as weighted sums of Pauli strings."""

from __future__ import annotations

import cmath
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from onehop import _core
from onehop.arguments import instance, is_sequence, quoted, whole_number
from onehop.error import BadInput
from onehop.text import counted, shortened

__all__ = ["PauliSum", "PauliTerm"]

_NUMBER = r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_LETTERS = frozenset("XYZ")
_FACTOR = r"(?:[IXYZ]_?\d+|I(?![A-Za-z0-9_]))"
_LABEL = r"[IXYZ]+(?![A-Za-z0-9_])"
_FACTORS = rf"{_FACTOR}(?:\s*(?:\*\s*)?{_FACTOR})*"
_TERM = re.compile(
    rf"""(?P<signs>(?:\s*[+-])*) \s*
    (?P<weight>\(\s*[+-]?[\d.eE+\-\s]*j\s*\) | \(\s*[+-]?{_NUMBER}\s*\) | {_NUMBER})?
    (?P<product>\s*(?P<times>\*\s*)? (?:
        (?P<open>\[)\s*(?:{_FACTORS})?\s*(?P<close>\])? | (?P<label>{_LABEL}) | {_FACTORS}))?""",
    re.X | re.ASCII,
)


@dataclass(frozen=True)
class PauliTerm:
    """A weighted Pauli string.

    Attributes
    ----------
    coefficient : complex
        Weight, a finite number.
    paulis : tuple of (int, str)
        Qubit and letter (X, Y or Z) of each factor, by ascending qubit. Empty for the identity.

    Raises
    ------
    BadInput
        The weight is not finite, or a factor is no qubit with a letter.
    """

    coefficient: complex
    paulis: tuple[tuple[int, str], ...] = ()

    def __post_init__(self) -> None:
        try:
            is_finite = cmath.isfinite(self.coefficient)
        except TypeError:
            is_finite = False
        if not is_finite:
            raise BadInput(f"expected a finite weight of a Pauli string, found {quoted(self.coefficient)}")
        try:
            are_pairs = all(qubit >= 0 and letter in _LETTERS for qubit, letter in self.paulis)
        except (TypeError, ValueError):
            are_pairs = False
        if not are_pairs:
            raise BadInput(
                f"expected pairs of a qubit and a letter X, Y or Z in a Pauli string, found {quoted(self.paulis)}"
            )

    @property
    def x_mask(self) -> int:
        """Qubits with X or Y, as bits."""
        return sum(1 << qubit for qubit, letter in self.paulis if letter in "XY")

    @property
    def z_mask(self) -> int:
        """Qubits with Z or Y, as bits."""
        return sum(1 << qubit for qubit, letter in self.paulis if letter in "YZ")

    @property
    def is_diagonal(self) -> bool:
        """Whether the string has no X and no Y."""
        return all(letter == "Z" for _, letter in self.paulis)

    def __str__(self) -> str:
        c = self.coefficient
        weight = repr(c.real) if c.imag == 0 else repr(c)
        return "*".join([weight, " ".join(f"{letter}{qubit}" for qubit, letter in self.paulis) or "I"])


@dataclass(frozen=True, repr=False)
class PauliSum:
    """A weighted sum of Pauli strings: a Hamiltonian or another observable.

    Attributes
    ----------
    terms : tuple of PauliTerm
        Terms in the given order; equal strings are not combined.
    """

    terms: tuple[PauliTerm, ...]

    @classmethod
    def parse(cls, text: str) -> PauliSum:
        """Parse text such as `Z0 Z1 + 0.5*X2 - Y0*Y3 + 2`, or HamLib's `(1+0j) [Z0 Z1] + (2+0j) [X0]`.

        A term is an optional weight and factors, separated by a space or `*`. A factor is a letter and a qubit. A
        weight without factors is a multiple of the identity, which may be written `I`. A term may also be a letter for
        each qubit, as in `0.5*IZZ + XXI`; the last one belongs to qubit 0, as in Qiskit.

        Raises
        ------
        BadInput
            The text has another form, a qubit occurs twice in a term, or terms have different numbers of letters. The
            message names the column.
        """
        return cls(tuple(_terms(instance(text, str, "text"))))

    @classmethod
    def of(cls, observable: Any) -> PauliSum:
        """Convert text, a `PauliSum`, or Qiskit's `SparsePauliOp` or `Pauli`.

        Raises
        ------
        BadInput
            The observable has another type, or the text cannot be parsed.
        """
        if isinstance(observable, PauliSum):
            return observable
        if isinstance(observable, str):
            return cls.parse(observable)
        listed = getattr(observable, "to_sparse_list", None)
        if listed is not None:
            return cls(
                tuple(
                    PauliTerm(complex(weight), tuple(sorted(zip(map(int, qubits), letters, strict=True))))
                    for letters, qubits, weight in listed()
                )
            )
        label = getattr(observable, "to_label", None)
        if label is not None:
            return cls((_from_label(label()),))
        raise BadInput(
            f"expected an observable as text, PauliSum or Qiskit's SparsePauliOp, found {type(observable).__name__}"
        )

    @property
    def qubits(self) -> int:
        """Number of qubits that the sum needs: one more than the highest qubit, or 0 if there is none."""
        return max((term.paulis[-1][0] + 1 for term in self.terms if term.paulis), default=0)

    @property
    def is_hermitian(self) -> bool:
        """Whether all weights are real."""
        return all(term.coefficient.imag == 0 for term in self.terms)

    def require(self, qubits: int) -> None:
        """Check that the sum acts on at most `qubits` qubits.

        Raises
        ------
        BadInput
            The sum names a higher qubit.
        """
        if self.qubits > whole_number(qubits, "qubits", 0):
            raise BadInput(
                f"the observable names qubit {self.qubits - 1}, but there are {counted(qubits, 'qubit')}: 0 "
                f"to {qubits - 1}"
            )

    def __len__(self) -> int:
        return len(self.terms)

    def __iter__(self) -> Iterator[PauliTerm]:
        return iter(self.terms)

    def __add__(self, other: PauliSum) -> PauliSum:
        return PauliSum(self.terms + other.terms)

    def __matmul__(self, other: PauliSum) -> PauliSum:
        """Return the product of two observables, in which each string occurs once."""
        weights: dict[tuple[tuple[int, str], ...], complex] = {}
        for left in self.terms:
            for right in other.terms:
                phase, paulis = _product(left.paulis, right.paulis)
                weights[paulis] = weights.get(paulis, 0) + phase * left.coefficient * right.coefficient
        return PauliSum(tuple(PauliTerm(weight, paulis) for paulis, weight in weights.items()))

    def squared(self) -> PauliSum:
        """Return the square of a Hermitian observable, with real weights."""
        terms = (self @ self).terms
        return PauliSum(tuple(PauliTerm(complex(term.coefficient.real), term.paulis) for term in terms))

    def __str__(self) -> str:
        return " + ".join(map(str, self.terms)) or "0"

    def __repr__(self) -> str:
        return f"<PauliSum: {shortened(str(self), 60)}>"


_NEXT = {"X": "Y", "Y": "Z", "Z": "X"}


def _product(
    left: tuple[tuple[int, str], ...], right: tuple[tuple[int, str], ...]
) -> tuple[complex, tuple[tuple[int, str], ...]]:
    """Multiply two Pauli strings; return the phase and the string."""
    phase: complex = 1
    letters = dict(left)
    for qubit, second in right:
        first = letters.pop(qubit, None)
        if first is None:
            letters[qubit] = second
        elif first != second:
            # XY = iZ and cyclic, the reverse order has the opposite sign.
            phase *= 1j if _NEXT[first] == second else -1j
            letters[qubit] = next(iter({"X", "Y", "Z"} - {first, second}))
    return phase, tuple(sorted(letters.items()))


def sums_of(
    observables: Iterable[Any], qubits: int | None = None, *, hermitian: bool = False
) -> list[PauliSum]:
    """Convert several observables as `PauliSum.of` does; refuse one that needs more qubits, or is not Hermitian."""
    if isinstance(observables, PauliSum) or not is_sequence(observables):
        raise BadInput(f"expected a list of observables, found {observables!r}; put one observable in a list")
    sums = [PauliSum.of(one) for one in observables]
    for one in sums:
        if qubits is not None:
            one.require(qubits)
        if hermitian and not one.is_hermitian:
            raise BadInput(f"expected a Hermitian observable with real weights, found {str(one)[:80]}")
    return sums


def core_sum(observable: PauliSum) -> _core.PauliSum:
    """Convert an observable to the type of the library."""
    return _core.PauliSum([(complex(t.coefficient), list(t.paulis)) for t in observable.terms])


def texts_of(sums: Sequence[PauliSum]) -> list[str]:
    """Return texts that are the same for the same observables, with all digits."""
    return [repr([(one.coefficient, one.paulis) for one in single.terms]) for single in sums]


def real_where_real(sums: Sequence[PauliSum], values: Sequence[complex]) -> list[float | complex]:
    """Convert expectation values to floats where all coefficients of the observable are real."""
    return [float(v.real) if s.is_hermitian else complex(v) for s, v in zip(sums, values, strict=True)]


def _from_label(label: str) -> PauliTerm:
    """Convert Qiskit's label: the last qubit first, after an optional phase such as -i."""
    letters = label.lstrip("+-ij1")
    phase = {"": 1, "-": -1, "i": 1j, "-i": -1j}[label[: len(label) - len(letters)].strip("+")]
    pairs = ((qubit, letter) for qubit, letter in enumerate(reversed(letters)) if letter != "I")
    return PauliTerm(phase, tuple(pairs))


def _terms(text: str) -> Iterator[PauliTerm]:
    """Parse all terms of an observable."""
    if not text.strip():
        raise _bad(text, 0, "the text is empty")
    place, end, letters = 0, len(text.rstrip()), 0
    while place < end:
        match = _TERM.match(text, place)
        assert match is not None  # all its parts are optional
        begin = match.end("signs")
        if match["open"] and not match["close"]:
            raise _unexpected(text, match.end(), "']'")
        is_empty = match["weight"] is match["product"] is None
        if is_empty or (place and not match["signs"]) or (match["times"] and not match["weight"]):
            raise _unexpected(text, begin, "a term")
        length = len(match["label"] or "")
        if letters and length > 1 and length != letters:
            raise _bad(text, match.start("label"), f"found {length} letters after a term of {letters}")
        letters = length if length > 1 else letters
        weight = _weight(text, match) * (-1) ** match["signs"].count("-")
        yield PauliTerm(weight, _paulis(text, match))
        place = match.end()


def _weight(text: str, match: re.Match[str]) -> complex:
    try:
        weight = complex((match["weight"] or "1").replace(" ", ""))
    except ValueError as error:
        raise _bad(text, match.start("weight"), f"{match['weight']!r} is no number") from error
    if not cmath.isfinite(weight):
        raise _bad(text, match.start("weight"), f"{match['weight']!r} is beyond the range of a double")
    return weight


def _paulis(text: str, match: re.Match[str]) -> tuple[tuple[int, str], ...]:
    if match["label"]:
        return _from_label(match["label"]).paulis
    factors: dict[int, str] = {}
    for factor in re.finditer(r"([XYZ])_?(\d+)", match["product"] or "", re.ASCII):
        place = match.start("product") + factor.start()
        if len(factor[2]) > 6:
            raise _bad(text, place, f"there is no qubit {factor[2][:20]}")
        if int(factor[2]) in factors:
            raise _bad(text, place, f"qubit {factor[2]} occurs twice in a term")
        factors[int(factor[2])] = factor[1]
    return tuple(sorted(factors.items()))


def _unexpected(text: str, column: int, missing: str) -> BadInput:
    rest = text[column:].lstrip()
    word = re.split(r"[\s*+\]\[]", rest)[0][:40] or rest[:1]
    return _bad(text, column, f"found {word!r}" if word else f"{missing} is missing")


def _bad(text: str, column: int, problem: str) -> BadInput:
    column += len(text[column:]) - len(text[column:].lstrip())
    shown = text if len(text) <= 60 else text[max(0, column - 30) : column + 30] + "..."
    return BadInput(
        f"observable {shown!r}, column {column + 1}: {problem}; expected terms as in "
        '"Z0 Z1 + 0.5*X2", with a letter X, Y or Z and a qubit in each factor, or as in "IZZ"'
    )
