"""From text to words: raw tokens for coverage, stems for BM25."""

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
from rankblend.stores.keywords.stopwords import package_languages, stop_words

__all__ = ["Analysis", "Tokenizer"]

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
