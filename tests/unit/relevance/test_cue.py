from __future__ import annotations

import pytest

from rankblend.relevance import cue_overlap


@pytest.mark.parametrize(
    ("cue", "text", "expected"),
    [
        ("refund the order", "How to refund an order", 2 / 3),
        ("refund refund refund", "order", 0.0),
        ("Refund, ORDER!", "order refund order", 1.0),
        ("", "anything", 1.0),
        ("?!", "", 1.0),
        ("order", "", 0.0),
        ("हिन्दी में", "हिन्दी भाषा", 0.5),  # \w would find shreds of these words in one another
        ("東京都", "京都府", 0.5),  # 東京, 京都 against 京都, 都府
        ("café", "cafe\u0301", 1.0),
        ("👍", "👎", 1.0),
    ],
)
def test_cue_overlap_when_compared_then_the_share_of_the_cues_tokens(
    cue: str, text: str, expected: float
) -> None:
    assert cue_overlap(cue, text) == expected


def test_cue_overlap_when_a_tokenizer_is_given_then_it_decides() -> None:
    assert cue_overlap("ab", "bc") == 0.0
    assert cue_overlap("ab", "bc", tokenizer=list) == 0.5
    assert cue_overlap("ab", "bc", tokenizer=lambda text: iter(text)) == 0.5
    assert cue_overlap("ab", "bc", tokenizer=lambda text: ()) == 1.0
