"""The values of the numeric core: scopes, signals, weights, composition, blending, order.

evidence → (curves) signals → (composers, weights, missing) score → (blend) rank score → (order) rank.
Everything here is immutable and reads neither clock nor file; the arithmetic is in `kernels`.
Values, names and arrays are checked and refused with errors of `rankblend.errors`; an argument that
is no container where one is expected, such as a number in place of a sequence, is Python's TypeError.
"""

from rankblend.relevance._blend import ScopeBlend, ScopeBlendMode
from rankblend.relevance._combiners import COMPOSERS, Composer, Option, register_composer
from rankblend.relevance._composers import (
    Composition,
    Node,
    compose_table,
    node_inputs,
    node_plan,
    node_problems,
)
from rankblend.relevance._cue import cue_overlap
from rankblend.relevance._curves import (
    CURVES,
    Curve,
    CurveParameter,
    CurveStep,
    apply_curve,
    apply_curve_details,
    apply_steps,
    as_signals,
    check_curve,
    is_batch_relative,
    parse_curve,
    plain_curve,
    register_curve,
)
from rankblend.relevance._evidence import (
    CERTAINTY_LEVELS,
    EVIDENCE,
    MATURITY_LEVELS,
    REVIEW_LEVELS,
    UNITS,
    Evidence,
    evidence_names,
    lookup_evidence,
    register_evidence,
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
    parse_missing,
    parse_override,
    plain_missing,
)
from rankblend.relevance._order import rank_order
from rankblend.relevance._scope import MAX_LEVELS, Scope, ScopeLevel
from rankblend.relevance._signals import (
    STANDARD_SIGNALS,
    RelevanceSignals,
    SignalTable,
    checked_signal,
)
from rankblend.relevance._weights import RelevanceWeights
from rankblend.values import is_identifier

__all__ = [
    "CERTAINTY_LEVELS",
    "COMPOSERS",
    "CURVES",
    "EVIDENCE",
    "MATURITY_LEVELS",
    "MAX_LEVELS",
    "REVIEW_LEVELS",
    "STANDARD_SIGNALS",
    "Composer",
    "Composition",
    "Curve",
    "CurveParameter",
    "CurveStep",
    "Evidence",
    "MissingPolicy",
    "Neutral",
    "Node",
    "Option",
    "Override",
    "RelevanceSignals",
    "RelevanceWeights",
    "Renormalize",
    "Require",
    "Required",
    "Scope",
    "ScopeBlend",
    "ScopeBlendMode",
    "ScopeLevel",
    "Shrink",
    "SignalTable",
    "Zero",
    "apply_curve",
    "apply_curve_details",
    "check_curve",
    "compose_table",
    "cue_overlap",
    "evidence_names",
    "is_batch_relative",
    "is_identifier",
    "lookup_evidence",
    "node_inputs",
    "node_problems",
    "parse_curve",
    "parse_missing",
    "parse_override",
    "plain_curve",
    "plain_missing",
    "rank_order",
    "register_composer",
    "register_curve",
    "register_evidence",
]
