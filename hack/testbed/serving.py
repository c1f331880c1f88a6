"""APIs that come with a CRD, and namespaces: an API server takes a moment to be ready for them."""

from realcluster.cluster import Cluster
from realcluster.failure import ClusterError
from testbed.waiting import until


def until_served(cluster: Cluster, crd: str) -> None:
    """Returns when kubectl finds the API of a CRD; that it is Established comes before that."""

    def served() -> bool:
        try:
            cluster.kubectl("get", crd, "--all-namespaces", "--output=name")
        except ClusterError:
            return False
        return True

    until(f"{crd} is served", served)


def create_namespace(cluster: Cluster, name: str) -> None:
    """Makes a namespace that takes pods: its ServiceAccount is made by the controller manager."""
    cluster.kubectl("create", "namespace", name)
    until_it_takes_pods(cluster, name)


def until_it_takes_pods(cluster: Cluster, namespace: str) -> None:
    """Returns when a namespace has its ServiceAccount."""
    find = ("get", "serviceaccount", "default", "-n", namespace, "--ignore-not-found", "-o", "name")
    until(f"namespace {namespace} has a ServiceAccount", lambda: cluster.kubectl(*find))
