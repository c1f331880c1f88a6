"""What `dragoon claim new` prints is taken by the API server as it stands."""

import pytest

from dragoon.diagnose.wishing import Wish, template
from dragoon.kube.port import TEMPLATES
from tests.contract.kube.servers import Server

WISHES = [
    Wish(),
    Wish(gpus=2, same_nvlink=True, memory="40Gi"),
    Wish(share="10Gi", cores=25),
    Wish(profile="1g.24gb+me.all"),
    Wish(product="H100", class_name="sim.dragoon.dev"),
]


@pytest.mark.parametrize("wish", WISHES, ids=lambda wish: wish.title)
async def test_a_template_is_stored_as_it_was_printed(server: Server, wish: Wish) -> None:
    made = template(wish)
    made["metadata"]["namespace"] = server.namespace
    stored = await server.create(TEMPLATES, made)
    (sent,) = made["spec"]["spec"]["devices"]["requests"]
    (kept,) = stored["spec"]["spec"]["devices"]["requests"]
    assert kept["name"] == sent["name"]
    # The server adds its defaults, and drops nothing.
    assert sent["exactly"].items() <= kept["exactly"].items()
    constraints = made["spec"]["spec"]["devices"].get("constraints")
    assert stored["spec"]["spec"]["devices"].get("constraints") == constraints
