"""The classic mistakes, each a small function that can stand in a right one's place.

Every variant runs, and most look right at a glance. `catalogue.py` names, for each,
the piece that it replaces and the property that catches it; `nox -s mutants` puts each
in that place and fails if one survives.
"""
