"""Passwords are shown nowhere, however an address has them."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.plan import command
from pipeline.privacy import has_password, hide_password, hide_passwords


@pytest.mark.parametrize(
    "address, shown",
    [
        ("postgresql://anna:secret@db:5432/runs", "postgresql://anna:***@db:5432/runs"),
        ("http://u:sec/ret@host:5000", "http://u:***@host:5000"),
        ("http://u:sec#ret@host:5000/x", "http://u:***@host:5000/x"),
        ("http://u:sec?ret@host", "http://u:***@host"),
        ("http://u:sec@ret@host", "http://u:***@host"),
        ("http://u:sec ret@host", "http://u:***@host"),
        ("http://u@corp.example:secret@host", "http://u@corp.example:***@host"),
        ("http://:secret@host", "http://:***@host"),
        ("mysql+pymysql://u@h/d?password=secret&x=1", "mysql+pymysql://u@h/d?password=***&x=1"),
        ("postgresql://h/d?user=u&PassWord=secret", "postgresql://h/d?user=u&PassWord=***"),
        ("postgresql://h/d?sslpassword=secret", "postgresql://h/d?sslpassword=***"),
        ("http://h?access_token=secret", "http://h?access_token=***"),
        ("mssql+pyodbc://?odbc_connect=PWD%3Dsecret", "mssql+pyodbc://?odbc_connect=***"),
    ],
)
def test_a_password_is_hidden_wherever_it_stands(address: str, shown: str) -> None:
    assert hide_password(address) == shown
    assert hide_password(shown) == shown
    if " " not in address:
        assert hide_passwords(f"it says {address!r}, twice: {address}").count("secret") == 0
    assert "sec" not in command(["draft=int8", f"tracking.uri={address}"])


@pytest.mark.parametrize(
    "address",
    [
        "http://host:5000",
        "https://host:5000/#/experiments/1/runs/2?workflowType=machine_learning",
        "http://[::1]:5000/x",
        "sqlite:////tmp/a b/mlflow.db",
        "postgresql://anna@db/runs",
        "C:\\runs",
        "draft=int8",
    ],
)
def test_an_address_without_one_stays_as_it_is(address: str) -> None:
    assert hide_password(address) == hide_passwords(address) == address
    assert not has_password(address)


_SIGNS = string.ascii_letters + string.digits + "/#?@:&=%+!$'\"*;,[]()~^|<>{}\\-_."


def test_our_own_pattern_of_an_address_is_nobodys_password() -> None:
    pattern = "write SCHEME://USER:PASSWORD@HOST:PORT"
    assert hide_passwords(pattern) == pattern
    assert hide_passwords("postgresql://a:PASSWORD1@h") == "postgresql://a:***@h"


@given(st.text(_SIGNS, min_size=6, max_size=20), st.sampled_from(["http", "postgresql+psycopg"]))
def test_no_sign_in_a_password_gets_it_past(password: str, scheme: str) -> None:
    address = f"{scheme}://anna:{password}@host:5000/runs"
    assert hide_password(address) == f"{scheme}://anna:***@host:5000/runs"
    assert hide_passwords(f"{address} is away") == f"{scheme}://anna:***@host:5000/runs is away"
