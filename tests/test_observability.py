"""Logs never carry a secret or a full phone number, not even in an operator's own words."""

from guichet.observability import redact


def test_what_an_operator_said_is_kept_without_the_number() -> None:
    raw = '400 {"phoneNumber":22997001234,"message":"compte +22997001234 inconnu","amount":5088}'
    told = str(redact(None, "warning", {"event": "initiation.unknown", "raw": raw})["raw"])
    assert "22997001234" not in told
    assert '"amount":5088' in told
    assert "229*****234" in told


def test_references_stay_whole_and_secrets_do_not() -> None:
    line = redact(
        None,
        "info",
        {
            "event": "x",
            "error": "payment 3894710b-b159-492e-9eb0-e2c270d96bda",
            "otp": "123456",
            "phone_number": "22997001234",
        },
    )
    assert line["error"] == "payment 3894710b-b159-492e-9eb0-e2c270d96bda"
    assert (line["otp"], line["phone_number"]) == ("[masked]", "229*****234")
