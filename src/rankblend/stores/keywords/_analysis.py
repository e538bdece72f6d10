"""From text to words: raw tokens for coverage, stems for BM25, and which words are ignored.

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

import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cached_property

import Stemmer

from rankblend.errors import UnknownNameError
from rankblend.kernels.text import tokens as default_tokens

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


Tokenizer = Callable[[str], Sequence[str]]

_LONE = re.compile("[\ud800-\udfff]")

# No word is longer. Beyond it a stem means nothing, and some Snowball stemmers take quadratic time:
# German 37 s for a million "ü".
_LONGEST_STEMMED = 256

# Looked at only to notice that a tokenizer or stemmer cuts differently than it did.
_PROBE = (
    "The quick runners' happily argued relational databases, isn't it? ＡＢＣ ﬁne Straße İstanbul "
    "naïve cafe\u0301 snake_case x1 3.14 中文分词 漢 ひらがな カタカナ 한국어 ภาษาไทย ລາວ ខ្មែរ မြန်မာ हिन्दी தமிழ் "
    "العربية עברית Русский Ελληνικά 👩‍👧 running ran easily nationalities"
)


class Analysis:
    """How one index reads text.

    Args:
        language: Names a Snowball stemmer and a list of stop words; None: neither stems nor stops,
            for mixed languages.
        tokenizer: text → raw tokens; None: `rankblend.kernels.text.tokens`.

    Raises:
        UnknownNameError: Neither a stemmer nor a list of stop words for that language.

    Example:
        >>> Analysis("english").stems(["what", "happened", "7", "中"])
        [None, 'happen', None, '中']
    """

    def __init__(
        self, language: str | None = "english", tokenizer: Tokenizer | None = None
    ) -> None:
        algorithms = Stemmer.algorithms()
        if language is not None and language not in algorithms:
            known = {*algorithms, *package_languages()}
            if language not in known:
                raise UnknownNameError("language", language, known)
        self.language = language
        self.tokens: Tokenizer = default_tokens if tokenizer is None else tokenizer
        self._stop_words = stop_words(language, self.tokens)
        # No cache inside: the index keeps what it has stemmed.
        self._stemmer = Stemmer.Stemmer(language, 0) if language in algorithms else None

    def stems(self, words: Sequence[str]) -> list[str | None]:
        """What BM25 counts each raw token as; None where it counts it as nothing.

        Left out are stop words, and single characters unless the script is written without spaces
        (there a token is a bigram, and one character is all that was there).
        """
        kept = [at for at, word in enumerate(words) if self._counts(word)]
        stems: list[str | None] = [None] * len(words)
        for at, stem in zip(kept, self._stemmed([words[at] for at in kept]), strict=True):
            stems[at] = stem
        return stems

    @cached_property
    def identity(self) -> str:
        """Tells whether two indexes read text alike: equal exactly when all of it is equal.

        Names what is known (language, versions, a digest of the stop words) and includes a digest
        of what comes out for a fixed text, so that a tokenizer that changed under the same name is
        noticed too.
        """
        words = list(self.tokens(_PROBE))
        tokenizer = self.tokens
        named = getattr(tokenizer, "__qualname__", type(tokenizer).__qualname__)
        return json.dumps(
            {
                "language": self.language,
                "probe": _digest([*words, *(stem or "" for stem in self.stems(words))]),
                "stemmer": str(Stemmer.version()),
                "stop_words": _digest(sorted(self._stop_words)),
                "tokenizer": f"{getattr(tokenizer, '__module__', '')}.{named}",
                "unicode": unicodedata.unidata_version,
            },
            sort_keys=True,
        )

    def _counts(self, word: str) -> bool:
        if word in self._stop_words:
            return False
        # Three of a letter are one token; three of a script written without spaces are two pairs.
        return len(word) > 1 or len(self.tokens(word * 3)) > 1

    def _stemmed(self, words: list[str]) -> list[str]:
        if self._stemmer is None:
            return words
        stems = list(words)
        fit = [at for at, word in enumerate(words) if len(word) <= _LONGEST_STEMMED]
        try:
            stemmed = self._stemmer.stemWords([words[at] for at in fit])
        except UnicodeEncodeError:  # a foreign tokenizer let lone surrogates through
            return [word if _LONE.search(word) else self._stemmed([word])[0] for word in words]
        for at, stem in zip(fit, stemmed, strict=True):
            stems[at] = stem
        return stems


def _digest(words: Sequence[str]) -> str:
    text = json.dumps(list(words))  # escapes lone surrogates
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:16]
