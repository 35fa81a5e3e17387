"""Types of row ids, one for each table, so that mypy refuses the id of one table where another's is expected."""

from typing import NewType

MerchantId = NewType("MerchantId", int)
PaymentId = NewType("PaymentId", int)
RefundId = NewType("RefundId", int)
LinkId = NewType("LinkId", int)
DeliveryId = NewType("DeliveryId", int)
ApiKeyId = NewType("ApiKeyId", int)
PaymentModeId = NewType("PaymentModeId", int)
IncidentId = NewType("IncidentId", int)
DisputeId = NewType("DisputeId", int)
LateResultId = NewType("LateResultId", int)
LateReturnId = NewType("LateReturnId", int)
ApprovalId = NewType("ApprovalId", int)
