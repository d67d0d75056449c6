"""What we compare ourselves with: the plainest honest programs that do the same work.

They use the same libraries, servers, sockets and rows as we do, and nothing else: no log, no
decisions, no fences. Each is as quick as its author could make it.
"""
