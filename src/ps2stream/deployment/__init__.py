"""A deployment: events, a job's state and its deliveries, found from one directory; what people do with it.

Everything here serves a Python program as much as the command line; nothing prints.

    home                  where the parts of a deployment are: in its directory, or in a store that it names
    store_note            the note in a home that names its store
    deployment_events     what a deployment does with its events: the contract
    journal_events        the same where they are in a journal
    kafka_events          the same where they are in topics
    deployment            all of the below for Python: subscribe, publish, list, follow, explain
    intake                JSON and GeoJSON records to events, with a receipt for each
    submission            the records of one Python call, all or none
    line_reader           lines from a pipe in batches: large when they come fast, soon when they do not
    settled               read while the job writes, until nothing came in between
    job_life, idleness    whether the job runs, and whether it has anything to do
    live_subscriptions    who is subscribed: the job's log, and what came in since
    subscription_history  from which seq to which each version of a subscription counted
    publication_lookup    publications by seq or id, as long as the journal has them
    plan_lookup           the plan that routes a version of a subscription
    match_reader          deliveries as they come, each file once
    kafka_match_reader    the same where they are in topics
    explanation           why a publication does or does not match a subscription

What a job has decided is in its subscription log, what came since is in the journal or in topics: readers
look at both, and look again if a snapshot, a pruning or another driver came in between. Every record passes
the rules of the job before it is kept, so who gave a bad one is told at once. Nothing here matches, or needs
Spark: a job does.
"""
