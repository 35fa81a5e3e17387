"""What the people who watch the service look at and decide: incidents, approvals, payments, wallets, checks."""

from typing import Final

from guichet.console.admin.operations import (
    approvals_page,
    deliveries_page,
    doctor_page,
    incidents_page,
    payments_page,
    reconciliation_page,
    statement_page,
    treasury_page,
    wallets_page,
)
from guichet.console.sections import StaffPage

PAGES: Final[tuple[StaffPage, ...]] = (
    *incidents_page.PAGES,
    *approvals_page.PAGES,
    *payments_page.PAGES,
    *wallets_page.PAGES,
    *treasury_page.PAGES,
    *reconciliation_page.PAGES,
    *statement_page.PAGES,
    *deliveries_page.PAGES,
    *doctor_page.PAGES,
)
