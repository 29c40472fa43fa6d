from __future__ import annotations

import re
import uuid
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from evidence.faults.server import new_database
from quiltwork.errors import InvalidInputError
from quiltwork.service.dashboard import sessions
from quiltwork.service.dashboard.rendering import assets
from quiltwork.service.settings import Settings
from tests.service.dashboard.conftest import PAGE, open_house


def test_a_token_opens_a_session_whose_cookie_scripts_and_other_sites_cannot_use(house):
    visitor = house.visitor()
    visitor.client.follow_redirects = False
    answer = visitor.sign_in(house.secrets["anna"])
    assert answer.status_code == 303
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert house.secrets["anna"] not in str(answer.headers)
    visitor.client.follow_redirects = True
    assert "anna" in visitor.get("/").text


def test_with_tls_the_cookie_is_secure_and_bound_to_its_host(house):
    visitor = house.visitor()
    visitor.client.base_url = "https://127.0.0.1"
    visitor.client.follow_redirects = False
    cookie = visitor.sign_in(house.secrets["anna"]).headers["set-cookie"]
    assert cookie.startswith("__Host-")
    assert "Secure" in cookie


def test_what_is_no_token_opens_nothing_and_stays_out_of_the_page(house):
    answer = house.visitor().sign_in("qwk_hunter2")
    assert answer.status_code == 401
    assert "token is not valid" in answer.text
    assert "hunter2" not in answer.text


def test_a_session_ends_with_its_token_with_signing_out_and_with_time(house, monkeypatch):
    anna = house.visitor("anna")
    tokens = anna.get("/members/anna").text
    token = re.search(r"/tokens/(\w+)/revoke", tokens)[1]
    anna.post(f"/members/anna/tokens/{token}/revoke", "/members/anna")
    assert anna.get("/").url.path == "/sign-in"

    olga = house.visitor("olga")
    held = dict(olga.client.cookies)
    olga.post("/sign-out", "/")
    olga.client.cookies.update(held)
    assert olga.get("/").url.path == "/sign-in"

    udo = house.visitor("udo")
    monkeypatch.setattr(sessions, "now", lambda: "2999-01-01T00:00:00+00:00")
    assert udo.get("/").url.path == "/sign-in"


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://["},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=str,
)
def test_forms_of_other_sites_are_refused(house, headers):
    anna = house.visitor("anna")
    value = re.search(r'name="form" value="(\w+)"', anna.get("/").text)[1]
    sent = anna.client.post("/sign-out", data={"form": value}, headers={**PAGE, **headers})
    assert sent.status_code == 403
    assert anna.get("/").url.path == "/"


def test_a_form_without_its_hidden_value_or_with_somebody_elses_is_refused(house):
    anna, olga = house.visitor("anna"), house.visitor("olga")
    other = re.search(r'name="form" value="(\w+)"', olga.get("/").text)[1]
    for fields in ({"other": "1"}, {"form": other}, {"form": "é"}):
        assert anna.client.post("/sign-out", data=fields, headers=PAGE).status_code == 403
    assert (
        house.visitor().client.post("/sign-in", data={"token": "x"}, headers=PAGE).status_code
        == 403
    )


def test_a_cookie_opens_pages_and_never_the_api(house):
    anna = house.visitor("anna")
    answer = anna.client.get("/v1/me", headers=PAGE)
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"


def test_who_does_not_ask_for_pages_gets_json(house):
    for path in ("/", "/members", "/log", "/nowhere"):
        answer = house.visitor().client.get(path, headers={"Accept": "application/json"})
        assert answer.status_code in (401, 404)
        assert answer.headers["content-type"] == "application/problem+json"


def test_pages_are_never_kept_and_bring_nothing_from_elsewhere(house):
    shown = house.visitor("olga").get("/")
    assert shown.headers["cache-control"] == "no-store"
    policy = shown.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert shown.headers["x-frame-options"] == "DENY"
    assert "style=" not in shown.text
    assert not re.search(r"\son\w+=|<style|https?://(?!www\.w3\.org)", shown.text)
    for name in re.findall(r"/assets/([\w.]+)\?", shown.text):
        kept = house.visitor().client.get(f"/assets/{name}")
        assert kept.content == assets()[name].content
        assert "immutable" in kept.headers["cache-control"]


def test_the_cookie_and_the_token_are_nowhere_in_the_database(house, settings):
    visitor = house.visitor("anna")
    cookie = visitor.client.cookies["quiltwork_session"]
    files = settings.database.removeprefix("sqlite:///")
    held = b"".join(path.read_bytes() for path in Path(files).parent.glob("curator.db*"))
    assert cookie.encode() not in held
    assert house.secrets["anna"].encode() not in held
    assert sessions.hashed(cookie).encode() in held


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"form=x&token=" + b"y" * 20_000, "application/x-www-form-urlencoded", 413),
        (b"\xff\xfe=1", "application/x-www-form-urlencoded", 400),
        (b"a=1&" * 1000, "application/x-www-form-urlencoded", 400),
        (b"--b\r\nnonsense", "multipart/form-data; boundary=b", 415),
        (b'{"token": "x"}', "application/json", 415),
    ],
    ids=["large", "not UTF-8", "many fields", "files", "JSON"],
)
def test_who_has_not_signed_in_can_send_a_small_form_and_nothing_else(house, content, kind, status):
    headers = {**PAGE, "Content-Type": kind}
    answer = house.visitor().client.post("/sign-in", content=content, headers=headers)
    assert answer.status_code == status
    assert answer.headers["content-type"].startswith("text/html")


def test_sessions_are_the_same_in_postgresql(postgres, tmp_path):
    database = new_database(postgres, f"t{uuid.uuid4().hex}")
    house = open_house(Settings(database, tmp_path / "data"), {"olga": "owner"})
    olga = house.visitor("olga")
    assert "This curator has no data yet" in olga.get("/").text
    olga.post("/sign-out", "/")
    assert olga.get("/").url.path == "/sign-in"
    house.service.ledger.close()


PROXY, HEADER = "10.0.0.7", "X-Forwarded-User"


@pytest.fixture
def proxied(settings):
    """A curator behind a proxy that signs people in, and one who asks from some address."""
    found = open_house(replace(settings, proxies=(PROXY,), user_header=HEADER))

    def client(peer):
        return TestClient(found.app, "http://127.0.0.1", client=(peer, 1))

    with client(PROXY):
        yield client


def signed_in(client, user):
    return client.get("/", headers={**PAGE, HEADER: user})


def test_a_proxy_signs_a_member_in_and_only_a_member(proxied):
    client = proxied(PROXY)
    shown = signed_in(client, "anna")
    assert "anna" in shown.text
    assert "httponly" in shown.headers["set-cookie"].lower()
    value = re.search(r'name="form" value="(\w+)"', shown.text)[1]
    sent = client.post("/sign-out", data={"form": value}, headers={**PAGE, HEADER: "anna"})
    assert sent.url.path == "/sign-in"
    for nobody in ("stranger", "", "anna, olga", "ANNA", "\xe9"):
        assert signed_in(proxied(PROXY), nobody.encode("latin-1")).url.path == "/sign-in"


def test_what_others_say_of_who_has_signed_in_is_dropped(proxied):
    for peer in ("10.0.0.8", "127.0.0.1", "testclient", "::1"):
        assert signed_in(proxied(peer), "olga").url.path == "/sign-in"
    twice = [("Accept", PAGE["Accept"]), (HEADER, "olga"), (HEADER.lower(), "anna")]
    assert proxied(PROXY).get("/", headers=twice).url.path == "/sign-in"


def test_a_session_of_a_proxy_is_good_only_with_its_word_for_the_same_member(proxied):
    client = proxied(PROXY)
    signed_in(client, "anna")
    assert client.get("/members/anna", headers={**PAGE, HEADER: "anna"}).status_code == 200
    stolen = proxied("10.0.0.8")
    stolen.cookies.update(dict(client.cookies))
    assert signed_in(stolen, "anna").url.path == "/sign-in"
    other = proxied(PROXY)
    other.cookies.update(dict(client.cookies))
    assert signed_in(other, "olga").url.path == "/sign-in"


def test_the_api_and_an_ordinary_curator_know_no_such_header(proxied, house):
    assert proxied(PROXY).get("/v1/me", headers={HEADER: "olga"}).status_code == 401
    client = TestClient(house.app, "http://127.0.0.1", client=(PROXY, 1))
    assert signed_in(client, "olga").url.path == "/sign-in"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"proxies": (PROXY,)}, "needs both"),
        ({"user_header": HEADER}, "needs both"),
        ({"proxies": ("proxy.example.org",), "user_header": HEADER}, "not an IP address"),
        ({"proxies": (PROXY,), "user_header": "X User"}, "letters, digits and dashes"),
        ({"proxies": (PROXY,), "user_header": "Cookie"}, "another use"),
    ],
)
def test_a_proxy_that_cannot_be_meant_is_refused(settings, wrong, said):
    with pytest.raises(InvalidInputError, match=said):
        replace(settings, **wrong)


def test_only_a_proxy_says_that_a_request_was_encrypted(house):
    said = {**PAGE, "X-Forwarded-Proto": "https"}
    for peer, secure in (("127.0.0.1", True), ("10.0.0.8", False)):
        client = TestClient(house.app, "http://127.0.0.1", client=(peer, 1))
        cookie = client.get("/sign-in", headers=said).headers["set-cookie"]
        assert cookie.startswith("__Host-") == secure
