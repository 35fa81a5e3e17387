"""Wave's wallets: a key belongs to one wallet in one country (docs/providers/wave.md, "Addresses and credentials")."""

from typing import Final, NamedTuple

from starlette.requests import Request

from guichet_simulator.http_helpers import credential


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
