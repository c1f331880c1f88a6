"""What a user is told whose claim fits no form that is published."""

import json

from dragoon.diagnose import answers
from dragoon.diagnose.placing import Verdict
from dragoon.diagnose.simulating import simulate
from tests.scenario.publish.test_forms_are_allocated import Node
from tests.unit.diagnose.cases import case, class_, needs_case_files
from tests.unit.diagnose.scenes import node, snapshot
from tests.unit.publish.nodes import NODE

IS_MIG = "device.attributes['gpu.dragoon.dev'].type == 'mig'"


@needs_case_files
def test_c17_m04_profiles_of_another_card_are_answered_by_those_that_this_one_has() -> None:
    """The manifest names profiles of a 40 GB card; an 80 GB card calls its own otherwise."""
    known = snapshot(*Node("dgx-h100").slices, node(NODE), class_("mig.dragoon.dev", IS_MIG))
    found = simulate(known, case("m04"))
    assert found.groups[0].verdict is Verdict.NEVER
    told = json.dumps(answers.simulated(found))
    for profile in ("1g.10gb", "2g.20gb", "3g.40gb"):
        assert f'profile is \\"{profile}\\"' in told
