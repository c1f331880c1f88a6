"""The table of group sources: how other projects say that pods belong together (gang.md 1.9).

One entry each; of several that know a pod the first names its group, and the others have to agree.
"""

from typing import Final

from dragoon.gang.discovering.answers import Ground, Numbers, Source, count
from dragoon.gang.discovering.group_objects import native, of_object
from dragoon.gang.discovering.marks import Mark
from dragoon.gang.records import PodRecord
from dragoon.kube.port import POD_GROUPS

INDEX: Final = ("batch.kubernetes.io/job-completion-index", "apps.kubernetes.io/pod-index")
"""Labels (on old pods annotations) of Jobs and StatefulSets: which of their pods a pod is."""
_JOB_INDEX: Final = Mark((INDEX[0],), (INDEX[0],))
_KUEUE_TOTAL: Final = Mark(annotation=("kueue.x-k8s.io/pod-group-total-count",))


def _kueue(pod: PodRecord, _group: str, _ground: Ground) -> Numbers:
    total = count(_KUEUE_TOTAL.read(pod) or None, str(_KUEUE_TOTAL).replace("`", ""))
    return Numbers(total, total)


SOURCES: Final[tuple[Source, ...]] = (
    Source(
        "PodGroup",
        group=(Mark(field="schedulingGroup.podGroupName"),),
        numbers=of_object(POD_GROUPS, native),
        minimum="PodGroup `spec.schedulingPolicy.gang.minCount`",
        slot=(_JOB_INDEX,),
        object=POD_GROUPS,
    ),
    Source(
        "Kueue",
        group=(Mark(("kueue.x-k8s.io/pod-group-name",), ("kueue.x-k8s.io/pod-group-name",)),),
        numbers=_kueue,
        minimum="as the total",
        total=str(_KUEUE_TOTAL),
        slot=(Mark(("kueue.x-k8s.io/pod-group-pod-index",)),),
    ),
)
"""In the order in which they are asked. What nobody here knows is a group by its owner."""

OBJECTS: Final = {one.name: one.object for one in SOURCES if one.object is not None}
"""What has to be read from the API server, where it is there, by the name of the source."""
