"""What the study's page says in words: how it was made, and what its authors read in it."""

from __future__ import annotations

from studies.outcome import MEASURE
from studies.subjects import DEPTH

__all__ = ["METHOD", "READING"]

METHOD = (
    f"Every query of a data set is asked once, {DEPTH} proposals a store, and everything the "
    "stores say of every candidate is recorded with its absences (`rankblend record`). All arms "
    "are replays of these recordings: the same candidates, another recipe. The profile taken apart "
    "is `default` without salience, which none of these sets gives; an absent signal is left out "
    f"of the mean, so it ranks as `default` does. The measure is {MEASURE}.",
    "Intervals are 95 % percentile bootstrap intervals of the mean paired difference over whole "
    "clusters, 10,000 resamples, seed 0; an entry is called clear, better or worse where its "
    "interval leaves out zero. `*` marks p < .05 of the two-sided sign-flip test over whole "
    "clusters with max-T over the family named at each table. Neither is corrected over all "
    "tables: of a hundred true zeros five or more intervals would leave out zero.",
    "**Few clusters.** LoCoMo has 10 conversations and BFCL 5 scenarios: their intervals are too "
    "narrow (with 10 clusters one of 95 % covers about 91 %, with 5 about 85 %), and with 5 no p "
    "can be below .0625. Each question of MuSiQue and each task of τ² is a cluster of its own, "
    "although tasks share documents. One seed divides hierarchies; three draws take memories from "
    "stores. Means over cells weigh data sets equally and have no interval: they are only a "
    "summary.",
    "**Regimes of absence** transform a recording: a store that does not hold a memory neither "
    "proposes nor observes it. *30 % without a vector*: the vector store lacks a random 30 %. "
    "*Disjoint stores*: each memory is in the keyword or in the vector store, never in both. "
    "*Every store lacks 30 %*: keyword, vector and graph store, independently. What the graph saw "
    "starting from other stores' proposals stays as recorded, and a store that lacks memories "
    f"proposes that many fewer of its {DEPTH}.",
)

READING = (
    "**Absence is not zero, but leaving it out is no law either.** Counting an absent signal as "
    "zero hurts exactly the questions whose relevant memory lacks it, and helps the others, whose "
    "competitors it pushes down. Which of the two weighs more differs between data sets: on "
    "MuSiQue leaving out wins by far under disjoint and thinned stores, on LoCoMo zero wins under "
    "the same conditions, on τ² zero and shrinking win where vectors are missing. Our default is "
    "the better one on the mean of the cells, not everywhere.",
    "**Where lists are cut, absence is evidence.** A store that was asked for its best and did not "
    "name a memory has said something about it. There zero beats renormalizing, our default, in "
    "every cell, and by a lot. This is not a corner: it is what every system does that fuses cut "
    "result lists. Asking every store about every candidate repairs it; against cutting *with* "
    "zero it gains little, clearly so on LoCoMo at every depth and else in two of eighteen cells.",
    "**Shrinking towards a prior is no cure for all.** `shrink(.2, .5)`, which the preset "
    "`default-sparse` uses because an earlier prototype had measured it best, gains where every "
    "store lacks some memories. Where only vectors are missing it gains on MuSiQue and τ² and "
    "costs on LoCoMo and BFCL, where it costs even with everything observed. With a mis-scaled "
    "curve it keeps lone hits down everywhere, which pays on MuSiQue and τ² and not on the other "
    "two; the better remedy is the right scale.",
    "**Recency costs on LoCoMo at every weight tried**, less with a long half-life: most answers "
    "lie months back. An earlier prototype had found a weight of .1 neutral; it is not.",
    "**Links help where they mean something.** Entities shared by passages earn about as much as "
    "the words on MuSiQue. *Next turn* links earn nothing on LoCoMo, and less than nothing on BFCL "
    "beside few other signals; leaving them out of the whole profile changes nothing clear there.",
    "**Blending needs a hierarchy in which nearness tells.** In ours it does not, by construction: "
    "an answer is as likely shared as near. Then a half-life of one level and backfill lose far "
    "more on what is shared than they gain on what is near, and a half-life of four levels costs "
    "little or nothing. Under backfill nothing shared reaches the first ten while ten near memories "
    "are there, whatever they say.",
    "**The weights of `default` can be bettered by fitting** on LoCoMo, τ² and, with MiniLM, on "
    "MuSiQue, on clusters never seen. On MuSiQue and τ² even uniform weights reach more than ours; "
    "on LoCoMo and BFCL far less. What is best differs so much between the sets (nearly only words "
    "on LoCoMo, mostly the vector on MuSiQue) that no fixed weights serve all of them.",
    "**Success rates predict**, and part of that is the kind of task: within a kind the AUC is "
    "lower, and within kind and earlier hand-overs its interval reaches chance. With 50 tasks of "
    "one agent no finer statement is possible.",
)
