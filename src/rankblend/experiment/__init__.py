"""Experiments: data sets with judgments, and what is measured on them."""
