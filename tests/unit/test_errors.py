"""Every class of the error tree, found by its subclasses, with instances made from its signature."""

import copy
import importlib
import inspect
import pickle
import pkgutil
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

import rankblend
from rankblend.errors import (
    EmbeddingError,
    InvalidSignalError,
    MissingDependencyError,
    RankblendError,
    RankblendWarning,
)

AGAIN: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    **{
        f"pickle {protocol}": lambda it, protocol=protocol: pickle.loads(pickle.dumps(it, protocol))
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
    },
}
VALUES: dict[str, Any] = {
    "float": 1.5, "int": 3, "object": ("a", 1), "str": "some text", "str | None": "more",
    "Iterable[str]": ["one: bad", "two: bad"], "Iterable[str] | str": ["one: bad", "two: bad"],
    "Sequence[str]": ["m1", "m2"],
}  # fmt: skip


def below(kind: type) -> Iterator[type]:
    for inner in kind.__subclasses__():
        yield inner
        yield from below(inner)


def tree() -> list[type]:
    for module in pkgutil.walk_packages(rankblend.__path__, "rankblend."):
        # What needs a package that may be missing defines no errors.
        if not module.name.startswith(("rankblend.adapters", "rankblend.cli")):
            importlib.import_module(module.name)
    found = {*below(RankblendError), *below(RankblendWarning), RankblendError, RankblendWarning}
    return sorted(
        (kind for kind in found if kind.__module__.startswith("rankblend.")),
        key=lambda kind: kind.__name__,
    )


def example(kind: type) -> Any:
    """An instance with something for every argument of the constructor, defaults included."""
    if kind.__init__ in (Exception.__init__, UserWarning.__init__) or isinstance(
        kind.__init__, type(Exception.__init__)
    ):
        return kind("what was wrong", 7)
    positional, named = [], {}
    for parameter in list(inspect.signature(kind.__init__).parameters.values())[1:]:
        value = VALUES[str(parameter.annotation)]
        if parameter.kind is parameter.KEYWORD_ONLY:
            named[parameter.name] = value
        else:
            positional.append(value)
    return kind(*positional, **named)


@pytest.mark.parametrize("again", AGAIN.values(), ids=AGAIN)
@pytest.mark.parametrize("kind", tree(), ids=lambda kind: kind.__name__)
def test_error_when_pickled_or_copied_then_class_text_and_attributes_are_the_same(
    kind: type, again: Callable[[Any], Any]
) -> None:
    error = example(kind)
    error.add_note("told on the way")
    made = again(error)
    assert type(made) is kind
    assert made is not error
    assert (str(made), repr(made), made.args) == (str(error), repr(error), error.args)
    assert vars(made) == vars(error)
    for name in dir(error):  # built-in classes keep attributes besides; some are not set
        value = getattr(error, name, None)
        if not name.startswith("__") and not callable(value):
            assert getattr(made, name, None) == value, name


def test_tree_when_walked_then_every_error_of_procedures_and_chat_is_in_it() -> None:
    names = {kind.__name__ for kind in tree()}
    assert {"NoToolCallsError", "CaptureBlockedError", "StoreTimeoutError", "CacheWarning"} <= names


def test_error_when_an_attribute_cannot_be_pickled_then_it_is_shown_instead() -> None:
    error = InvalidSignalError("cue", lambda: 1)
    made = pickle.loads(pickle.dumps(error))
    assert (str(made), made.signal) == (str(error), "cue")
    assert made.value.startswith("<function")


def test_error_when_a_users_subclass_asks_for_more_then_is_restored_too() -> None:
    error = OwnError("m", code=7)
    made = copy.deepcopy(pickle.loads(pickle.dumps(error)))
    assert (type(made), str(made), made.code, made.reason) == (OwnError, str(error), 7, "raised")


class OwnError(EmbeddingError):
    def __init__(self, name: str, *, code: int) -> None:
        super().__init__(name, "raised", f"code {code}")
        self.code = code


def fail(package: str) -> None:
    raise MissingDependencyError(package, "search", "a search")


def test_worker_when_it_raises_an_error_with_several_arguments_then_the_pool_lives() -> None:
    with ProcessPoolExecutor(1) as pool:
        with pytest.raises(MissingDependencyError) as caught:
            pool.submit(fail, "optuna").result(60)
        assert (caught.value.package, caught.value.extra) == ("optuna", "search")
        assert pool.submit(len, "still there").result(60) == 11
