"""How a payment or a refund is joined with its late result (`domain/late_results.py`)."""

from sqlalchemy import ColumnElement, FromClause, and_

from guichet.db.tables import late_results
from guichet.domain.payments import SubjectType


def late_result_of(subject_type: SubjectType, subjects: FromClause) -> ColumnElement[bool]:
    """`subjects` are payments or refunds, or some of them; a subject has one late result at most."""
    return and_(
        late_results.c.merchant_id == subjects.c.merchant_id,
        late_results.c.subject_type == subject_type,
        late_results.c.subject_id == subjects.c.id,
    )
