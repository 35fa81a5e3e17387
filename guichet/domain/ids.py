"""Ids of rows: each table numbers its own, and the types keep one table's ids from being taken for another's."""

from typing import NewType

MerchantId = NewType("MerchantId", int)
PaymentId = NewType("PaymentId", int)
RefundId = NewType("RefundId", int)
LinkId = NewType("LinkId", int)
DeliveryId = NewType("DeliveryId", int)
ApiKeyId = NewType("ApiKeyId", int)
PaymentModeId = NewType("PaymentModeId", int)
IncidentId = NewType("IncidentId", int)
