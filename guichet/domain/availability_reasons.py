"""Why an operator is degraded or down: rows of `operator_availability` keep it, `guichet operators` and the back office
show it. `availability_reason`: what was wrong before an operator began to recover."""

from guichet.domain.messages import Code


class AvailabilityReason(Code):
    FAILURES = "availability_reason.failures", "failures", "attempts", "minutes"
    RECOVERING = "availability_reason.recovering", "availability_reason"
    STATED = "availability_reason.stated", "account"
