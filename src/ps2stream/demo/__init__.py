"""The demo: a world of people who write, a crowd of subscribers, and a screen to watch them meet.

``workload`` makes the stream. People live where ``places`` says (cities, drawn by population), write
what ``texts`` composes (words by ``vocabulary``, subjects by ``topics``; each part of the world has its
own mixture of them), and subscribe to what ``interests`` makes up from the same subjects and places, so
that subscriptions and publications meet as they would in life. Everything is drawn from one seed.

``view`` shows a running job: ``live`` on a terminal, plain lines elsewhere, both fed with the immutable
``Snapshot`` of ``snapshot``; ``adjustments`` puts what load adjustment did into words, and ``summary``
writes the last ones. What the stream says is never trusted: it passes ``printable`` before it reaches a
screen.

Nothing in here knows the engine, and the engine knows nothing of it.
"""
