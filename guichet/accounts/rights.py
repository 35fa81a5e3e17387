"""Who is acting, and the check that each act makes where it is done."""

from collections.abc import Sequence

from guichet.accounts.errors import Forbidden, SecondFactorNeeded
from guichet.clock import Instant
from guichet.domain.accounts import Session, User
from guichet.domain.audit_log import CONSOLE, Actor
from guichet.domain.merchants import Environment, Merchant
from guichet.domain.records import Record
from guichet.domain.roles import (
    STEP_UP_RIGHTS,
    MerchantRight,
    MerchantRole,
    StaffRight,
    StaffRole,
    may_as_merchant,
    may_as_staff,
    needs_step_up,
)


class Person(Record, frozen=True):
    """Who is signed in."""

    user: User
    session: Session

    @property
    def actor(self) -> Actor:
        """As the audit log names them."""
        return Actor(self.user.email, CONSOLE)


class Member(Person, frozen=True):
    """A person who acts for one merchant in one environment."""

    merchant: Merchant
    role: MerchantRole
    env: Environment

    def may(self, right: MerchantRight) -> bool:
        return may_as_merchant(self.role, right, self.env)

    def require(self, right: MerchantRight, now: Instant) -> None:
        """Raises Forbidden, or SecondFactorNeeded for an act that needs a fresh one."""
        if not self.may(right):
            raise Forbidden
        if needs_step_up(right, self.env) and not self.session.factor_is_fresh(now):
            raise SecondFactorNeeded


class StaffMember(Person, frozen=True):
    """A person of the staff who acts in the back office."""

    role: StaffRole

    def may(self, right: StaffRight) -> bool:
        return may_as_staff(self.role, right)

    def require(self, right: StaffRight, now: Instant) -> None:
        """Raises Forbidden, or SecondFactorNeeded for an act that needs a fresh one."""
        if not self.may(right):
            raise Forbidden
        if right in STEP_UP_RIGHTS and not self.session.factor_is_fresh(now):
            raise SecondFactorNeeded


def staff_member(session: Session, user: User) -> StaffMember:
    """The user as one of the staff. Raises Forbidden."""
    if user.staff_role is None:
        raise Forbidden
    return StaffMember(user, session, user.staff_role)


def member(
    session: Session,
    user: User,
    memberships: Sequence[tuple[MerchantRole, Merchant]],
    merchant_id: int,
    env: Environment,
) -> Member:
    """The user as a member of this merchant's team, by the memberships read with the session (`sessions.find`).
    Raises Forbidden for a merchant of somebody else, whether it exists or not."""
    for role, merchant in memberships:
        if merchant.id == merchant_id:
            return Member(user, session, merchant, role, env)
    raise Forbidden
