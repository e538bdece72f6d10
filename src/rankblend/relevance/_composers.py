"""Composition: a tree of nodes evaluated over a table of signals.

A node names a composer, its weighted inputs (other nodes or signals), a missing policy, overrides
for single inputs and the composer's options. `composers.compose_table` evaluates a tree of them.

`compose_table` evaluates each node in three steps:

1. overrides: an absent input with ``Neutral`` or ``Zero`` is filled and counts as present;
   an absent ``Required`` one fails the node;
2. the policy: fills the rest, pulls toward a prior, or asks for a coverage;
3. the composer: one score in [0, 1] per memory, and one row of contributions per input.

=======================  ========  ======  =======================================================
composer                 additive  shrink  score
=======================  ========  ======  =======================================================
weighted_mean            yes       yes     Σwv / Σw over the present
weighted_sum             yes       yes     Σwv over the present, divided by the weight of all
comb_mnz                 yes       yes     weighted_sum × (inputs above 0) / (all inputs)
strongest                winner    no      the greatest present value; a weight of 0 excludes,
                                           no other weight matters
geometric_mean           log       no      exp(Σw ln v / Σw); one 0 makes it 0
boosted                  factor    no      base × Π(1 + a(v − ½)) / Π(1 + a/2); weights are the
                                           strengths a in [0, 2), the base's counts only in the
                                           coverage; an absent factor is exactly 1; without its
                                           base (option ``base``) nothing is present
reciprocal_rank_fusion   yes       yes     Σw(k + 1)/(k + rank) / Σw; option ``k`` (60); option
                                           ``members``: who is on an input's list, ``"positive"``
                                           (above 0), ``"present"``, or per input one of these or
                                           a node or signal that must be above 0; equal values
                                           share the best rank; within the pool, not pointwise;
                                           on no list: nothing is present
=======================  ========  ======  =======================================================

With ``Shrink`` the prior joins as one more input of weight strength · W; where a composer divides
by all weight, that is (score + strength · prior) / (1 + strength). A fill of
``reciprocal_rank_fusion`` is a share of the list's greatest vote, and never a member of the list.

Sources: CombMNZ: Fox and Shaw, "Combination of multiple searches" (TREC-2, 1994); ours is divided
by its maximum. Reciprocal rank fusion: see `kernels.fuse`. ``boosted``: Hindsight's recall boost of
a cross-encoder's score; ours is divided by the bound of the factors, theirs may exceed 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import TypeVar

import numpy as np
from attrs import cmp_using, evolve, field, frozen
from numpy.typing import ArrayLike, NDArray

from rankblend.caches import LazyMapping, ReadOnly
from rankblend.checks import Problems
from rankblend.errors import InvalidArgumentError, UnknownNameError
from rankblend.kernels.compose import total_weight
from rankblend.relevance._combiners import (
    COMPOSERS,
    Composer,
    Inputs,
    Outcome,
)
from rankblend.relevance._missing import (
    COVERAGE_TOLERANCE,
    MissingPolicy,
    Neutral,
    Override,
    Renormalize,
    Require,
    Required,
    Shrink,
    Zero,
)
from rankblend.relevance._signals import SignalTable, names_and_values
from rankblend.values import is_identifier, real_number, shown


def _pairs(value: object) -> tuple[tuple[str, object], ...]:
    """A mapping or pairs as a tuple of pairs."""
    listed = value.items() if isinstance(value, Mapping) else value
    found = tuple(listed) if isinstance(listed, Iterable) else (None,)
    if any(not (isinstance(one, tuple) and len(one) == 2) for one in found) or any(
        not isinstance(name, str) for name, _ in found
    ):
        raise InvalidArgumentError(
            f"node: expected a mapping or pairs with names, got {type(value).__name__}"
        )
    return found


@frozen(init=False)
class Node:
    """One node of a composition.

    Args:
        compose: Name of a composer.
        weights: The inputs in order, each with its weight; a mapping, or pairs. At least one.
        missing: What absent inputs mean.
        absent: Overrides of single inputs; a mapping, or pairs.
        options: Of the composer; a mapping, or pairs. Defaults are filled in, so that a node that
            spells them out equals one that does not.

    Raises:
        InvalidArgumentError: All problems, each with its path, as `node_problems` finds them.

    Example:
        >>> Node("strongest", {"coverage": 1, "similarity": 1}).weights
        (('coverage', 1.0), ('similarity', 1.0))
    """

    compose: str
    weights: tuple[tuple[str, float], ...] = field(converter=_pairs)
    missing: MissingPolicy = field(factory=Renormalize)
    absent: tuple[tuple[str, Override], ...] = field(converter=_pairs, default=())
    options: tuple[tuple[str, object], ...] = field(converter=_pairs, default=())

    def __init__(
        self,
        compose: str,
        weights: Mapping[str, float] | Iterable[tuple[str, float]],
        *,
        missing: MissingPolicy = Renormalize(),  # noqa: B008 - a value without state
        absent: Mapping[str, Override] | Iterable[tuple[str, Override]] = (),
        options: Mapping[str, object] | Iterable[tuple[str, object]] = (),
    ) -> None:
        self.__attrs_init__(compose, weights, missing, absent, options)

    def __attrs_post_init__(self) -> None:
        problems = node_problems(
            self.compose,
            self.weights,
            missing=self.missing,
            absent=self.absent,
            options=self.options,
        )
        if problems:
            raise InvalidArgumentError(problems)
        inputs = tuple(name for name, _ in self.weights)
        weights = tuple((name, real_number(weight)) for name, weight in self.weights)
        given, overrides = dict(self.options), dict(self.absent)
        options = tuple(
            (option.name, option.read(given.get(option.name, option.default), inputs)[0])
            for option in COMPOSERS[self.compose].options
        )
        absent = tuple((name, overrides[name]) for name in inputs if name in overrides)
        for name, value in (("weights", weights), ("options", options), ("absent", absent)):
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, compose: str, *inputs: str, missing: MissingPolicy = Renormalize()) -> Node:  # noqa: B008
        """A node without weights: every input counts 1."""
        return cls(compose, [(name, 1.0) for name in inputs], missing=missing)


def node_inputs(node: Node) -> tuple[str, ...]:
    """Every name the node reads: its inputs, then the nodes or signals its options name."""
    chosen = dict(node.options).get("members")
    named = [rule for _, rule in chosen] if isinstance(chosen, tuple) else []
    gates = (rule for rule in named if rule not in ("positive", "present"))
    return tuple(dict.fromkeys([*(name for name, _ in node.weights), *gates]))


def node_problems(
    compose: str,
    weights: Iterable[tuple[str, object]],
    *,
    missing: object,
    absent: Iterable[tuple[str, object]],
    options: Iterable[tuple[str, object]],
) -> list[str]:
    """All that is wrong with the parts of a node, each with its path below the node."""
    if not isinstance(compose, str):
        return [f"compose: expected the name of a composer, got {shown(compose)}"]
    composer = COMPOSERS.get(compose)
    if composer is None:
        return [f"compose: {UnknownNameError('composer', compose, COMPOSERS)}"]
    problems, amounts = Problems(show=shown), dict[str, float]()
    for name, weight in weights:
        if not is_identifier(name) or name in amounts:
            problems.add("weights", "expected distinct names of ASCII letters, digits and _")
            amounts[name] = 0.0
        else:
            amounts[name] = problems.number(("weights", name), weight, least=0.0)
    if not amounts:
        problems.add("weights", "expected at least one input")
    elif problems.clean and total_weight(tuple(amounts.values())) == math.inf:
        problems.add("weights", "expected a finite sum, got inf")
    if not isinstance(missing, MissingPolicy):
        problems.add("missing", f"expected a missing policy, got {type(missing).__name__}")
    elif isinstance(missing, Shrink) and not composer.shrink:
        problems.add("missing", f"shrink needs an additive composer, {compose} is none")
    for name, override in absent:
        if name not in amounts:
            problems.add(f"absent.{name}", f"expected one of the inputs: {', '.join(amounts)}")
        elif not isinstance(override, Override):
            problems.add(f"absent.{name}", "expected neutral, zero or required")
    given, known = dict(options), [option.name for option in composer.options]
    for name in (name for name in given if name not in known):
        problems.add(name, f"unknown option of {compose}, expected {', '.join(known) or 'none'}")
    for option in composer.options:
        value = given.get(option.name, option.default)
        problems.extend("", option.read(value, tuple(amounts))[1])
    if composer.check is not None and problems.clean:
        problems.extend("", composer.check(amounts, given))
    return problems.lines


_NOTHING: Mapping[str, NDArray[np.float64]] = ReadOnly({})

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
_Kind = TypeVar("_Kind", bound=np.generic)


def _same_array(left: NDArray[np.generic], right: NDArray[np.generic]) -> bool:
    return np.array_equal(left, right, equal_nan=left.dtype.kind == "f")


def _same_arrays(
    left: Mapping[str, NDArray[np.generic]], right: Mapping[str, NDArray[np.generic]]
) -> bool:
    return list(left) == list(right) and all(_same_array(left[name], right[name]) for name in left)


@frozen(unsafe_hash=False)
class Composition:
    """The scores of n memories at one node; all arrays are read-only.

    Args:
        scores: Shape (n,), in [0, 1]; 0.0 where there is none.
        present: Shape (n,); False where nothing is present or the node failed: as a nested node it
            is absent there.
        dropped: Reason → mask (n,), for the reasons that hit at least one memory:
            ``"required: <input>"``, ``"require: coverage"``.
        contributions: Row → (n,), NaN where it adds nothing: the inputs in order, then
            ``"filled:<input>"``, then ``"prior"``. Empty when not asked for.
        additive: The contributions of a memory sum to its score within 1e-12.
        label: What a contribution is: ``share`` (of the score), ``winner`` (its value; the others
            are NaN), ``log share`` (they sum to the logarithm of the score), ``factor`` (their
            product is the score).
        children: Node name → its composition, for the nodes read here.
    """

    scores: FloatArray = field(eq=cmp_using(eq=_same_array))
    present: BoolArray = field(eq=cmp_using(eq=_same_array))
    dropped: Mapping[str, BoolArray] = field(eq=cmp_using(eq=_same_arrays))
    contributions: Mapping[str, FloatArray] = field(eq=cmp_using(eq=_same_arrays))
    additive: bool
    label: str
    children: Mapping[str, Composition]


def compose_table(
    root: Node,
    nodes: Mapping[str, Node],
    table: SignalTable | tuple[Iterable[str], ArrayLike],
    *,
    contributions: bool = True,
    parts: Sequence[slice] | None = None,
) -> Composition:
    """Evaluate a tree of nodes over the signals of one query's pool, or of several.

    Args:
        root: The node that gives the score.
        nodes: The nodes it may read, by name. A name is looked up here first, then in the table; a
            name in neither is absent for every memory.
        table: A `SignalTable`, or column names (s) and a matrix (n, s), NaN for absent.
        contributions: Whether to explain; they are worked out when they are first looked at.
        parts: The rows of each query where the table holds several; without contributions.

    Returns:
        The root's composition. A node read more than once is evaluated once. A memory's row is the
        same whatever else is in the table, unless a composer is not pointwise.

    Raises:
        InvalidArgumentError: A node reads itself, directly or through others.
        InvalidArrayError: The matrix does not fit the names.
        InvalidSignalError: A value of the matrix is infinite or outside [0, 1].
    """
    names, values = names_and_values(table)
    columns = {name: values[:, at] for at, name in enumerate(names)}
    absent = np.full(len(values), np.nan)
    made: dict[str, Composition] = {}
    order = _evaluation_order(root, nodes)

    def evaluate(node: Node) -> Composition:
        return _evaluate(node, columns, absent, made, contributions=contributions, parts=parts)

    with np.errstate(all="ignore"):  # a caller's settings must not turn an underflow into an error
        for name in order:
            made[name] = evaluate(nodes[name])
            columns[name] = np.where(made[name].present, made[name].scores, np.nan)
        return evaluate(root)


def _evaluation_order(root: Node, nodes: Mapping[str, Node]) -> list[str]:
    """The nodes read below the root, each after those it reads itself."""
    done: dict[str, None] = {}
    path: dict[str, None] = {}
    waiting = [(name, False) for name in reversed(node_inputs(root)) if name in nodes]
    while waiting:  # a loop, for a chain of nodes may be longer than the stack is deep
        name, leaving = waiting.pop()
        if leaving:
            del path[name]
            done[name] = None
        elif name in path:
            circle = [*list(path)[list(path).index(name) :], name]
            raise InvalidArgumentError(f"nodes.{name}: reads itself: {' → '.join(circle)}")
        elif name not in done:
            path[name] = None
            waiting.append((name, True))
            waiting += [
                (below, False) for below in reversed(node_inputs(nodes[name])) if below in nodes
            ]
    return list(done)


def _evaluate(
    node: Node,
    columns: Mapping[str, FloatArray],
    absent: FloatArray,
    made: Mapping[str, Composition],
    *,
    contributions: bool,
    parts: Sequence[slice] | None,
) -> Composition:
    plan, policy, composer = node_plan(node), node.missing, COMPOSERS[node.compose]
    inputs = Inputs(
        names=plan.names,
        columns=tuple([columns.get(name, absent) for name in plan.names]),
        weights=plan.weights,
        fills=plan.fills,
        counts=plan.counts,
        all_filled=isinstance(policy, Neutral | Zero),
        strength=policy.strength if isinstance(policy, Shrink) else 0.0,
        prior=policy.prior if isinstance(policy, Shrink) else None,
        options=plan.options,
        gates={name: columns.get(name, absent) for name in plan.reads},
        explain=False,
    )
    dropped = {f"required: {name}": np.isnan(columns.get(name, absent)) for name in plan.required}
    if parts is None or composer.pointwise:
        outcome = composer.evaluate(inputs)
    else:
        outcome = _by_query(composer, inputs, parts)
    if isinstance(policy, Require):
        covered = outcome.present / outcome.whole if outcome.whole > 0.0 else outcome.present
        dropped["require: coverage"] = covered < policy.coverage - COVERAGE_TOLERANCE
    scores, present, _ = _settle(outcome, policy, composer)
    for failed in dropped.values():
        present &= ~failed
    scores = np.where(present, scores, 0.0)  # a copy: a composer may have given another's array
    scores.setflags(write=False)
    present.setflags(write=False)
    return Composition(
        scores=scores,
        present=present,
        dropped=_frozen_rows({why: failed for why, failed in dropped.items() if failed.any()}),
        contributions=LazyMapping(partial(_contributions, inputs, node, present))
        if contributions
        else _NOTHING,
        additive=composer.additive,
        label=composer.label,
        children=ReadOnly({name: made[name] for name in plan.reads if name in made}),
    )


def _by_query(composer: Composer, inputs: Inputs, parts: Sequence[slice]) -> Outcome:
    """What a composer that looks at the pool makes of each query's."""
    made = [
        composer.evaluate(
            evolve(
                inputs,
                columns=tuple([column[part] for column in inputs.columns]),
                gates={name: column[part] for name, column in inputs.gates.items()},
            )
        )
        for part in parts
    ]
    return Outcome(
        np.concatenate([one.scores for one in made]),
        np.concatenate([one.present for one in made]),
        made[0].whole,
        np.concatenate([one.anything for one in made]),
        {},
    )


def _contributions(inputs: Inputs, node: Node, present: BoolArray) -> Mapping[str, FloatArray]:
    """Row → what it adds (n,): the composer is asked once more, now to explain.

    Args:
        inputs: Of the node.
        node: Whose composer is asked.
        present: Shape (n,): where the node has a score; elsewhere nothing is added.
    """
    composer = COMPOSERS[node.compose]
    with np.errstate(all="ignore"):
        outcome = composer.evaluate(evolve(inputs, explain=True))
        _, _, rows = _settle(outcome, node.missing, composer)
    for row in rows.values():
        row[~present] = np.nan
    return _frozen_rows(rows)


@frozen(eq=False)
class _Plan:
    """What a node says about its inputs, as `Inputs` wants it; the same for every pool.

    Args:
        names, weights, fills, counts, options: As in `Inputs`; not to be written to.
        required: The inputs without which the node fails.
        reads: Every name it reads.
    """

    names: tuple[str, ...]
    weights: FloatArray
    fills: FloatArray
    counts: BoolArray
    options: Mapping[str, object]
    required: tuple[str, ...]
    reads: tuple[str, ...]


@lru_cache(maxsize=1024)
def node_plan(node: Node) -> _Plan:
    """What a node says about its inputs."""
    policy, overrides = node.missing, dict(node.absent)
    names = tuple(name for name, _ in node.weights)
    standing = policy.value if isinstance(policy, Neutral) else 0.0
    fills = np.full(len(names), standing if isinstance(policy, Neutral | Zero) else np.nan)
    counts = np.zeros(len(names), dtype=np.bool_)
    for at, name in enumerate(names):
        match overrides.get(name):
            case Required():
                fills[at] = np.nan
            case Zero():
                fills[at], counts[at] = 0.0, True
            case Neutral(value=value):
                fills[at], counts[at] = value, True
    weights = np.array([weight for _, weight in node.weights])
    for array in (weights, fills, counts):
        array.setflags(write=False)
    return _Plan(
        names,
        weights,
        fills,
        counts,
        dict(node.options),
        tuple(name for name in names if isinstance(overrides.get(name), Required)),
        node_inputs(node),
    )


def _settle(
    outcome: Outcome, policy: MissingPolicy, composer: Composer
) -> tuple[FloatArray, BoolArray, dict[str, FloatArray]]:
    """What the policy says where there was nothing to compose."""
    scores, rows, nothing = outcome.scores, outcome.rows, ~outcome.anything
    match policy:
        case Neutral(value=value):
            # Observed throughout and yet nothing, as on no list of a fusion: no absence to fill.
            nothing &= (outcome.present < outcome.whole) | (outcome.whole == 0.0)
        case Shrink(prior=value):
            pass
        case _:
            return scores, outcome.anything, rows
    # An additive composer has already summed the fills or the prior, but where no weight was
    # present at all the policy's value is exact, and where no weight exists it is all there is.
    bare = nothing & (outcome.present == 0.0) if composer.additive else nothing
    scores = np.where(bare, value, scores)
    if rows and bare.any():
        prior = rows.pop("prior", np.full(len(scores), np.nan))
        explained = ~np.isnan(np.array(list(rows.values()))).all(axis=0)
        amount = np.log(value) if composer.label == "log share" else value
        rows["prior"] = np.where(bare & ~explained, amount, prior)
    return scores, outcome.anything | nothing, rows


def _frozen_rows(rows: dict[str, NDArray[_Kind]]) -> Mapping[str, NDArray[_Kind]]:
    for row in rows.values():
        row.setflags(write=False)
    return ReadOnly(rows)
