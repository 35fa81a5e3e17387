"""Wave's wallets: a key belongs to one wallet in one country (docs/providers/wave.md, "Addresses and credentials")."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from guichet_simulator.base import SimulatedProvider
from guichet_simulator.http_helpers import Refused, credential, json_response
from guichet_simulator.models import Kind, Transaction
from guichet_simulator.store import undocumented_order
from guichet_simulator.wave.payloads import error


class Wallet(NamedTuple):
    """`dial`: what the numbers of its country begin with."""

    name: str
    dial: str
    currency: str = "XOF"

    def serves(self, mobile: str) -> bool:
        """`mobile` without its `+`."""
        return mobile.startswith(self.dial)


_WALLETS: Final = {
    wallet.name: wallet
    for wallet in (
        Wallet("wave_sn", "221"),
        Wallet("wave_ci", "225"),
        Wallet("wave_bf", "226"),
        Wallet("wave_ml", "223"),
    )
}
#: The wallet of a key that names no country, which no real one does: it serves every country.
_NO_COUNTRY: Final = Wallet("wave", "")


def wallet_of(request: Request) -> Wallet:
    """The wallet of the request's key: `wave_sn_prod_…` is a key of Sénégal."""
    country = "_".join((credential(request) or "").split("_")[:2])
    return _WALLETS.get(country, _NO_COUNTRY)


def find_own(wave: SimulatedProvider, request: Request, kind: Kind, resource: str, missing: str) -> Transaction:
    """What the path names and the wallet of the request's key made. Raises Refused with the code `missing`."""
    tx = wave.ctx.find(wave.name, kind, request.path_params["id"], resource)
    if tx is None or tx.operator != wallet_of(request).name:
        raise Refused(error(404, missing))
    return tx


async def search(
    wave: SimulatedProvider,
    request: Request,
    kind: Kind,
    resource: str,
    payload: Callable[[Transaction], dict[str, Any]],
) -> Response:
    """What was made under the client's reference."""
    wave.ctx.apply_due_decisions()
    where = "provider = 'wave' AND kind = ? AND resource = ? AND operator = ? AND client_ref = ?"
    reference = request.query_params.get("client_reference")
    found = wave.ctx.store.select(where, kind, resource, wallet_of(request).name, reference)
    rows = [payload(tx) for tx in undocumented_order(found)]
    forced = wave.ctx.forced_scenario(wave.name, "status")
    return await wave.respond("status", forced, lambda: json_response({"result": rows}))
