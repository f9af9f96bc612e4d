"""Matching: GI2, a worker's index of subscriptions (Sec. IV-D).

    contract   what a worker needs of an index, and the columns that go in and come out; open it first
    index      GI2, a thin class around the kernels
    layout     the arrays it consists of
    records    a subscription in a cache line or two: state, seqs, region, clauses
    posting    one word that rejects most publications without leaving its list
    lists      the hash table from (cell, term) to lists of postings, and the chunks they lie in
    seq_map    the map from a subscription's seq to its record
    post       post a record under the first term of every clause; divide lists that are crowded
    insert     store, end and drop subscriptions
    probe      match publications, a block at a time, with memory fetched ahead
    compact    copy what is alive, a piece at a time
    copying    all pieces of that, into new arrays
    steady     a GI2 that is compacted while it is used, so that no publication waits for it

A probe asks the list of every owned term in the publication's cell. A posting carries bounds and a
fingerprint of the clause's second term, so of what is left nearly all matches, and one record decides it. A
subscription is found once: only under the first term of its first satisfied clause.
"""
