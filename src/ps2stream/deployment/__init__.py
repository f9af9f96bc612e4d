"""A deployment: a journal, a job and its deliveries in one directory, and all that people do with it.

home                  where its parts are
deployment            the same for Python: subscribe, publish, list, follow, explain
records               from JSON to rows: plain objects and GeoJSON
intake, line_reader   rows into the journal, batch by batch, from a file, a pipe or a service
submission            rows into the journal, all of a Python call
live_subscriptions, subscription_history   what is subscribed now, and what was
match_reader          what was delivered, and what comes
publication_lookup, plan_lookup, explanation   why a publication does or does not match

Nothing here matches: a job does (``ps2stream run``, ``engines.spark``), which takes events from the journal
and leaves matches in the sink. So nothing here needs Spark, or a job that runs. Every record passes the rules
of the job before it is in the journal: who gave a bad one is told at once, with the reason, and not by a file
of rejected events later.
"""
