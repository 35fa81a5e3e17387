"""Why an act of the staff is refused. Commands and pages say it in their own words.

AdministrationError
├── UnknownOperator     no payment mode has this operator code
├── NewerMerchant       another one was created since the person looked: by the same form, or by a colleague
├── ClosedForEverybody  a mode that is closed for everybody cannot be opened for one merchant
└── DocumentRefused     `fault` says why
"""

from typing import Literal

DocumentFault = Literal["empty", "too_large", "wrong_type", "too_many", "already_there"]


class AdministrationError(Exception):
    pass


class UnknownOperator(AdministrationError):
    pass


class NewerMerchant(AdministrationError):
    pass


class ClosedForEverybody(AdministrationError):
    """The message is the operator's code as the catalogue writes it."""


class DocumentRefused(AdministrationError):
    def __init__(self, fault: DocumentFault) -> None:
        self.fault = fault
        super().__init__(fault)
