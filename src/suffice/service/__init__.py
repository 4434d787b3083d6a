"""The service: the library's verbs over HTTP, for those who speak another language or sit on another machine.

    settings   what an operator decides, in one record
    keys       who may come in: keys in a file, as hashes
    holding    what a worker holds: gates, library, model, and the thread that judges
    checking   checks that arrive together are judged together
    porter     at the door: a number for each request, too many are turned away, none stays for ever, one line in the log
    intake     what may come in: key, media type, size, pace, sound JSON
    shapes     the forms of requests and answers, as OpenAPI shows them
    replies    one envelope for answers and errors
    routes     the doors themselves; `streams` and `journeys` are the two that answer bit by bit
    measures   what Prometheus is told
    shown      the page at `/` and its files
    wire       HTTP/1.1 with clocks: dawdlers are cut off, a leaving server answers what it has taken in
    app        all of it as one ASGI application
    running    workers, sockets, signals

No algorithm lives here. Needs the extra `serve`; `settings` and `keys` do not.
"""

__all__: list[str] = []
