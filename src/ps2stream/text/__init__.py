"""From strings to numbers: texts become sets of term hashes, expressions become clauses of them.

The terms of a text are the distinct runs of word characters after compatibility
normalisation and case folding (:func:`ps2stream.text.terms.terms_of` is the definition).
Everything after this package works on the 64-bit hashes of terms and never sees a word.

    terms        the definition, in one line of Python; open it first
    combining_marks  runs of combining marks, which normalising is slow at, parted
    hashing      XXH64 of a span of bytes, and what a collision would mean
    tokenizer    texts -> sorted distinct term hashes, row by row
    characters   what normalising and folding make of each character, as tables
    non_ascii    kernels that cut texts of any script by these tables
    stop_words   stop words as a set that kernels ask
    clauses      expressions -> disjunctive normal form over term hashes
    lexer        expressions -> tokens
    normal_form  tokens -> clauses
    frequencies  how often terms occur: what makes one the rarest of its clause

Texts take one of three roads, row by row: a kernel for plain ASCII, a kernel with tables for most other
characters, and Python's own Unicode functions for rows in which characters interact. Expressions are compiled
by kernels; rows that are wrong, or have a keyword that only Python can normalise, are read by the parser of
``model.expressions``. Whatever the road, the result is the same; the tests prove it.
"""
