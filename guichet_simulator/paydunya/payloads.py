"""PayDunya's networks with the exact names of their fields, its refusals, and the JSON it sends about an invoice or a
payout (docs/providers/paydunya.md)."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from guichet.clock import Instant, to_datetime
from guichet_simulator.http_helpers import ErrorResponse, Refused, json_bytes, units
from guichet_simulator.models import SUCCEEDED, Transaction, by_state

MASTER_KEY: Final = "paydunya-master-key"
MIN_AMOUNT: Final = 200

#: A state → the `status` of an invoice, and of a payout.
INVOICE_STATES: Final = by_state(pending="pending", succeeded="completed", failed="failed", expired="cancelled")
PAYOUT_STATES: Final = by_state(pending="pending", succeeded="success", failed="failed", expired="failed")


@dataclass(frozen=True, slots=True)
class Network:
    """`fields`: those that must be there, the number first and the token last. `numbers`: whose it says that a number
    is not."""

    operator: str
    country: str
    dial: str
    fields: tuple[str, ...]
    numbers: str
    code: str | None = None
    redirects: bool = False


def _usual(prefix: str, *more: str) -> tuple[str, ...]:
    return (f"{prefix}_phone_number", f"{prefix}_customer_fullname", f"{prefix}_email", *more, "payment_token")


def _short(prefix: str, number: str) -> tuple[str, ...]:
    return (f"{prefix}_{number}", f"{prefix}_fullName", f"{prefix}_email", f"{prefix}_payment_token")


_SENEGAL: Final = ("phone_number", "customer_name", "customer_email")
_CELTIIS: Final = "celtiis_cash"

#: By the last part of the path of `softpay`.
NETWORKS: Final[Mapping[str, Network]] = {
    "mtn-benin": Network("mtn", "BJ", "229", _usual("mtn_benin", "mtn_benin_wallet_provider"), "MTN Bénin"),
    "moov-benin": Network("moov", "BJ", "229", _usual("moov_benin"), "Moov Bénin"),
    "celtiis-cash": Network(
        "celtiis_bj",
        "BJ",
        "229",
        (f"{_CELTIIS}_phone_number", f"{_CELTIIS}_customer_fullname", f"{_CELTIIS}_customer_email", "payment_token"),
        "Celtiis",
    ),
    "moov-burkina": Network("moov_bf", "BF", "226", _short("moov_burkina_faso", "phone_number"), "du Burkina Faso"),
    "orange-money-burkina": Network(
        "orange_bf", "BF", "226", ("phone_bf", "name_bf", "email_bf", "payment_token"), "du Burkina Faso", "otp_code"
    ),
    "mtn-ci": Network("mtn_ci", "CI", "225", _usual("mtn_ci", "mtn_ci_wallet_provider"), "MTN Cote d'ivoire"),
    "moov-ci": Network("moov_ci", "CI", "225", _usual("moov_ci"), "de la Côte d'Ivoire"),
    "orange-money-ci": Network(
        "orange_ci", "CI", "225", _usual("orange_money_ci"), "de la Côte d'Ivoire", "orange_money_ci_otp"
    ),
    "wave-ci": Network("wave_ci", "CI", "225", _short("wave_ci", "phone"), "de la Côte d'Ivoire", redirects=True),
    "orange-money-mali": Network(
        "orange_ml", "ML", "223", _usual("orange_money_mali", "orange_money_mali_customer_address"), "du Mali"
    ),
    "new-orange-money-senegal": Network(
        "orange_sn", "SN", "221", (*_SENEGAL, "invoice_token"), "du Sénégal", redirects=True
    ),
    "free-money-senegal": Network("free_sn", "SN", "221", (*_SENEGAL, "payment_token"), "du Sénégal"),
    "wave-senegal": Network("wave_sn", "SN", "221", _short("wave_senegal", "phone"), "du Sénégal", redirects=True),
    "t-money-togo": Network(
        "togocom_tg", "TG", "228", ("phone_t_money", "name_t_money", "email_t_money", "payment_token"), "du Togo"
    ),
    "moov-togo": Network("moov_tg", "TG", "228", _usual("moov_togo", "moov_togo_customer_address"), "du Togo"),
}
#: The channels of the invoice's page that a code of the contract needs, and the operator that each is.
CHANNELS: Final[Mapping[str, str]] = {"card": "card", "orange-money-ci": "orange_ci"}
#: The modes of payouts, and the operator that each is.
PAYOUTS: Final[Mapping[str, str]] = {
    "moov-burkina-faso": "moov_bf",
    "orange-money-senegal": "orange_sn",
    **{
        name: network.operator
        for name, network in NETWORKS.items()
        if name not in ("moov-burkina", "new-orange-money-senegal")
    },
}
COUNTRIES: Final = {network.operator: network.country for network in NETWORKS.values()}
_DIALS: Final = {network.operator: network.dial for network in NETWORKS.values()}


def invoice_key(token: object) -> str:
    """Where an invoice stands among the settings of the store."""
    return f"paydunya:invoice:{token}"


def payout_key(token: object) -> str:
    return f"paydunya:payout:{token}"


def answer(code: str, text: str, **more: object) -> dict[str, object]:
    return {"response_code": code, "response_text": text, **more}


def refusal(code: str, text: str, status: int = 200) -> ErrorResponse:
    return ErrorResponse(status, answer(code, text))


def no(message: str) -> ErrorResponse:
    """A refusal of `softpay`."""
    return ErrorResponse(200, {"success": False, "message": message})


NO_PAGE: Final = "<!DOCTYPE html><html><head><title>Page non trouvée</title></head><body>404</body></html>"
WRONG_FIELDS: Final = no("informations saisies incorrectes")
NO_INVOICE: Final = no("invoice inexistant")
TOO_LATE: Final = no("Vous avez dépassé le délai de validation de la transaction.")
WRONG_CODE: Final = ErrorResponse(422, {"message": "Invalid or expired OTP code!"})
REFUSED_PAYER: Final = no("Votre solde est insuffisant pour effectuer cette transaction.")
UNKNOWN_INVOICE: Final = refusal("1002", "Invoice Not Found")


def check_softpay(network: Network, body: Mapping[str, Any]) -> tuple[str, str]:
    """The number as digits with its country code, and the token. Raises Refused for a field that is missing or has
    another name, and for a number that has its country code."""
    needed = [*network.fields, *([network.code] if network.code else [])]
    if any(not isinstance(body.get(name), str) or not body[name] for name in needed):
        raise Refused(WRONG_FIELDS)
    number = str(body[network.fields[0]])
    if not number.isdigit() or number.startswith(network.dial):
        raise Refused(no(f"Désolé, vous devez fournir un numéro valide {network.numbers}."))
    return network.dial + number, str(body[network.fields[-1]])


def check_invoice(body: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]]:
    """The amount in hundredths, and the `invoice`. Raises Refused."""
    invoice, store = body.get("invoice"), body.get("store")
    if not isinstance(invoice, dict) or not isinstance(store, dict) or not store.get("name"):
        raise Refused(refusal("1001", "Invalid Store or Invoice"))
    amount = invoice.get("total_amount")
    # Its own Python client adds up the items as 1000.0.
    whole = int(amount) if isinstance(amount, float) and amount.is_integer() else amount
    if not isinstance(whole, int) or isinstance(whole, bool):
        raise Refused(refusal("4003", "Total Amount must be a number"))
    if whole < MIN_AMOUNT:
        raise Refused(refusal("4003", f"Minimum checkout amount is {MIN_AMOUNT}"))
    return whole * 100, invoice


def check_payout(body: Mapping[str, Any]) -> tuple[str, str, int]:
    """The operator, the number as digits with its country code, and the amount in hundredths. Raises Refused."""
    operator, alias, amount = (
        PAYOUTS.get(str(body.get("withdraw_mode"))),
        str(body.get("account_alias")),
        body.get("amount"),
    )
    if operator is None:
        raise Refused(refusal("1001", "withdraw_mode not supported"))
    if not isinstance(amount, int) or isinstance(amount, bool) or amount < MIN_AMOUNT:
        raise Refused(refusal("4003", f"amount must not be a decimal, nor below {MIN_AMOUNT}"))
    if not alias.isdigit() or alias.startswith(_DIALS[operator]):
        raise Refused(refusal("4004", "Désolé, vous devez fournir un numéro valide."))
    return operator, _DIALS[operator] + alias, amount * 100


def network_of(operator: str) -> str:
    """The `payment_method` of an operator: its name with underscores."""
    named = {network.operator: name for name, network in NETWORKS.items()}
    return named.get(operator, operator).replace("-", "_")


def _digest(made: Mapping[str, Any]) -> str:
    """`hash`, the same in every message."""
    return hashlib.sha512(made["master_key"].encode()).hexdigest()


def invoice_payload(invoice: Mapping[str, Any], tx: Transaction | None, status: str) -> dict[str, Any]:
    """`tx`: the charge of the invoice; None as long as there is none."""
    amount = units(invoice["amount"] if tx is None else tx.stated_amount)
    facts = {
        "token": invoice["token"],
        "items": {},
        "taxes": {},
        "total_amount": amount,
        "total_amount_without_fees": amount,
        "description": invoice["description"],
    }
    if amount is None:
        del facts["total_amount"], facts["total_amount_without_fees"]
    payload = answer("00", "Transaction Found", hash=_digest(invoice))
    payload |= {
        "invoice": facts,
        "custom_data": invoice["custom_data"] or [],
        "actions": invoice["actions"],
        "mode": invoice["mode"],
        "status": status,
        "fail_reason": "",
    }
    if tx is not None:
        number = (tx.phone or "").removeprefix(_DIALS.get(tx.operator, ""))
        payload["customer"] = {
            "name": "Awa Diop",
            "phone": number,
            "email": "awa@example.com",
            "payment_method": network_of(tx.operator),
        }
    if tx is not None and tx.state == SUCCEEDED:
        payload["receipt_url"] = f"https://paydunya.example/receipt/{invoice['token']}.pdf"
        payload["provider_reference"] = str(9_000_000_000 + tx.id)
    return payload


def payout_payload(
    token: str, payout: Mapping[str, Any], tx: Transaction | None, now: Instant, claim: str | None = None
) -> dict[str, Any]:
    """`tx`: what its submission made; None before. `claim`: the status of a callback, which may be untrue."""
    amount = payout["amount"] if tx is None else tx.stated_amount
    payload: dict[str, Any] = {
        "status": claim or ("created" if tx is None else PAYOUT_STATES[tx.state]),
        "token": token,
        "withdraw_mode": payout["withdraw_mode"],
        "updated_at": f"{to_datetime(now):%d/%m/%Y %H:%M:%S}",
    }
    if amount is not None:
        payload["amount"] = f"{amount // 100}.00"
    if tx is not None:
        payload |= {"disburse_id": tx.client_ref, "transaction_id": f"TFA-TX-{tx.id:06d}", "disburse_tx_id": tx.id}
    return payload | ({"hash": _digest(payout)} if claim else {})


def php_form(payload: Mapping[str, Any], prefix: str = "data") -> list[tuple[str, str]]:
    """The fields of a form in PHP's way of writing: `data[invoice][token]`."""
    fields: list[tuple[str, str]] = []
    for name, value in payload.items():
        if isinstance(value, Mapping):
            fields += php_form(value, f"{prefix}[{name}]")
        elif not isinstance(value, list):
            fields.append((f"{prefix}[{name}]", str(value)))
    return fields


def callback_body(payload: Mapping[str, Any], form: int) -> tuple[bytes, str]:
    """The body and its content type, in one of the forms that clients saw."""
    as_form, as_json = "application/x-www-form-urlencoded", "application/json"
    match form % 4:
        case 1:
            return json_bytes({"data": payload}), as_json
        case 2:
            return urlencode({"data": json_bytes(payload).decode()}).encode(), as_form
        case 3:
            return json_bytes(payload), as_json
    return urlencode(php_form(payload)).encode(), as_form
