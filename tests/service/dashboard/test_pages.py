"""What each role is shown, and what is refused, without a browser."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from quiltwork.demo.series_chapter import LENGTH
from quiltwork.service import jobs, members
from quiltwork.service.collaborative_tables import TABLES
from quiltwork.service.dashboard import demo_data
from quiltwork.service.dashboard.web import FLASH
from tests.service.dashboard.conftest import PAGE

PAGES = (
    "/",
    "/new",
    "/datasets/activity",
    "/datasets/activity/ask",
    "/datasets/commuting",
    "/tables",
    "/tables/admissions",
    "/tables/admissions/published.csv",
    "/leaderboards",
    "/leaderboards/coin-flips",
    "/leaderboards/coin-flips/scores.csv",
    "/jobs",
    "/members",
    "/members/anna",
    "/members/olga",
    "/log",
)
SEEN = {
    "olga": {*PAGES} - {"/log"},
    "anna": {*PAGES} - {"/log", "/new", "/members", "/members/olga"},
    "north": {"/", "/tables", "/tables/admissions", "/tables/admissions/published.csv"},
    "udo": {
        *("/", "/datasets/activity", "/datasets/commuting", "/tables"),
        *("/tables/admissions", "/leaderboards", "/leaderboards/coin-flips", "/log"),
    },
}


@pytest.mark.parametrize("member", SEEN)
def test_each_role_sees_what_it_may_and_nothing_else(stories, member):
    visitor = stories.visitor(member)
    answers = {path: visitor.get(path).status_code for path in PAGES}
    assert {path for path, status in answers.items() if status == 200} == SEEN[member]
    assert {*answers.values()} <= {200, 403, 404}


def test_links_and_forms_of_every_page_lead_somewhere(stories):
    """Follow all links that each role is offered; none is refused."""
    for member in SEEN:
        visitor, seen, waiting = stories.visitor(member), set(), ["/"]
        while waiting:
            path = waiting.pop()
            seen.add(path)
            shown = visitor.get(path)
            assert shown.status_code == 200, (member, path)
            if shown.headers["content-type"].startswith("text/html"):
                found = set(re.findall(r'href="(/(?!assets)[^"#]*)"', shown.text))
                waiting += found - seen - {*waiting}
        assert len(seen) > 3


def test_an_owner_sees_counts_of_rows_and_a_provider_only_her_own(stories):
    owner = stories.visitor("olga").get("/tables/admissions").text
    assert all(name in owner for name in ("north", "east", "south", "west"))
    main = stories.visitor("north").get("/tables/admissions").text.partition("<main")[2]
    assert not {"east", "south", "west"} & {*re.findall(r"\w+", main)}


def test_an_analyst_sees_what_is_published_and_nothing_of_who_gave_how_much(stories):
    anna = stories.visitor("anna")
    page = anna.get("/tables/admissions").text.partition("<main")[2]
    assert "What is published" in page
    assert "Providers" not in page
    assert "No rows" not in page
    assert not re.search(r"\d+ (provider|row)s?\b", anna.get("/").text)


def test_time_points_are_offered_as_far_as_there_are_data(stories):
    """The budget covers days to come too."""
    stories.service.ledger.extend("activity", LENGTH + 144)
    anna = stories.visitor("anna")
    covered = stories.service.ledger.status("activity").length
    page, form = anna.get("/datasets/activity").text, anna.get("/datasets/activity/ask").text
    assert covered > LENGTH
    assert f"{LENGTH:,} time points, " in page
    assert f"{covered:,} time points" in page
    assert {*re.findall(r'max="(\d+)"', form)} == {str(LENGTH)}
    assert f"the budget covers {covered:,}" in form


def test_an_auditor_verifies_the_log_and_sees_no_answers(stories):
    udo = stories.visitor("udo")
    shown = udo.post("/log", "/log")
    assert "Intact." in shown.text
    assert "Latest answers" not in udo.get("/datasets/activity").text
    assert udo.get("/datasets/activity/releases/20").status_code == 403


def test_the_preview_works_without_a_script_and_spends_nothing(stories):
    anna = stories.visitor("anna")
    before = stories.service.ledger.status("commuting").exact_total
    fields = {"kind": "table", "by[]": "mode", "epsilon": "0.25"}
    ask = "/datasets/commuting/ask"
    shown = anna.post(f"{ask}/preview", ask, **fields)
    assert 'id="price">0.25</span>' in shown.text
    assert 'value="0.25"' in shown.text  # the form stays as it was filled in
    assert stories.service.ledger.status("commuting").exact_total == before
    part = anna.client.post(
        f"{ask}/preview",
        data={**fields, "form": re.search(r'name="form" value="(\w+)"', shown.text)[1]},
        headers={**PAGE, "X-Fragment": "1"},
    )
    assert "<html" not in part.text
    assert 'id="price">0.25</span>' in part.text


def test_a_form_that_is_sent_twice_is_answered_once(stories):
    anna = stories.visitor("anna")
    ask = "/datasets/commuting/ask"
    fields = {"kind": "table", "by[]": "mode", "epsilon": "0.05", "key": "the same form"}
    first = anna.post(ask, ask, **fields)
    total = stories.service.ledger.status("commuting").exact_total
    again = anna.post(ask, ask, **fields)
    assert first.url == again.url
    assert stories.service.ledger.status("commuting").exact_total == total
    page = "/datasets/activity/ask"  # nothing is spent on what is usual
    assert anna.post(page, page).status_code == 422
    assert anna.post(page, page, key="k", kind="histogram").status_code == 422


def test_a_refused_file_is_told_by_place_and_never_by_value(stories):
    olga = stories.visitor("olga")
    value = re.search(r'name="form" value="(\w+)"', olga.get("/datasets/commuting").text)[1]
    rows = {"rows": ("r.csv", b"mode\nwalk\nCANARY-77\n", "text/csv")}
    sent = olga.client.post(
        "/datasets/commuting/rows", data={"form": value}, files=rows, headers=PAGE
    )
    assert sent.status_code == 422
    assert "Row 2" in sent.text
    assert "CANARY" not in sent.text


def test_a_job_that_waits_can_be_cancelled(stories):
    identity = jobs.new_id()
    stories.service.write(lambda t: jobs.submit(t, "olga", "admissions", identity))
    olga = stories.visitor("olga")
    shown = olga.get("/jobs").text
    assert "queued" in shown
    assert "data-busy" in shown  # the script looks again
    after = olga.post(f"/jobs/{identity}/cancel", "/jobs").text
    assert f"/jobs/{identity}/cancel" not in after
    assert "cancelled" in after
    assert stories.visitor("anna").post(f"/jobs/{identity}/cancel", "/jobs").status_code == 404


def test_the_tables_of_a_leaderboard_are_deleted_once_its_name_is_typed(stories):
    olga, page = stories.visitor("olga"), "/leaderboards/gone"
    made = olga.post(
        "/leaderboards", "/leaderboards", name="gone", target="side", classes="heads, tails"
    )
    assert f"{page}/tables" in made.text
    refused = olga.post(f"{page}/delete", page, confirm="coins")
    assert (refused.status_code, "Type the" in refused.text) == (422, True)
    shown = olga.post(f"{page}/delete", page, confirm="gone").text
    assert "The rows were deleted" in shown
    assert not [form for form in ("delete", "tables") if f"{page}/{form}" in shown]


def test_a_competition_is_begun_scored_named_and_ended_on_pages(house):
    olga, page = house.visitor("olga"), "/leaderboards/race"
    asked = {"mode": "ladder", "final": "1/2", "announcements": "3", "budget": "9"}
    columns = {"name": "race", "id_column": "id", "target": "y", "classes": "0, 1"}
    made = olga.post("/leaderboards", "/leaderboards", **columns, **asked)
    assert f"{page}/tables" in made.text, made.text
    truth = {f"r{n}": n % 2 for n in range(600)}
    right = "id,y\n" + "".join(f"{row},{one}\n" for row, one in truth.items())
    bearer = {name: {"Authorization": f"Bearer {one}"} for name, one in house.secrets.items()}

    def sent(member, method, path, **rest):
        with TestClient(house.app, "http://127.0.0.1") as wire:
            headers = {**bearer[member], **rest.pop("headers", {})}
            answer = wire.request(method, f"/v1/holdouts/race{path}", headers=headers, **rest)
        assert answer.is_success, answer.text
        return answer

    sent("olga", "PUT", "/tables/holdout", content=right, headers={"Content-Type": "text/csv"})
    sent("olga", "POST", "/opening")
    sent("olga", "PUT", "/access/anna")
    for member, wrong in (("anna", 5), ("olga", 2), ("anna", 3)):
        said = {row: str(one if n % wrong else 0) for n, (row, one) in enumerate(truth.items())}
        key = {"Idempotency-Key": f"{wrong}"}
        sent(member, "POST", "/questions", json={"predictions": said}, headers=key)
    anna = house.visitor("anna")
    shown = anna.get(page).text
    assert "Interval</th>" in shown
    assert "rows held back for the end" in shown.lower()
    assert f"{page}/end" not in shown
    refused = anna.post(f"{page}/choice", page, number="2")
    assert (refused.status_code, "anna has no submission" in refused.text) == (422, True), (
        refused.text
    )
    assert "is chosen for the end" in anna.post(f"{page}/choice", page, number="1").text
    ended = olga.post(f"{page}/end", page).text
    assert "The competition has ended" in ended
    assert "Final ranking" in ended
    assert "anna" in ended.partition("Final ranking")[2]
    assert anna.get(f"{page}/ranking.csv").text.startswith("rank,team,submission")
    assert f"{page}/choice" not in anna.get(page).text


@pytest.mark.parametrize("name", ["%00", "..%2F..", "a%20b", "%F0%9F%A7%B5", "x" * 300])
def test_what_can_be_no_name_is_nowhere(stories, name):
    olga = stories.visitor("olga")
    for place in ("datasets", "tables", "leaderboards", "members"):
        assert olga.get(f"/{place}/{name}").status_code == 404


def test_what_people_type_is_text_and_never_markup(stories):
    olga = stories.visitor("olga")
    typed = '<script>alert(1)</script>"onfocus="x'
    shown = olga.post("/tables", "/tables", name=typed, quasi=typed, sensitive=typed)
    assert shown.status_code == 422
    assert "<script>alert" not in shown.text
    assert '"onfocus' not in shown.text


def test_a_demonstration_does_not_mix_with_a_curator_in_use(stories):
    with pytest.raises(demo_data.InvalidInputError, match="in use"):
        demo_data.fill(stories.service)


def test_every_template_is_used_and_every_word_of_a_redirect_is_known():
    package = Path(demo_data.__file__).parent
    code = "".join(path.read_text() for path in package.rglob("*.py"))
    templates = {path.name: path.read_text() for path in package.glob("templates/*.html")}
    everything = code + "".join(templates.values())
    for name in templates:
        assert f'"{name}"' in everything
    for word in re.findall(r'Go\(.*, "(\w+)"\)|_done\(visit, "(\w+)"', code):
        assert (word[0] or word[1]) in FLASH


def test_members_come_in_pages(house):
    for number in range(150):
        house.service.write(
            lambda t, n=number: members._MEMBERS.add(
                t,
                members.Member(
                    name=f"m{n:03}", role="analyst", invited_by="olga", created=members.now()
                ),
            )
        )
    olga, page, seen = house.visitor("olga"), "/members", []
    while page:
        shown = olga.get(page).text
        seen += re.findall(r'href="/members/(\w+)"', shown)
        found = re.search(r'href="(/members\?after=\w+)"', shown)
        page = found and found[1]
    assert {*seen} == {"anna", "olga", "pia", "udo", *(f"m{n:03}" for n in range(150))}


def test_a_preview_comes_before_an_answer(stories):
    """The first button of a form is the one that Enter presses."""
    form = stories.visitor("anna").get("/datasets/activity/ask").text
    assert form.index(">Preview</button>") < form.index(">Ask</button>")


def test_the_form_of_a_table_takes_what_the_command_line_does(house):
    olga = house.visitor("olga")
    fields = {"name": "clinic", "quasi": "age, zip", "sensitive": "ill", "text": "zip"}
    trees = {"hierarchies": "zip: 47677, 476, all\nzip: 47602, 476, all", "method": "baseline"}
    assert olga.post("/tables", "/tables", **fields, **trees).url.path == "/tables/clinic"
    rules = house.service.read(lambda t: TABLES.current(t, "clinic")).spec
    assert (rules.text, rules.method) == (["zip"], "baseline")
    assert rules.hierarchies == {"zip": [["47677", "476", "all"], ["47602", "476", "all"]]}
    wrong = olga.post("/tables", "/tables", **{**fields, "name": "b"}, hierarchies="47677, 476")
    assert (wrong.status_code, "leaf, …, root" in wrong.text) == (422, True)
