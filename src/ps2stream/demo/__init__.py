"""What would it look like with people in it? A made-up world, a crowd of subscribers, and a screen.

Open ``show`` first: it starts a journal, a publisher and the stream on Spark, and lets a view watch.

``workload`` makes the stream. People live where ``geography`` says (cities, drawn by population), write
what ``texts`` composes (words by ``vocabulary``, subjects by ``topics``; each part of the world has its
own mixture of them), and subscribe to what ``interests`` makes up from the same subjects and places, so
that subscriptions and publications meet as they would in life. All draws come from one seed (``sampling``
makes them fast), so the same seed gives the same events; how many there are by when is up to the clock.

``view`` shows a running job: ``live_view`` on a terminal, plain lines elsewhere, both fed with the immutable
``Snapshot`` of ``snapshot``; ``adjustments`` puts what load adjustment did into words, and ``summary``
writes the last ones. What the stream says is never trusted: it passes ``cli.render.printable`` before it
reaches a screen.

Only ``show`` knows the engine, and the engine knows nothing of the demo.
"""
