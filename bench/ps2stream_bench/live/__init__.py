"""Engines that run on topics, and clients that send by a schedule and see what is delivered.

broker       a broker for as long as a case lasts
deployment   an engine in a process of its own; engine_driver: that process
schedule     events as records that are due at times known beforehand
clients      who sends them, and who sees the deliveries
threads      processor time of every thread, by what it belongs to
subject      all of it together: load, flood, offer, and what came of it
journal_subject   the same for the engine that runs on a journal
visibility   when a publication sees a subscription that was acknowledged
"""
