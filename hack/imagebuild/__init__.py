"""The image of the Dockerfile without Docker and without a registry: an OCI archive.

For tests on a real cluster, and for who wants to look at what is in it. A base of Debian packages
from the package sources of this machine, the dependencies of the lock file, the project's wheel;
user, environment, labels and command are read from the Dockerfile. The same packages, lock file and
source give the same bytes.

May import realcluster (failures, programs of this machine, where things are kept), nothing of
dragoon.
"""
