"""Every error and warning rankblend raises, in one tree.

::

    RankblendError
    ├─ InvalidSignalError(ValueError)        a signal value that is not a real in [0, 1]
    ├─ InvalidWeightError(ValueError)        a weight that is not a finite number ≥ 0
    ├─ InvalidScopeError(ValueError)         a scope that cannot be read
    ├─ InvalidArgumentError(ValueError)      arguments of a call; all problems at once
    ├─ InvalidArrayError(ValueError)         an array of the wrong shape, dtype or range
    ├─ ProfileError(ValueError)              a ranking profile; all problems with their paths
    ├─ EvidenceError(ValueError)             release evidence that cannot be read, found or written
    ├─ RecordingError(ValueError)            a recording that cannot be read, or lacks what is asked
    ├─ UnknownNameError(LookupError)         a name that is not registered, with the nearest known
    ├─ MemoryContractError(ValueError)       a store or caller broke a promise (scored the invisible, …)
    ├─ ScopeMismatchError(ValueError)        a write to a memory stored at another, visible scope
    ├─ MemoryNotFoundError(LookupError)      no such memory here, or not visible: the same words
    ├─ StoreError(RuntimeError)
    │  ├─ StoreFailedError                   a store raised during a strict recall
    │  ├─ StoreTimeoutError(TimeoutError)    a store did not answer in time during a strict recall
    │  ├─ StoreClosedError                   used after close
    │  ├─ CatalogCorruptError                the file is not a readable catalog
    │  ├─ CatalogVersionError                written by a newer rankblend
    │  ├─ CatalogBusyError                   another writer holds the file
    │  ├─ CatalogFullError                   no space left; nothing was changed
    │  ├─ CatalogReadOnlyError               the file cannot be written
    │  └─ EmbedderMismatchError              opened with another embedder than it was written with
    ├─ EmbeddingError(RuntimeError)          an embedder failed or returned unusable vectors
    ├─ ConfoundedPlanError(ValueError)       arms differ in more than what is studied; all at once
    ├─ LedgerError(RuntimeError)             a ledger that cannot be read or written
    │  └─ HeldOutSpentError                  held-out queries that were looked at already
    ├─ MissingDependencyError(ImportError)   an optional part is not installed; names the extra
    └─ PluginError(RuntimeError)             a plug-in could not be loaded

    RankblendWarning(UserWarning)
    ├─ PluginWarning                         a plug-in was skipped
    └─ CacheWarning                          an index cache was unusable and was rebuilt

Each class also inherits from the built-in exception a caller would expect, and carries its data as
attributes. Messages say what was expected, what was got, where, and what to do; they never contain
the text of a query or of a memory.
"""

from __future__ import annotations

from rankblend.errors.experiments import (
    ConfoundedPlanError,
    EvidenceError,
    HeldOutSpentError,
    LedgerError,
    RecordingError,
)
from rankblend.errors.inputs import (
    InvalidArgumentError,
    InvalidArrayError,
    InvalidScopeError,
    InvalidSignalError,
    InvalidWeightError,
    ProfileError,
    UnknownNameError,
    nearest_name,
)
from rankblend.errors.memories import (
    EmbeddingError,
    MemoryContractError,
    MemoryNotFoundError,
    ScopeMismatchError,
)
from rankblend.errors.parts import CacheWarning, MissingDependencyError, PluginError, PluginWarning
from rankblend.errors.stores import (
    CatalogBusyError,
    CatalogCorruptError,
    CatalogFullError,
    CatalogReadOnlyError,
    CatalogVersionError,
    EmbedderMismatchError,
    StoreClosedError,
    StoreError,
    StoreFailedError,
    StoreTimeoutError,
)
from rankblend.errors.tree import RankblendError, RankblendWarning

__all__ = [
    "CacheWarning",
    "CatalogBusyError",
    "CatalogCorruptError",
    "CatalogFullError",
    "CatalogReadOnlyError",
    "CatalogVersionError",
    "ConfoundedPlanError",
    "EmbedderMismatchError",
    "EmbeddingError",
    "EvidenceError",
    "HeldOutSpentError",
    "InvalidArgumentError",
    "InvalidArrayError",
    "InvalidScopeError",
    "InvalidSignalError",
    "InvalidWeightError",
    "LedgerError",
    "MemoryContractError",
    "MemoryNotFoundError",
    "MissingDependencyError",
    "PluginError",
    "PluginWarning",
    "ProfileError",
    "RankblendError",
    "RankblendWarning",
    "RecordingError",
    "ScopeMismatchError",
    "StoreClosedError",
    "StoreError",
    "StoreFailedError",
    "StoreTimeoutError",
    "UnknownNameError",
    "nearest_name",
]
