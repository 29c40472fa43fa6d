"""Collaborative tables: three providers and an owner; nobody sees another's rows."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pandas
import pytest

from quiltwork.service import jobs
from quiltwork.service.collaborative_tables import published_from
from quiltwork.service.publication_process import finish_waiting
from quiltwork.tables import KAnonymity, LDiversity, Table, anonymize, verify_m_privacy

RULES = {"quasi_identifiers": ["age", "zip"], "sensitive": "ill", "k": 4, "l": 2, "m": 1}
CANARY = "canary-7f3a"
CSV = {"Content-Type": "text/csv"}


def rows(seed, number=40):
    draw = np.random.default_rng(seed)
    ages, zips = draw.integers(20, 80, number), draw.integers(1000, 1100, number)
    ills = draw.choice(["flu", "cold"], number)
    lines = [f"{a},{z},{ill},{CANARY}\n" for a, z, ill in zip(ages, zips, ills, strict=True)]
    return "age,zip,ill,remark\n" + "".join(lines)


@pytest.fixture
def clinic(team):
    """A table of olga's with three providers, an analyst, and a provider who has no part in it."""
    team.told("olga", "POST", "/v1/tables", json={"name": "clinic", "rules": RULES})
    for n, name in enumerate(("pia", "petra", "paul", "stranger")):
        if n:
            team.join(name, "provider")
        if name != "stranger":
            team.told("olga", "PUT", f"/v1/tables/clinic/access/{name}")
            give(team, name, rows(n))
    team.told("olga", "PUT", "/v1/tables/clinic/access/anna")
    return team


def give(team, provider, text):
    path = "/v1/tables/clinic/rows"
    return team.ask(provider, "PUT", path, content=text.encode(), headers=CSV)


def ruled(team, rules):
    """Rules are set while there are no rows."""
    for provider in ("pia", "petra", "paul"):
        team.told(provider, "DELETE", "/v1/tables/clinic/rows")
    team.told("olga", "PUT", "/v1/tables/clinic/rules", json=rules)
    for n, provider in enumerate(("pia", "petra", "paul")):
        give(team, provider, rows(n))


def queued(team):
    return team.told("olga", "POST", "/v1/tables/clinic/publication")


def published(team):
    job = queued(team)
    finish_waiting(team.service)
    return team.told("olga", "GET", f"/v1/jobs/{job['id']}")


def test_a_table_is_published_and_withstands_every_provider(clinic):
    assert published(clinic)["state"] == "done"
    text = clinic.told("anna", "GET", "/v1/tables/clinic/publication")["content"]
    shown = list(csv.DictReader(io.StringIO(text)))
    assert len(shown) == 120
    assert set(shown[0]) == {"age", "zip", "ill"}
    groups = {}
    for row in shown:
        groups.setdefault((row["age"], row["zip"]), []).append(row["ill"])
    assert all(len(ills) >= 4 and len(set(ills)) == 2 for ills in groups.values())
    # the same rows pooled in memory, with providers, which the curator never shows
    pooled = Table.concat(
        {name: own(n) for n, name in enumerate(("pia", "petra", "paul"))}, ["age", "zip"], "ill"
    )
    constraint = KAnonymity(4) & LDiversity(2)
    made = anonymize(pooled, constraint, m=1)
    assert made.frame.astype(str).to_dict("records") == shown
    assert verify_m_privacy(made.table, constraint, m=1).private
    assert not verify_m_privacy(made.table, constraint, m=2).private


def test_a_cell_of_a_provider_is_no_formula_in_the_published_file(clinic):
    ruled(clinic, {**RULES, "l": 1})
    text = rows(0).replace(",flu,", ",=HYPERLINK(1),").replace(",cold,", ",+1,")
    give(clinic, "pia", text)
    published(clinic)
    text = clinic.told("anna", "GET", "/v1/tables/clinic/publication")["content"]
    ills = {row["ill"] for row in parsed(text)}
    assert {"'=HYPERLINK(1)", "'+1"} < ills
    assert not any(ill[:1] in "=+-@" for ill in ills)
    check = clinic.told("pia", "GET", "/v1/tables/clinic/check")
    assert (check["found"]["own_rows"], check["found"]["unmatched"]) == (40, 0)


def own(number):
    frame = pandas.DataFrame(parsed(rows(number)))
    return frame.astype({"age": int, "zip": int})


def parsed(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_the_report_names_who_could_break_what_and_no_value_of_a_record(clinic):
    published(clinic)
    report = clinic.told("olga", "GET", "/v1/tables/clinic/report")
    assert report["withstands"] >= 1
    assert report["rows"] == 120
    assert sum(int(size) * number for size, number in report["sizes"].items()) == 120
    weakest = report["weakest"]
    assert len(weakest["coalition"]) == report["withstands"] + 1
    assert set(weakest) == {"coalition", "group", "breaks", "left"}
    assert clinic.told("udo", "GET", "/v1/tables/clinic/report") == report
    for member in ("pia", "anna"):
        assert clinic.ask(member, "GET", "/v1/tables/clinic/report").status_code == 403


def test_every_provider_checks_its_own_rows_and_sees_only_its_own_part(clinic):
    published(clinic)
    for name in ("pia", "petra", "paul"):
        check = clinic.told(name, "GET", "/v1/tables/clinic/check")
        assert (check["found"]["own_rows"], check["found"]["unmatched"]) == (40, 0)
        assert check["found"]["verdict"] == "holds"  # though its boxes overlap
        own = parsed(clinic.told(name, "GET", "/v1/tables/clinic/row-groups")["content"])
        assert len(own) == 40
        assert check["found"]["broken"] == []
        seen = clinic.told(name, "GET", "/v1/tables/clinic")
        assert seen["parts"] == [{"provider": name, "rows": 40, "kept": True}]
        assert seen["job"] is None
    assert clinic.told("anna", "GET", "/v1/tables/clinic")["parts"] is None
    assert len(clinic.told("olga", "GET", "/v1/tables/clinic")["parts"]) == 3
    for method, path in (
        ("GET", "/v1/tables/clinic"),
        ("GET", "/v1/tables/clinic/check"),
        ("GET", "/v1/tables/clinic/publication"),
        ("DELETE", "/v1/tables/clinic/rows"),
    ):
        assert clinic.ask("stranger", method, path).status_code == 404
    assert give(clinic, "stranger", rows(9)).status_code == 404
    assert clinic.ask("olga", "GET", "/v1/tables/clinic/check").status_code == 403


def test_a_table_is_queued_once_and_takes_no_rows_meanwhile(clinic):
    job = queued(clinic)
    assert (job["state"], job["place"]) == ("queued", 0)
    assert queued(clinic)["id"] == job["id"]
    assert give(clinic, "pia", rows(5)).status_code == 422
    assert clinic.told("olga", "GET", "/v1/tables/clinic")["state"] == "publishing"
    done = published(clinic)
    assert (done["id"], done["state"]) == (job["id"], "done")
    assert done["done"] == done["total"] == 120
    assert clinic.ask("anna", "GET", f"/v1/jobs/{job['id']}").status_code == 404


def test_a_publication_that_is_cancelled_or_fails_can_be_asked_for_again(clinic):
    first = queued(clinic)
    clinic.told("olga", "POST", f"/v1/jobs/{first['id']}/cancellation")
    ruled(clinic, {**RULES, "k": 5000})
    failed = published(clinic)
    assert failed["id"] != first["id"]
    assert failed["state"] == "failed"
    assert "Use a smaller m, k or l" in failed["error"]
    ruled(clinic, RULES)
    assert published(clinic)["state"] == "done"


def test_an_attempt_that_was_given_up_or_cancelled_publishes_nothing(clinic, tmp_path):
    name, storage = queued(clinic)["id"], clinic.service.storage
    lost = jobs.start_next(storage)
    store = published_from(clinic.service, "clinic", tmp_path, lambda done, total: None)
    jobs.requeue_interrupted(storage)
    again = jobs.start_next(storage)
    assert (again.id, again.attempts) == (name, 2)
    with pytest.raises(jobs.LeaseLostError):
        jobs.finish(storage, lost, store)
    clinic.told("olga", "POST", f"/v1/jobs/{name}/cancellation")
    with pytest.raises(jobs.LeaseLostError):
        jobs.finish(storage, again, store)
    assert clinic.ask("anna", "GET", "/v1/tables/clinic/publication").status_code == 422
    assert clinic.told("olga", "GET", f"/v1/jobs/{name}")["state"] == "cancelled"


def test_a_published_table_takes_no_more_rows_and_its_rows_can_be_deleted(clinic):
    published(clinic)
    assert "intersected" in give(clinic, "pia", rows(5)).json()["detail"]
    before = clinic.service.vault.names()
    clinic.told("pia", "DELETE", "/v1/tables/clinic/rows")
    assert len(before - clinic.service.vault.names()) == 2  # and her row groups
    assert clinic.ask("pia", "GET", "/v1/tables/clinic/check").status_code == 422
    assert clinic.ask("petra", "GET", "/v1/tables/clinic/check").status_code == 200


def test_no_answer_or_error_holds_what_only_a_row_holds(clinic, monkeypatch):
    """Remarks are in every row and in no column of the table; broken files repeat them."""
    seen = []
    real = clinic.client.request

    def watched(*args, **rest):
        answer = real(*args, **rest)
        seen.append(answer.text)
        return answer

    monkeypatch.setattr(clinic.client, "request", watched)
    for text in (
        f"age,zip\n1,{CANARY}\n",
        f"age,zip,ill\n{CANARY}\n",
        f"age,zip,ill\n,{CANARY},flu\n",
        f'age,zip,ill\n"{CANARY}\n',
        f"age,zip,ill,{CANARY}\n",
    ):
        assert give(clinic, "pia", text).status_code in (400, 422)
    assert give(clinic, "pia", rows(0)).status_code == 200
    published(clinic)
    for member in clinic.secrets:
        for path in ("", "/publication", "/report", "/check"):
            clinic.ask(member, "GET", f"/v1/tables/clinic{path}")
        clinic.ask(member, "GET", "/v1/jobs")
        clinic.ask(member, "GET", "/v1/log")
    told = [text for text in seen if CANARY in text]
    assert not [text for text in told if "columns are" not in json.loads(text).get("detail", "")]
    clinic.service.ledger.verify()


def test_what_the_rules_do_not_name_is_not_kept(clinic):
    file = io.BytesIO()
    pandas.DataFrame(parsed(rows(7))).to_parquet(file)
    kind = {"Content-Type": "application/vnd.apache.parquet"}
    path, vault = "/v1/tables/clinic/rows", clinic.service.vault
    clinic.told("pia", "PUT", path, content=file.getvalue(), headers=kind)
    kept = [b"".join(vault.read(name)) for name in vault.names()]
    assert len(kept) == 3
    assert not [content for content in kept if CANARY.encode() in content]


def test_access_can_be_taken_back_and_a_providers_rows_go_with_it(clinic):
    before = clinic.told("udo", "GET", "/v1/tables/clinic")
    assert before["admitted"] == ["anna", "paul", "petra", "pia"]
    assert clinic.told("pia", "GET", "/v1/tables/clinic")["admitted"] == []
    for member in ("paul", "anna"):
        clinic.told("olga", "DELETE", f"/v1/tables/clinic/access/{member}")
        assert clinic.ask(member, "GET", "/v1/tables/clinic").status_code == 404
    assert len(clinic.service.vault.names()) == 2
    parts = clinic.told("olga", "GET", "/v1/tables/clinic")["parts"]
    assert [part["provider"] for part in parts] == ["petra", "pia"]
    assert published(clinic)["state"] == "done"
    clinic.told("olga", "DELETE", "/v1/tables/clinic/access/pia")
    assert len(clinic.told("olga", "GET", "/v1/tables/clinic/publication")["content"]) > 100


def test_whoever_deletes_her_rows_stays_in_the_list_of_who_was_published(clinic):
    published(clinic)
    clinic.told("pia", "DELETE", "/v1/tables/clinic/rows")
    clinic.told("olga", "DELETE", "/v1/tables/clinic/access/paul")
    parts = clinic.told("olga", "GET", "/v1/tables/clinic")["parts"]
    assert sum(part["rows"] for part in parts) == 120
    kept = {part["provider"]: part["kept"] for part in parts}
    assert kept == {"paul": False, "petra": True, "pia": False}
    assert clinic.told("udo", "GET", "/v1/tables/clinic")["parts"] == parts
    (own,) = clinic.told("pia", "GET", "/v1/tables/clinic")["parts"]
    assert own == {"provider": "pia", "rows": 40, "kept": False}


def test_a_missing_value_is_refused_or_a_value_as_the_rules_say(clinic):
    holes = rows(0).replace(",flu,", ",,", 3)
    refused = give(clinic, "pia", holes)
    assert refused.status_code == 422
    assert "missing='value'" in refused.json()["detail"]
    ruled(clinic, {**RULES, "missing": "value", "text": ["zip"]})
    assert give(clinic, "pia", holes).status_code == 200
    assert published(clinic)["state"] == "done"
    content = clinic.told("anna", "GET", "/v1/tables/clinic/publication")["content"]
    shown = list(csv.DictReader(io.StringIO(content)))
    assert sum(row["ill"] == "" for row in shown) == 3
    check = clinic.told("pia", "GET", "/v1/tables/clinic/check")
    assert (check["found"]["own_rows"], check["found"]["unmatched"]) == (40, 0)


def test_hierarchies_and_the_method_are_rules(clinic):
    tree = [[str(n), f"{n // 10}x", "*"] for n in range(1000, 1100)]
    rules = {**RULES, "hierarchies": {"zip": tree}, "method": "baseline", "text": ["zip"]}
    ruled(clinic, rules)
    assert published(clinic)["state"] == "done"
    content = clinic.told("anna", "GET", "/v1/tables/clinic/publication")["content"]
    labels = {row["zip"] for row in csv.DictReader(io.StringIO(content))}
    assert labels <= {label for row in tree for label in row}
    check = clinic.told("pia", "GET", "/v1/tables/clinic/check")
    assert (check["found"]["own_rows"], check["found"]["unmatched"]) == (40, 0)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"text": ["weight"]}, "give it no role"),
        ({"sensitive": "age"}, "once"),
        ({"hierarchies": {"ill": [["flu", "*"]]}}, "Declare the level of its hierarchy"),
        ({"hierarchies": {"age": [["20", "*"], ["20", "x"]]}}, "hierarchy"),
    ],
)
def test_rules_that_no_file_could_fit_are_refused_at_once(team, wrong, said):
    asked = {"name": "clinic", "rules": {**RULES, **wrong}}
    refused = team.ask("olga", "POST", "/v1/tables", json=asked)
    assert refused.status_code == 422
    assert said in refused.json()["detail"]


def test_rules_stay_as_they_were_when_rows_were_given(clinic):
    """Under other rules the same rows could be published as they are."""
    bare = {"quasi_identifiers": ["remark", "age"], "sensitive": "ill", "k": 1, "l": 1, "m": 0}
    refused = clinic.ask("olga", "PUT", "/v1/tables/clinic/rules", json=bare)
    assert refused.status_code == 422
    assert "current rules" in refused.json()["detail"]
    for provider in ("pia", "petra", "paul"):
        clinic.told(provider, "DELETE", "/v1/tables/clinic/rows")
    clinic.told("olga", "PUT", "/v1/tables/clinic/rules", json=bare)


CHAPTERS = [["E11", "E*", "*"], ["E10", "E*", "*"], ["I10", "I*", "*"], ["=I50", "I*", "*"]]


def coded(seed, number=40):
    draw = np.random.default_rng(seed)
    ages, ills = draw.integers(20, 80, number), draw.choice([row[0] for row in CHAPTERS], number)
    return "age,ill\n" + "".join(f"{a},{ill}\n" for a, ill in zip(ages, ills, strict=True))


def coded_clinic(team, **rules):
    """Rules about chapters of diagnoses, and two providers' rows."""
    rules = {"quasi_identifiers": ["age"], "sensitive": "ill", "k": 3, "l": 2, **rules}
    for provider in ("pia", "petra", "paul"):
        team.told(provider, "DELETE", "/v1/tables/clinic/rows")
    team.told("olga", "PUT", "/v1/tables/clinic/rules", json=rules)
    for n, provider in enumerate(("pia", "petra", "paul")):
        assert give(team, provider, coded(n)).status_code == 200


def test_l_is_counted_over_chapters_as_on_the_command_line(clinic):
    coded_clinic(clinic, hierarchies={"ill": CHAPTERS}, levels={"ill": 1}, split="range")
    assert published(clinic)["state"] == "done"
    text = clinic.told("anna", "GET", "/v1/tables/clinic/publication")["content"]
    groups = {}
    for row in parsed(text):
        groups.setdefault(row["age"], set()).add(row["ill"].lstrip("'=")[0])
    assert len(groups) > 1
    assert set(map(len, groups.values())) == {2}  # every group has both chapters
    frames = {name: pandas.DataFrame(parsed(coded(n))) for n, name in enumerate("abc")}
    pooled = Table.concat(
        {name: frame.astype({"age": int}) for name, frame in frames.items()},
        *(["age"], "ill"),
        hierarchies={"ill": CHAPTERS},
        levels={"ill": 1},
    )
    direct = anonymize(pooled, KAnonymity(3) & LDiversity(2), m=1, split="range")
    assert [row["age"] for row in parsed(text)] == direct.frame["age"].tolist()
    check = clinic.told("pia", "GET", "/v1/tables/clinic/check")
    assert (check["found"]["own_rows"], check["found"]["unmatched"]) == (40, 0)
    assert check["found"]["verdict"] == "holds"


def test_a_file_is_checked_against_the_hierarchy_of_the_sensitive_column(clinic):
    coded_clinic(clinic, hierarchies={"ill": CHAPTERS}, levels={"ill": 1})
    refused = give(clinic, "pia", coded(1).replace("E10", "Z99"))
    assert refused.status_code == 422
    assert "is not in its hierarchy; add a line for it" in refused.json()["detail"]


def test_a_missing_value_counts_towards_l_if_the_rules_say_so(clinic):
    text = "age,ill\n" + "".join(f"{20 + n},{'flu' if n % 2 else ''}\n" for n in range(40))
    for counts, state in ((False, "failed"), (True, "done")):
        coded_clinic(clinic, missing="value", count_missing=counts)
        for provider in ("pia", "petra", "paul"):
            give(clinic, provider, text)
        assert published(clinic)["state"] == state


def test_boxes_cuts_and_suppression_are_passed_on(clinic):
    coded_clinic(clinic, boxes="disjoint", blind=True, suppression=0.5, split="loss")
    assert published(clinic)["state"] == "done"
    frames = {name: pandas.DataFrame(parsed(coded(n))) for n, name in enumerate("abc")}
    pooled = Table.concat(
        {name: frame.astype({"age": int}) for name, frame in frames.items()}, ["age"], "ill"
    )
    options = {"boxes": "disjoint", "blind": True, "suppression": 0.5, "split": "loss"}
    direct = anonymize(pooled, KAnonymity(3) & LDiversity(2), m=1, **options)
    text = clinic.told("anna", "GET", "/v1/tables/clinic/publication")["content"]
    assert [row["age"] for row in parsed(text)] == direct.frame["age"].tolist()
    assert clinic.told("pia", "GET", "/v1/tables/clinic/check")["found"]["verdict"] == "holds"


@pytest.mark.parametrize(
    ("rules", "sentence"),
    [
        ({"hierarchies": {"ill": CHAPTERS}, "levels": {"ill": 3}}, "level 3 does not exist"),
        ({"levels": {"ill": 1}}, "not a sensitive column with a hierarchy"),
        ({"levels": {"age": 1}}, "not a sensitive column with a hierarchy"),
        ({"levels": {"who": 1}}, "give it no role"),
        ({"boxes": "disjoint", "method": "separate"}, "cannot be combined"),
        ({"blind": True, "split": "fitness"}, "cannot be combined"),
        ({"suppression": 1}, "suppression"),
    ],
)
def test_rules_under_which_nothing_could_be_published_are_refused_at_once(team, rules, sentence):
    rules = {"quasi_identifiers": ["age"], "sensitive": "ill", "k": 3, **rules}
    refused = team.ask("olga", "POST", "/v1/tables", json={"name": "c", "rules": rules})
    assert refused.status_code == 422
    assert sentence in refused.json()["detail"]
