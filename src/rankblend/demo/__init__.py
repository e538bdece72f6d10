"""A small, authored memory of a shop's support desk, for trying things out.

Three tenants (one of them named so that a string prefix would leak it), several customers, sessions
over nine months; facts, episodes, working notes and procedures with their track record; links to
entities; and every kind of absence: tickets imported without vectors, facts without salience,
memories nobody has used yet, memories that are no node of the graph.
"""

from __future__ import annotations

from rankblend.demo._shop import ASKED_AT, QUESTION, SCOPE, TrackRecord, open_demo

__all__ = ["ASKED_AT", "QUESTION", "SCOPE", "TrackRecord", "open_demo"]
