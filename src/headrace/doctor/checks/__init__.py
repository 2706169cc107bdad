"""The checks by their subjects. `registry.py` has the list."""
