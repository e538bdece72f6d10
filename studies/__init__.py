"""Studies: what the experiments of rankblend find on public data, repeatable; no part of the package."""
