"""Whole walks in a browser, as people take them; one browser for all."""

from __future__ import annotations

import contextlib
import json
import re

import pytest

from quiltwork.beliefs import MarkovChain, beliefs_to_json
from quiltwork.service.dashboard import routes
from quiltwork.service.features import open_service
from quiltwork.service.members import first_owner
from quiltwork.service.publication_process import finish_waiting
from tests.service.dashboard.conftest import Serving, create_app

CHAIN = MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "walk"])


class Tab:
    """One person's browser: her own cookies, and what went wrong in the page."""

    def __init__(self, browser, address):
        size = {"width": 1280, "height": 900}
        self.context = browser.new_context(base_url=address, viewport=size)
        self.context.set_default_timeout(20_000)
        self.page = self.context.new_page()
        self.troubles = []
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("console", self._listen)

    def _listen(self, message):
        if message.type == "error" and "status of 4" not in message.text:
            self.troubles.append(message.text)

    def sign_in(self, secret):
        self.page.goto("/")
        self.page.get_by_label("Token").fill(secret)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.get_by_role("button", name="Sign out").wait_for()
        return self.page

    def close(self):
        self.context.close()
        assert self.troubles == []


@pytest.fixture
def people(browser):
    """`people(address)` opens a tab; all are closed at the end, and none had trouble."""
    with contextlib.ExitStack() as opened:

        def arrive(address):
            tab = Tab(browser, address)
            opened.callback(tab.close)
            return tab

        yield arrive


def file_of(name, lines):
    return {"name": name, "mimeType": "text/csv", "buffer": "\n".join([*lines, ""]).encode()}


def left_of(page):
    return float(page.locator(".reading strong").first.inner_text().split()[0])


def test_from_the_first_start_to_the_last_of_the_budget(people, settings):
    service = open_service(settings)
    secret = first_owner(service, "olga")
    with Serving(create_app(service, routes)) as serving:
        page = people(serving.address).sign_in(secret)
        page.get_by_role("link", name="Register a dataset").click()
        page.get_by_label("Name").fill("steps")
        page.get_by_label("Budget").fill("1")
        belief = json.loads(beliefs_to_json(CHAIN))
        chosen = {"name": "b.json", "mimeType": "application/json"}
        page.get_by_label("Belief").set_input_files(
            {**chosen, "buffer": json.dumps(belief).encode()}
        )
        page.get_by_label("Column of states").fill("activity")
        page.get_by_role("button", name="Register").click()
        page.get_by_text("Nothing has been spent yet").wait_for()

        rows = ["activity", *CHAIN.sample(2000, seed=1)]
        page.get_by_label("A CSV or Parquet file").set_input_files(file_of("rows.csv", rows))
        page.get_by_role("button", name="Add rows").click()
        page.get_by_text("The rows were added").wait_for()
        page.get_by_text("2,000 time points, 2 states").wait_for()

        page.get_by_role("link", name="Ask", exact=True).first.click()
        level = page.get_by_label("Privacy level")
        price = page.locator("#price")
        seen = price.inner_text()
        with page.expect_response(re.compile("/ask/preview")):
            level.fill("0.6")
        page.wait_for_function("was => document.querySelector('#price').innerText != was", arg=seen)
        assert 0.55 < float(price.inner_text()) < 0.65  # the live preview, without a click
        page.get_by_text("No row was read").wait_for()
        page.get_by_role("button", name="Ask").click()
        page.get_by_text("The answer is below").wait_for()
        assert page.get_by_role("img").count() == 1

        page.get_by_role("link", name="steps").click()
        assert 0.35 < left_of(page) < 0.45
        page.get_by_role("link", name="Ask", exact=True).first.click()
        page.get_by_label("Privacy level").fill("0.6")
        page.get_by_text("It would be refused").wait_for()
        page.get_by_role("button", name="Ask").click()
        refusal = page.get_by_role("alert").first
        refusal.wait_for()
        assert "budget" in refusal.inner_text().lower()
        page.get_by_role("link", name="steps").click()
        assert 0.35 < left_of(page) < 0.45  # what was refused cost nothing


def test_three_hospitals_and_an_owner_publish_a_table(people, settings):
    service = open_service(settings)
    secrets = {"olga": first_owner(service, "olga")}
    with Serving(create_app(service, routes)) as serving:
        owner = people(serving.address).sign_in(secrets["olga"])
        hospitals = ("north", "east", "south")
        for name in hospitals:
            owner.goto("/members")
            owner.get_by_label("Name").fill(name)
            owner.get_by_label("Role").select_option("provider")
            owner.get_by_role("button", name="Invite").click()
            secrets[name] = owner.locator("#secret").inner_text()
            owner.reload()
            assert secrets[name] not in owner.content()  # shown once
        owner.goto("/tables")
        owner.get_by_label("Name").fill("admissions")
        owner.get_by_label("Columns that identify people").fill("age, zip")
        owner.get_by_label("Sensitive column").fill("disease")
        owner.get_by_label("k: records").fill("3")
        owner.get_by_role("button", name="Create the table").click()
        for name in hospitals:
            owner.get_by_text("Admit a member").wait_for()
            owner.get_by_label("Member").fill(name)
            owner.get_by_role("button", name="Admit", exact=True).click()
            owner.get_by_text("Access was changed").wait_for()

        pages = {}
        for place, name in enumerate(hospitals):
            rows = [
                f"{20 + (7 * i + place) % 60},{1000 + 10 * (i % 9)},{'flu' if i % 3 else name}"
                for i in range(40 + place)
            ]
            page = pages[name] = people(serving.address).sign_in(secrets[name])
            page.get_by_role("link", name="admissions").click()
            chosen = file_of("rows.csv", ["age,zip,disease", *rows])
            page.get_by_label("A CSV or Parquet file").set_input_files(chosen)
            page.get_by_role("button", name="Upload").click()
            page.get_by_text(f"You have uploaded {40 + place} rows").wait_for()
            others = {*hospitals} - {name}
            assert not others & {*re.findall(r"\w+", page.locator("main").inner_text())}

        owner.reload()
        owner.get_by_role("button", name="Publish").click()
        owner.get_by_text("Publishing.").wait_for()
        finish_waiting(service)
        owner.reload()
        owner.get_by_role("heading", name="Colluding providers").wait_for()
        assert owner.get_by_role("row", name="east 41").count() == 1
        with owner.expect_download() as loaded:
            owner.get_by_role("link", name="Download").click()
        published = loaded.value.path().read_text()
        assert published.startswith('"age","zip","disease"\n')
        assert len(published.splitlines()) == 1 + 40 + 41 + 42
        assert re.search(r'^"\d+\.\.\d+",', published, re.M)  # generalized, not as it was given
        pages["north"].reload()
        pages["north"].get_by_role("heading", name="What you could infer").wait_for()


WAYS = {
    "olga": (
        "/",
        "/new",
        "/datasets/activity",
        "/datasets/activity/ask",
        "/datasets/commuting/ask",
        "/tables",
        "/tables/admissions",
        "/leaderboards/coin-flips",
        "/jobs",
        "/members",
        "/members/anna",
    ),
    "anna": ("/datasets/commuting", "/leaderboards"),
    "north": ("/tables/admissions",),
    "udo": ("/datasets/activity", "/log", "/nowhere"),
}


def test_every_page_can_be_used_without_a_mouse_or_without_seeing_it(people, stories):
    with Serving(create_app(stories.service, routes)) as serving:
        page = people(serving.address).page
        page.goto("/sign-in")
        assert faults(page) == []
        for member, ways in WAYS.items():
            page = people(serving.address).sign_in(stories.secrets[member])
            for way in ways:
                page.goto(way)
                assert faults(page) == [], (member, way)
                page.emulate_media(color_scheme="dark")
                page.set_viewport_size({"width": 390, "height": 900})
                if member == "olga":  # the others' pages have the same colours
                    assert faults(page, "color-contrast") == [], (member, way)
                wider = "document.documentElement.scrollWidth > window.innerWidth"
                assert not page.evaluate(wider), (member, way)
                page.emulate_media(color_scheme="light")
                page.set_viewport_size({"width": 1280, "height": 900})
        page.goto("/")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.innerText") == "Skip to content"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"


def faults(page, *rules):
    """What axe-core finds on a page, by all of its rules or some."""
    from axe_playwright_python.sync_playwright import Axe

    if not page.evaluate("'axe' in window"):
        page.evaluate(Axe().axe_script)
    options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    found = page.evaluate("options => axe.run(options)", options)["violations"]
    return [(one["id"], [node["html"] for node in one["nodes"]]) for one in found]
