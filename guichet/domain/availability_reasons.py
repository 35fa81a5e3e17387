"""Why an operator is degraded or down: rows of `operator_availability` keep it, `guichet operators` and the back office
show it. `availability_reason`: what was wrong before an operator began to recover."""

from guichet.domain.sentences import Sentences


class AvailabilityReason(Sentences):
    FAILURES = "{failures:number} of {attempts:number} initiations failed technically within {minutes:number} minutes"
    RECOVERING = "recovering: {availability_reason}"
    STATED = "{account:word} says so"
