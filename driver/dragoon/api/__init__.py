"""Views of the Kubernetes objects that Dragoon reads, the rules they obey, and well-known names.

May import: dragoon.errors, dragoon.quantity, dragoon.semver. Pure: no I/O, no clock. Objects go in
and out as dicts; views are frozen and hold only what Dragoon reads.
"""
