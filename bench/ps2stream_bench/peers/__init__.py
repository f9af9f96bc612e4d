"""What people use instead of PS2Stream, on the same subscriptions and publications.

    contract.py           what a peer has to do, and when its time counts
    catalogue.py          all peers by name, and why one cannot run here
    boxes_and_clauses.py  subscriptions in parts that every peer takes: none is measured for parsing
    containment.py        which of many clauses texts satisfy, in numpy
    numpy_scan.py         every box against every point
    str_tree.py           a shapely STRtree over the boxes
    spark_sql.py          explode to (cell, term), join, filter: what a PySpark user would write
    spark_sql_batch.py    the same join as a job on files, for as many publications as there are
    postgresql.py, postgres_server.py   PostGIS and GIN, on a server of our own
    ps2stream_peers.py    PS2Stream, by the same contract

Each one is written as somebody would who knows its tool well and wants it to win. Whatever a peer could do
better is a reason to change it here, not to leave it as a straw man.
"""
