"""`guichet wallet …`: balances of merchants, and freezing a wallet."""

import unicodedata
from typing import Annotated

import typer

from guichet.back_office import merchants
from guichet.back_office.money_acts import wallet_subject
from guichet.cli.approvals import ask_for_approval
from guichet.cli.arguments import Json, MerchantId, OptionalBy, OptionalEvidence, WalletStatusValue, actor
from guichet.cli.console import print_json, print_table, show_done
from guichet.cli.runner import get_merchant, run
from guichet.clock import iso
from guichet.context import AppContext
from guichet.db.engine import require
from guichet.domain.approvals import ActRequest
from guichet.domain.money import Currency, plain
from guichet.domain.posting_rules import ACTIVE, WALLET_STATUSES, Wallet, WalletStatus
from guichet.ledger import wallets
from guichet.schemas.wallet import balance_object

app = typer.Typer(no_args_is_help=True, help="Merchants' wallets.")


def _status(text: str) -> WalletStatus:
    """Accepts composed and decomposed accents: keyboards and systems differ."""
    status = unicodedata.normalize("NFC", text)
    if status not in WALLET_STATUSES:
        raise typer.BadParameter(f"one of {', '.join(WALLET_STATUSES)} is expected.")
    return status


@app.command(epilog="Example: `guichet wallet show 1`")
def show(merchant_id: MerchantId, as_json: Json = False) -> None:
    """Show a merchant's wallets, in both environments."""

    async def work(ctx: AppContext) -> list[Wallet]:
        await get_merchant(ctx.db, merchant_id)
        return await wallets.wallets_of(ctx.db, merchant_id)

    rows = run(work)
    if as_json:
        print_json({"merchant_id": merchant_id, "wallets": [_described(row) for row in rows]})
    else:
        print_table(
            ("Environment", "Currency", "Balance", "Status", "Last movement"),
            [(row.env, row.currency, plain(row.balance), row.status, iso(row.updated_at)) for row in rows],
        )


@app.command(epilog="Example: `guichet wallet status 1 XOF Gelé`")
def status(
    merchant_id: MerchantId,
    currency: Annotated[Currency, typer.Argument(case_sensitive=False, metavar="CURRENCY")],
    new_status: Annotated[WalletStatusValue, typer.Argument(parser=_status, metavar="|".join(WALLET_STATUSES))],
    evidence: OptionalEvidence = None,
    by: OptionalBy = None,
    as_json: Json = False,
) -> None:
    """Freeze, close or reopen a live wallet. Unless it is `Actif`, new live payments and refunds are refused, and
    credits of payments that customers have already validated are suspended until it is `Actif` again.
    Test wallets are always `Actif`. Another person approves in the console before a wallet is `Actif` again.
    """
    if new_status == ACTIVE:
        act_request = ActRequest("wallet.reopen", wallet_subject(merchant_id, currency), {}, evidence or "")
        ask_for_approval(act_request, by, as_json=as_json)
        return

    async def work(ctx: AppContext) -> Wallet:
        await get_merchant(ctx.db, merchant_id)
        await merchants.change_status(ctx.db, ctx.clock, merchant_id, currency, new_status, actor(by), evidence or "")
        return require(await wallets.wallet(ctx.db, merchant_id, "live", currency))

    wallet = run(work, message=None)
    sentence = f"The live {currency} wallet of merchant {merchant_id} is {wallet.status}: {plain(wallet.balance)}."
    show_done({**_described(wallet), "merchant_id": merchant_id}, sentence, as_json=as_json)


def _described(wallet: Wallet) -> dict[str, object]:
    return {"env": wallet.env, **balance_object(wallet)}
