"""Second factors: one-time codes of a telephone (TOTP, RFC 6238) and recovery codes.

The seed is encrypted, as it must be read again; recovery codes are hashed. Each code counts once.
"""

import secrets
from typing import Final

import pyotp
from sqlalchemy import bindparam, delete, func, insert, select, update

from guichet.accounts import passkeys, users
from guichet.accounts.errors import CodeRefused
from guichet.clock import SECOND, Clock, Instant
from guichet.context import AppContext
from guichet.db.engine import Reader, Transaction, Writer, require
from guichet.db.sql_functions import equal, params
from guichet.db.tables import recovery_codes
from guichet.domain.accounts import User, UserId, secret_hash
from guichet.merchants.vault import Vault

#: Seconds of one code, and codes before and after the present one that are accepted: clocks of telephones differ.
_PERIOD: Final = 30
_WINDOW: Final = 1
ISSUER: Final = "Guichet"
RECOVERY_CODES: Final = 10
#: Without letters and digits that look alike. 16 of 32 characters are 80 bits: short enough to be copied, and with the
#: person as salt too many to be tried out on what is stored.
_ALPHABET: Final = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"
_CODE_LENGTH: Final = 16
_GROUP: Final = 4

_INSERT: Final = insert(recovery_codes).values(params("user_id", "hash", "created_at"))
_THIS_USER: Final = recovery_codes.c.user_id == bindparam("user")
_REMOVE: Final = delete(recovery_codes).where(_THIS_USER)
_USE: Final = (
    update(recovery_codes)
    .where(*equal(recovery_codes, user_id="user", hash="code_hash"), recovery_codes.c.used_at.is_(None))
    .values(used_at=bindparam("now"))
    .returning(recovery_codes.c.user_id)
)
_LEFT: Final = select(func.count()).select_from(recovery_codes).where(_THIS_USER, recovery_codes.c.used_at.is_(None))


async def begin_totp(ctx: AppContext, user: User) -> str:
    """A new seed, in base 32, for somebody who has none that counts. It counts once a code of it was given
    (`check_totp`). Raises CodeRefused for somebody who has one by now."""
    seed = pyotp.random_base32()
    if not await users.begin_totp(ctx.db, user.id, ctx.vault.encrypt(seed), ctx.clock.now()):
        raise CodeRefused
    return seed


def totp_address(seed: str, user: User) -> str:
    """The `otpauth:` address that a telephone reads from a QR code."""
    return pyotp.TOTP(seed).provisioning_uri(name=user.email, issuer_name=ISSUER)


async def check_totp(
    ctx: AppContext, user: User, code: str, *, confirms: bool = False, tx: Transaction | None = None
) -> None:
    """Uses a one-time code. `confirms`: it is the first one, which proves that the telephone has the seed. `tx`: in
    this transaction. Raises CodeRefused."""
    if user.totp_secret is None or not (user.totp_confirmed or confirms):
        raise CodeRefused
    step = _step_of(ctx.vault.decrypt(user.totp_secret), code, ctx.clock.now())
    taken = step is not None and await users.take_totp_step(
        tx or ctx.db, user.id, user.totp_secret, step, confirms=confirms
    )
    if not taken:
        raise CodeRefused


async def prepare_new_telephone(ctx: AppContext, user: User) -> str:
    """The seed of another telephone, in base 32; the one before counts until a code of this one was given."""
    seed = pyotp.random_base32()
    await users.prepare_totp(ctx.db, user.id, ctx.vault.encrypt(seed), ctx.clock.now())
    return seed


async def change_telephone(clock: Clock, vault: Vault, tx: Transaction, user: User, code: str) -> None:
    """From here on the new telephone counts. Raises CodeRefused."""
    if user.next_totp_secret is None:
        raise CodeRefused
    now = clock.now()
    step = _step_of(vault.decrypt(user.next_totp_secret), code, now)
    if step is None or not await users.replace_totp(tx, user.id, user.next_totp_secret, step, now):
        raise CodeRefused


def step_at(now: Instant) -> int:
    """The number of the code that telephones show now."""
    return now // (_PERIOD * SECOND)


def _step_of(seed: str, code: str, now: Instant) -> int | None:
    """The step whose code this is, among the present one and its neighbours."""
    digits = "".join(code.split())
    if len(digits) != 6 or not (digits.isascii() and digits.isdigit()):
        return None
    totp, present = pyotp.TOTP(seed), step_at(now)
    steps = range(present - _WINDOW, present + _WINDOW + 1)
    # All are compared, so that the time taken says nothing.
    same = [step for step in steps if secrets.compare_digest(totp.generate_otp(step), digits)]
    return same[0] if same else None


async def new_recovery_codes(tx: Transaction, user_id: UserId, now: Instant) -> list[str]:
    """Ten new codes in place of those before. They are shown once."""
    codes = ["".join(secrets.choice(_ALPHABET) for _ in range(_CODE_LENGTH)) for _ in range(RECOVERY_CODES)]
    await tx.write(_REMOVE, user=user_id)
    await tx.write_many(
        _INSERT, [{"user_id": user_id, "hash": _stored(user_id, code), "created_at": now} for code in codes]
    )
    return ["-".join(code[at : at + _GROUP] for at in range(0, _CODE_LENGTH, _GROUP)) for code in codes]


async def use_recovery_code(db: Writer, user_id: UserId, code: str, now: Instant) -> None:
    """Raises CodeRefused when it is wrong or was used."""
    text = "".join(character for character in code.upper() if character in _ALPHABET)
    if (
        len(text) != _CODE_LENGTH
        or await db.write(_USE, user=user_id, code_hash=_stored(user_id, text), now=now) is None
    ):
        raise CodeRefused


def _stored(user_id: UserId, code: str) -> str:
    return secret_hash(f"{user_id} {code}")


async def recovery_codes_left(db: Reader, user_id: UserId) -> int:
    return int(require(await db.one(_LEFT, user=user_id))[0])


async def remove_all(tx: Transaction, user_id: UserId, now: Instant) -> None:
    """Removes the telephone, passkeys and recovery codes: they are set up again at the next sign-in."""
    await users.remove_totp(tx, user_id, now)
    await passkeys.remove_all(tx, user_id)
    await tx.write(_REMOVE, user=user_id)
