"""`dragoon devices` of nodes that publish shares and MIG devices."""

import re

from dragoon.cli import main
from tests.unit.cli.machines import Capture, attribute, listed


def test_forms_are_shown_as_they_would_be_published(capsys: Capture) -> None:
    wanted = ("--forms", "whole,shared,mig", "--allow-unenforced-shares", "true")
    devices = listed(capsys, "--simulate", "gh200-144g-single", *wanted)
    assert [attribute(device, "type") for device in devices] == ["gpu", "shared", *["mig"] * 14]
    main.run(["devices", "--simulate", "gh200-144g-single", *wanted])
    lines = capsys.readouterr().out.splitlines()
    assert [re.split(r"  +", line)[1] for line in lines[1:]] == [
        *("gpu", "shared", *["mig 1g.18gb"] * 7, *["mig 2g.36gb"] * 3, *["mig 3g.72gb"] * 2),
        *("mig 4g.72gb", "mig 7g.144gb"),
    ]


def test_a_card_that_needs_a_reset_for_mig_says_so(capsys: Capture) -> None:
    assert main.run(["devices", "--simulate", "mixed-a30-t4", "--forms", "mig"]) == 0
    told = capsys.readouterr()
    assert "dragoon.dev/mig-mode" in told.out
    assert "needs a reset" in told.err


def test_more_mig_profiles_are_shown_by_name(capsys: Capture) -> None:
    wanted = ("--forms", "mig", "--mig-profiles", "1g.18gb+me")
    devices = listed(capsys, "--simulate", "gh200-144g-single", *wanted)
    assert len(devices) == 14 + 7
    assert devices[7]["name"].endswith("-mig-1g18gb-with-me-6")


def test_why_a_form_is_not_published_is_told_on_stderr(capsys: Capture) -> None:
    assert main.run(["devices", "--simulate", "t4", "--forms", "whole,shared"]) == 0
    told = capsys.readouterr()
    assert len(told.out.splitlines()) == 2
    assert "no shares: no enforcement tier works on this node" in told.err


def test_an_unknown_form_is_wrong_usage_and_names_those_there_are(capsys: Capture) -> None:
    assert main.run(["devices", "--simulate", "t4", "--forms", "whole,half"]) == 2
    told = capsys.readouterr()
    assert "found 'whole,half'" in told.err
    assert "allowed is one or more of whole, shared, mig" in told.err


def test_a_profile_that_no_card_of_the_node_offers_is_told_once_with_those_there_are(
    capsys: Capture,
) -> None:
    wanted = ("--forms", "whole,mig", "--mig-profiles", "1g.11gb+me,1g.10gb+me")
    assert main.run(["devices", "--simulate", "dgx-h100", *wanted]) == 0
    notes = [line for line in capsys.readouterr().err.splitlines() if "migProfiles" in line]
    assert len(notes) == 1
    assert notes[0].startswith("note: migProfiles: 1g.11gb+me: no card of this node offers it; ")


def test_a_text_that_can_be_no_profile_is_told_wherever_mig_is_wanted(capsys: Capture) -> None:
    wanted = ("--mig-profiles", "1g.10gib,all", "--forms")
    assert main.run(["devices", "--simulate", "t4", *wanted, "whole,mig"]) == 0
    note = "note: migProfiles: MIG profile: found '1g.10gib', allowed: names such as 1g.5gb"
    assert note in capsys.readouterr().err
    assert main.run(["devices", "--simulate", "t4", *wanted, "whole"]) == 0
    assert "migProfiles" not in capsys.readouterr().err


def test_a_profile_of_other_cards_says_nothing_where_no_card_has_mig(capsys: Capture) -> None:
    wanted = ("--forms", "whole,mig", "--mig-profiles", "1g.20gb")
    assert main.run(["devices", "--simulate", "t4", *wanted]) == 0
    assert "migProfiles" not in capsys.readouterr().err
