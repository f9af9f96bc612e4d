"""The model: what events, expressions, regions and matches are. No index, no engine.

    publications, subscriptions, matches   the values that Python users hold
    expressions   keywords with AND, OR and parentheses, kept in disjunctive normal form
    space         regions, points, grids, and the cells that a region touches
    square_region  a region around a point, in kilometres
    limits        the greatest lengths of ids, texts and expressions
    rejections    what a call from Python does with events that are not accepted
    schemas       the Arrow schemas of events, matches and rejected records
    events        the border: records are checked here, once, and bad ones leave with a reason
    records       JSON and GeoJSON to rows of it

docs/semantics.md says the same in words, ``ps2stream.testing.oracle`` in plain Python.
"""
