"""What browsers are asked about passkeys, and whether an answer is genuine: calls of the `webauthn` library.

Importing it takes 0.4 s of processor time. `passkeys.py` imports this module in a thread, when somebody first uses a
passkey."""

from collections.abc import Sequence
from typing import Final

import webauthn
from webauthn.helpers import base64url_to_bytes, bytes_to_base64url, structs
from webauthn.helpers.exceptions import WebAuthnException

from guichet.accounts.errors import CodeRefused
from guichet.domain.accounts import Passkey, User
from guichet.domain.records import Record

#: What the library raises about hostile answers.
_FAULTS: Final = (WebAuthnException, ValueError, KeyError, TypeError, RecursionError)


class Site(Record, frozen=True):
    """What a passkey belongs to: `host` is the RP ID, `origin` what browsers write into their answers."""

    host: str
    origin: str
    name: str = "Guichet"

    def creation_options(self, user: User, challenge: bytes, passkeys: Sequence[Passkey]) -> str:
        """The JSON for `navigator.credentials.create`. No device makes a second key beside one of `passkeys`."""
        options = webauthn.generate_registration_options(
            rp_id=self.host,
            rp_name=self.name,
            user_id=str(user.id).encode(),
            user_name=user.email,
            user_display_name=user.name,
            challenge=challenge,
            authenticator_selection=structs.AuthenticatorSelectionCriteria(
                resident_key=structs.ResidentKeyRequirement.REQUIRED,
                user_verification=structs.UserVerificationRequirement.REQUIRED,
            ),
            exclude_credentials=_descriptors(passkeys),
        )
        return webauthn.options_to_json(options)

    def made_key(self, answer: str, challenge: bytes) -> tuple[str, str, int]:
        """Credential id, public key and counter of a new key. Raises CodeRefused."""
        try:
            made = webauthn.verify_registration_response(
                credential=answer,
                expected_challenge=challenge,
                expected_rp_id=self.host,
                expected_origin=self.origin,
                require_user_verification=True,
            )
        except _FAULTS as error:
            raise CodeRefused from error
        return bytes_to_base64url(made.credential_id), bytes_to_base64url(made.credential_public_key), made.sign_count

    def request_options(self, challenge: bytes, passkeys: Sequence[Passkey]) -> str:
        """The JSON for `navigator.credentials.get`: one of `passkeys`, or any key of this site if there are none."""
        options = webauthn.generate_authentication_options(
            rp_id=self.host,
            challenge=challenge,
            allow_credentials=_descriptors(passkeys),
            user_verification=structs.UserVerificationRequirement.REQUIRED,
        )
        return webauthn.options_to_json(options)

    def counter_of(self, answer: str, challenge: bytes, passkey: Passkey) -> int:
        """The counter of a key that answered. Raises CodeRefused, also when it went back: the key was copied."""
        try:
            checked = webauthn.verify_authentication_response(
                credential=answer,
                expected_challenge=challenge,
                expected_rp_id=self.host,
                expected_origin=self.origin,
                credential_public_key=base64url_to_bytes(passkey.public_key),
                credential_current_sign_count=passkey.sign_count,
                require_user_verification=True,
            )
        except _FAULTS as error:
            raise CodeRefused from error
        return checked.new_sign_count


def _descriptors(passkeys: Sequence[Passkey]) -> list[structs.PublicKeyCredentialDescriptor]:
    return [structs.PublicKeyCredentialDescriptor(id=base64url_to_bytes(passkey.credential_id)) for passkey in passkeys]
