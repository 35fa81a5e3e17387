"""`guichet ledger margin`: what each operator earned us."""

from guichet.bootstrap import Service
from guichet.cli.arguments import Json, Since, Until
from guichet.cli.console import console, iso_or_none, print_json, print_table
from guichet.cli.runner import run
from guichet.domain.money import Currency, plain
from guichet.ledger.margin import Margin, margins
from guichet.schemas.json_codec import number


def margin(since: Since = None, until: Until = None, as_json: Json = False) -> None:
    """Print the margin of each operator: the fees of live payments less what the providers charged.

    A provider's fee counts on the day on which its statement was compared, usually the day after the payment; what no
    statement has named is not in it. Reads every posting of the period, and none outside it.
    """

    async def work(opened: Service) -> dict[tuple[str, Currency], Margin]:
        return await margins(opened.ctx.db, since, until)

    found = run(work)
    if as_json:
        print_json(
            {
                "from": iso_or_none(since),
                "to": iso_or_none(until),
                "margins": [
                    {
                        "operator": operator,
                        "currency": currency,
                        "payments": each.payments,
                        "fees": number(each.fees),
                        "provider_fees": number(each.provider_fees),
                        "margin": number(each.margin),
                    }
                    for (operator, currency), each in found.items()
                ],
            }
        )
        return
    if not found:
        console.print("There is no live payment in this period.")
        return
    print_table(
        ("Operator", "Currency", "Payments", "Fees", "Provider fees", "Margin"),
        [
            (*key, each.payments, plain(each.fees), plain(each.provider_fees), plain(each.margin))
            for key, each in found.items()
        ],
    )
