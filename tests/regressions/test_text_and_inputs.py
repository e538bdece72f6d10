"""What goes wrong elsewhere with scripts and with queries that say nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import rankblend as rb

Open = Callable[..., rb.Memory]
SCOPE = "tenant:acme"

# Per language: what is remembered beside three others, and a question with words of it.
SPOKEN = {
    "japanese": ("返金は銀行振込でお願いします", "銀行振込の返金"),
    "chinese": ("退款需要经理批准", "退款批准"),
    "korean": ("환불은 은행 이체로 부탁합니다", "은행 이체"),
    "thai": ("การคืนเงินต้องได้รับการอนุมัติ", "คืนเงิน"),
    "hindi": ("धनवापसी के लिए स्वीकृति चाहिए", "धनवापसी स्वीकृति"),
    "hebrew": ("החזר כספי דורש אישור", "אישור החזר"),
    "greek": ("Η επιστροφή χρημάτων θέλει έγκριση", "ΕΠΙΣΤΡΟΦΉ ΧΡΗΜΆΤΩΝ"),
    "german": ("Große Straße, Köln", "STRASSE KÖLN"),
}


@pytest.mark.parametrize("language", SPOKEN)
@pytest.mark.parametrize("profile", ["default", "symfonic", "rrf"])
def test_recall_when_the_script_has_no_spaces_or_other_letters_then_words_are_found(
    opened: Open, language: str, profile: str
) -> None:
    """Not as in mem0ai/mem0#4884, bigduu/Bamboo-agent#240, openclaw/openclaw#110500 and
    rahilp/second-brain-cloudflare#326: such a text is no token, or one."""
    memory = opened()
    for name, (text, _) in SPOKEN.items():
        memory.remember(text, scope=SCOPE, id=name)
    assert memory.recall(SPOKEN[language][1], scope=SCOPE, profile=profile).ids[0] == language


@pytest.mark.parametrize("query", ["", " ", "\n\t", "\u3000", "?!", "\u200b"])
@pytest.mark.parametrize("profile", rb.profile_names())
def test_recall_when_the_query_is_blank_then_it_neither_crashes_nor_returns_everything(
    opened: Open, query: str, profile: str
) -> None:
    """Not as in mem0ai/mem0#5220."""
    memory = opened({})
    memory.remember_many({"text": f"note {n}", "scope": SCOPE} for n in range(30))
    found = memory.recall(query, scope=SCOPE, profile=profile)
    assert len(found) <= (rb.load_profile(profile).select.top or 10) < 30
