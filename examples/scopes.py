"""Who sees what, and how distance can count: own session, its user, the tenant above both.

python examples/scopes.py
"""

from __future__ import annotations

from attrs import evolve

import rankblend as rb

TENANT = rb.Scope.parse("tenant:acme")
USER = TENANT / "user:7"
SESSION = USER / "session:9"


def main() -> None:
    with rb.Memory.open(":memory:", allow_subtree=True) as memory:
        for scope, text in (
            (TENANT, "Refunds over 500 need approval"),
            (USER, "Ana prefers refunds by bank transfer"),
            (SESSION, "Ana asked for a refund of order 8817"),
            (rb.Scope.parse("tenant:acme-corp"), "Refunds are never approved"),
            (TENANT / "user:8", "Bruno wants his refund as store credit"),
        ):
            memory.remember(text, scope=scope)

        for scope in (TENANT, USER, SESSION):
            print(scope)
            for match in memory.recall("refund", scope=scope):
                print(f"  {match.distance} up  {match.memory.text}")

        profile = rb.load_profile("default")
        for mode in rb.ScopeBlendMode:
            blended = evolve(profile, scope=rb.ScopeBlend(mode))
            found = memory.recall("refund", scope=SESSION, profile=blended)
            print(f"{mode:<9}", *(f"{m.rank_score:.2f}@{m.distance}" for m in found))

        # A host that owns everything below a scope may look down, too; others cannot.
        below = memory.recall("refund", scope=USER, reach="subtree")
        print("below", USER, len(below))

        # A write touches only what is stored at exactly the scope it names.
        (policy,) = (m.memory.id for m in memory.recall("approval", scope=TENANT, top=1))
        try:
            memory.forget(policy, scope=SESSION)
        except rb.errors.ScopeMismatchError as error:
            print(type(error).__name__, "- not at", SESSION)


if __name__ == "__main__":
    main()
