"""Our own money at providers and banks, as files for a spreadsheet."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from guichet.domain.treasury import TreasuryMovement
from guichet.exports import cells
from guichet.treasury.position import Position
from guichet.treasury.readings import Reading

PLACES: Final = ("currency", "what", "account", "wallet", "amount", "stated", "difference", "read_at")
MOVEMENTS: Final = (
    "reference",
    "kind",
    "currency",
    "amount",
    "from",
    "to",
    "status",
    "recorded_at",
    "ended_at",
)


def places_file(positions: Iterable[Position], readings: Mapping[str, Reading]) -> bytes:
    """`readings`: the last one of each place. Dates are of UTC."""
    rows: list[Sequence[object]] = []
    for position in positions:
        for name, amount in position.places():
            reading = readings.get(name.account)
            statement_cells = (cells.amount(reading.stated), cells.amount(reading.difference)) if reading else ("", "")
            read_at = cells.moment(reading.read_at) if reading else ""
            rows.append(
                (
                    position.currency,
                    name.what,
                    cells.text(name.name),
                    cells.text(name.wallet),
                    cells.amount(amount),
                    *statement_cells,
                    read_at,
                )
            )
        sides = ("owed", position.owed), ("held", position.held), ("ours", position.ours)
        rows += [(position.currency, side, "", "", cells.amount(total), "", "", "") for side, total in sides]
    return cells.csv_file(PLACES, rows)


def movements_file(movements: Iterable[TreasuryMovement]) -> bytes:
    """Dates are of UTC."""
    return cells.csv_file(
        MOVEMENTS,
        (
            (
                movement.reference,
                movement.kind,
                movement.currency,
                cells.amount(movement.amount),
                cells.text(movement.destination),
                cells.text(movement.source),
                movement.status,
                cells.moment(movement.recorded_at),
                cells.moment(movement.ended_at),
            )
            for movement in movements
        ),
    )
