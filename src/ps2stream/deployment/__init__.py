"""A deployment: one directory with a journal, a job's state and its deliveries, and what people do with it.

Everything here serves a Python program as much as the command line; nothing prints.

    home                  where the parts of a deployment are
    intake, records       JSON and GeoJSON records into the journal, with a receipt for each
    line_reader           lines from a pipe in batches: large when they come fast, soon when they do not
    single_updates        one subscription begins or ends
    live_subscriptions    who is subscribed: the job's log, and the journal since
    subscription_history  from which seq to which each version of a subscription counted
    publication_lookup    publications by seq or id, as long as the journal has them
    match_reader          deliveries as they come, each file once
    explanation           why a publication does or does not match a subscription

What a job has decided is in its subscription log, what came since is in the journal: readers look at both,
and look again if a snapshot or a pruning came in between.
"""
