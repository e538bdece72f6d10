"""Stores: what they promise, and those that ship."""
