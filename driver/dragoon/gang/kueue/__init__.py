"""Kueue's door: an AdmissionCheck controller that says whether a Workload can really be placed now.

Kueue admits on totals; whether the devices lie so that the pods fit is known here. For each
Workload that has quota and holds a check of ours the pods are built from its pod sets and planned
by the gang planner, without a write. The answer goes into the check: Ready, Retry with the reason,
or Rejected where it can never fit. Facts about Kueue: apis/kueue/v1beta1 and v1beta2 of the module
sigs.k8s.io/kueue 0.17.0.

Parts: apis (what of Kueue is served), reading (raw to records), members (pod sets to asks),
answering (the planner's outcome to a verdict), deciding (what is written), executing, probing (the
planner's door), promising and remembering (what is kept), checking (the loops), running (while
Kueue is there). May import what gang may, and gang.planning, gang.questions and gang.world of its
siblings.

Invariants: what was promised to one Workload is taken for every other Workload and gang until its
pods are placed or the time is over; nothing is written of a Workload but the checks of ours and, to
wake it, its requeueAt; every write names the version it was decided on; where Kueue is not there
nothing runs.
"""
