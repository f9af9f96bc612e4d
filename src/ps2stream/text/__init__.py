"""From strings to numbers: texts become sets of term hashes, expressions become clauses of them.

The terms of a text are the distinct runs of word characters after compatibility
normalisation and case folding (:func:`ps2stream.text.terms.terms_of` is the definition).
Everything after this package works on the 64-bit hashes of terms and never sees a string.

    terms       the definition, in one line of Python
    marks       runs of combining marks, which normalising is slow at, parted
    spans       an Arrow string array as one flat buffer of bytes plus offsets
    hashing     XXH64 of a span of bytes, and what a collision would mean
    tokenizer   texts -> sorted distinct term hashes, row by row
    clauses     expressions -> disjunctive normal form over term hashes

Both directions have two roads: a kernel for what is plain ASCII, and a road through
Python's own Unicode tables for the rest. They are the same function; the tests prove it.
"""
