"""What can be refused to a person who uses the console. Pages say it in the person's language.

AccountError
├── SignInRefused      the address, the password or the account; it is never said which
├── TooManyAttempts    of this address, of this browser or, by unknown browsers, for this account; `retry_after` in
│                      seconds, `kind`: what was counted (`accounts/sign_in.py`)
├── TooBusy            more sign-ins at once than this machine can check
├── CodeRefused        a one-time or recovery code, or the answer of a passkey, that is wrong or was used
├── TooManyPasskeys    the account has as many as it may have
├── LinkUnusable       a link that expired, was used or was replaced
├── PasswordWeak       `weakness` says why
├── Forbidden          the role does not allow it
├── SecondFactorNeeded a fresh second factor is asked for first
├── LastOwner          the last owner of a merchant, or the last admin, cannot be removed
└── OnBothSides        nobody is in a merchant's team and in the staff
"""


class AccountError(Exception):
    pass


class SignInRefused(AccountError):
    pass


class TooManyAttempts(AccountError):
    def __init__(self, retry_after: int, kind: str = "") -> None:
        self.retry_after = retry_after
        self.kind = kind
        super().__init__(retry_after, kind)


class TooBusy(AccountError):
    pass


class CodeRefused(AccountError):
    pass


class TooManyPasskeys(AccountError):
    pass


class LinkUnusable(AccountError):
    pass


class PasswordWeak(AccountError):
    def __init__(self, weakness: str) -> None:
        self.weakness = weakness
        super().__init__(weakness)


class Forbidden(AccountError):
    pass


class SecondFactorNeeded(AccountError):
    pass


class LastOwner(AccountError):
    pass


class OnBothSides(AccountError):
    pass
