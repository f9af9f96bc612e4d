"""How do results look?

    output, printable          columns and JSON lines; text from strangers, made fit to print
    receipts                   what became of records that were taken in
    progress, compilation      a bar on a terminal, a line now and then elsewhere
    explanation_text, adjustment_text, gain_text   values of the packages below as people read them
    load_figures, load_table   the loads of a job's workers
    board_figures, board_text   how a running job is doing, for ``top``
    plan_figures, plan_table, plan_map, plan_drawing   plans as numbers, in a table, on a map
    charts                     bars and lines from block characters

Open ``output`` first. Nothing is decided or computed in here that a Python user could want. rich and
matplotlib are imported where they are used: without rich the same comes in plain lines.
"""
