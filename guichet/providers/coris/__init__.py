"""Coris Money (docs/providers/coris.md)."""

from typing import Final

from guichet.providers.coris.provider import OPERATOR, Coris
from guichet.providers.shared.provider_type import ProviderType

TYPE: Final = ProviderType(
    build=Coris,
    required=("client_id", "client_secret", "code_pv"),
    optional=("code_pays",),
    operators=lambda _: (OPERATOR,),
    callbacks="none",
    sandbox_hosts=("testbed.corismoney.com",),
)
