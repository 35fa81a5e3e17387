"""Which page of the back office a check of `guichet doctor` leads to."""

from typing import Final

from guichet.console.page_request import StaffRequest
from guichet.domain.roles import StaffRight
from guichet.server.doctor.check import DoctorCheck

#: Where a check leads, by its key, and who may open that; the others are for whoever runs the machine.
_PAGES: Final[dict[str, tuple[str, StaffRight]]] = {
    "balances_with_providers": ("/wallets", "wallets.view"),
    "incidents": ("/incidents", "incidents.view"),
    "ledger_audit": ("/ledger", "ledger.audit"),
    "operators": ("/modes", "modes.view"),
    "published_heads": ("/audit-log", "audit_log.view"),
    "reconciliation": ("/reconciliation", "reconciliation.view"),
    "routes": ("/doctor/providers", "doctor.view"),
    "stuck_payments_and_refunds": ("/incidents", "incidents.view"),
    "webhook_endpoints": ("/deliveries", "deliveries.view"),
    "api_keys": ("/merchants", "merchants.view"),
}


def page_of(request: StaffRequest, check: DoctorCheck) -> str | None:
    """None where the reader may not open it, or the back office has none."""
    page = _PAGES.get(check.key)
    return request.admin_url(page[0]) if page is not None and request.may(page[1]) else None
