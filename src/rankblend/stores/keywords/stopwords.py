"""Words that keyword search ignores: the closed word classes of English, packages for the rest.

The list decides more than any BM25 parameter. nDCG@10 of keywords alone (k1 1.2, b .75, Snowball),
LoCoMo turns within their conversation (1,536 questions) / SciFact (300) / MuSiQue (100):

=====================================  =====  ======  =======  =======
list                                   words  LoCoMo  SciFact  MuSiQue
=====================================  =====  ======  =======  =======
none                                       0    .428     .686     .538
the 33 words of Lucene's classic list     33    .424     .683     .545
package ``stop-words`` 2025.11.4        1333    .438     .687     .546
the closed classes below                 157    .476     .687     .545
=====================================  =====  ======  =======  =======

Questions to a memory are full of "what", "did", "her", "when", which the short list keeps; the long
one also drops nouns and verbs ("back", "bill", "computer", "help") that answers are found by. Other
languages take the maintained package ``stop-words``, whose lists for them are of ordinary length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

__all__ = ["ENGLISH", "package_languages", "stop_words"]

_CLOSED_CLASSES = (
    # articles and demonstratives
    "a an the this that these those",
    # personal, possessive and reflexive pronouns
    "i me my mine myself we us our ours ourselves you your yours yourself yourselves",
    "he him his himself she her hers herself it its itself they them their theirs themselves",
    # question words
    "who whom whose what which when where why how",
    # auxiliaries and modals
    "am is are was were be been being do does did doing have has had having",
    "will would shall should can could may might must ought cannot",
    # conjunctions
    "and or but nor if because as while than so though although unless until whether",
    # prepositions
    "of at by for with about against between into through during before after above below",
    "to from up down in out on off over under",
    # determiners and adverbs of degree, place and time
    "again further then once here there all any both each few more most other some such",
    "no not only own same too very just also",
    # what is left of a contraction when it is cut at its apostrophe
    "ll ve re ain aren didn doesn don hadn hasn haven isn wasn weren couldn mustn shouldn wouldn",  # codespell:ignore wasn,couldn
)

ENGLISH = frozenset(" ".join(_CLOSED_CLASSES).split())


def package_languages() -> tuple[str, ...]:
    """Languages the package ``stop-words`` has a list for."""
    import stop_words as package  # only other languages than English pay for it

    return tuple(package.AVAILABLE_LANGUAGES)


def stop_words(language: str | None, tokenize: Callable[[str], Sequence[str]]) -> frozenset[str]:
    """The words of a language that say nothing about what a text is about.

    Args:
        language: A name such as ``english``; None and languages without a list give none.
        tokenize: How texts are cut, so that the list looks like the tokens it is compared with.
            An entry that it cuts into several tokens is left out: its pieces may mean something
            else alone.
    """
    if language in ("english", "porter"):
        entries: Sequence[str] = sorted(ENGLISH)
    elif language is not None and language in package_languages():
        import stop_words as package

        entries = package.get_stop_words(language)
    else:
        return frozenset()
    cut = (tokenize(entry) for entry in entries)
    return frozenset(tokens[0] for tokens in cut if len(tokens) == 1)
