"""Pure array functions: float64 in, new arrays out, NaN for absent; no objects, clock or I/O."""
