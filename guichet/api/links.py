"""POST /payment-links, GET /payment-links, GET /payment-links/{id} (docs/contract.md, "Endpoints"). Live only."""

from functools import partial
from typing import Final

from starlette.responses import Response

from guichet.accounts import key_acts
from guichet.api.endpoint import IDEMPOTENCY_KEY, Endpoint, Parameter, paging
from guichet.api.http import Call, SuccessResponse, requested_key, requested_page
from guichet.clock import Instant, iso
from guichet.domain.errors import Conflict, InvalidRequest, NotFound
from guichet.domain.payment_links import PaymentLink, link_number
from guichet.links import repository as links
from guichet.links.links import create_link as create_link_once
from guichet.links.links import requested_link
from guichet.schemas.envelope import RequestWarning, warning
from guichet.schemas.payment_link import LinkBody, PaymentLinkObject, payment_link_object


async def create_link(call: Call) -> Response:
    """The new link, or the one that has the body's external_id already."""
    if not call.caller.livemode:
        raise InvalidRequest("Les liens de paiement n'existent qu'en production : utilisez une clé de production.")
    ctx = call.ctx
    raw = await call.body()
    new_link = requested_link(ctx.clock, ctx.settings, call.caller, raw)
    link = (await create_link_once(ctx.db, call.caller, new_link, requested_key(call, raw))).link
    return SuccessResponse(_link_object(call, link), 201, warnings=_born_expired(link, new_link.created_at))


def _born_expired(link: PaymentLink, now: Instant) -> list[RequestWarning]:
    if link.expires_at is None or now < link.expires_at:
        return []
    return [warning("link_already_expired", expires_at=iso(link.expires_at))]


async def list_links(call: Call) -> Response:
    page = requested_page(call.query)
    external_id = call.query.get("external_id")
    bounds = await page.bounds(partial(_find_link, call))
    if not call.caller.livemode:
        return SuccessResponse([], meta=page.meta(0))
    if external_id is not None:
        link = None
        if "\0" not in external_id:
            link = await links.by_external_id(call.ctx.db, call.merchant_id, "live", external_id)
        rows = [] if link is None else [link]
        return SuccessResponse([_link_object(call, row) for row in bounds.of(rows)], meta=page.meta(len(rows)))
    rows, total = await links.page(call.ctx.db, call.merchant_id, "live", bounds)
    return SuccessResponse([_link_object(call, row) for row in rows], meta=page.meta(total))


async def read_link(call: Call) -> Response:
    return SuccessResponse(_link_object(call, await _link_of_path(call)))


async def _link_of_path(call: Call) -> PaymentLink:
    link = await _find_link(call, call.path_text("id"))
    if link is None:
        raise NotFound("Aucun lien de paiement de votre compte ne porte ce numéro.")
    return link


async def _find_link(call: Call, text: str) -> PaymentLink | None:
    """The merchant's link with this id; links are live only."""
    return await links.by_id(call.ctx.db, call.merchant_id, "live", link_number(text)) if call.caller.livemode else None


async def close_link(call: Call) -> Response:
    """Closed from now on; one that has ended stays as it is."""
    link = await _link_of_path(call)
    return SuccessResponse(_link_object(call, await key_acts.close_link(call.ctx, call.caller, link)))


def _link_object(call: Call, link: PaymentLink) -> PaymentLinkObject:
    return payment_link_object(link, f"{call.ctx.settings.public_url}/pay")


_ID: Final = Parameter("id", "L'`id` numérique du lien.", where="path", sample="1")

ENDPOINTS: Final = (
    Endpoint(
        "POST",
        "/payment-links",
        create_link,
        "Créer un lien de paiement",
        "Clé de production seulement : avec une clé de test, la demande est refusée (`invalid_request`, sans "
        "`details`). Un lien ne se modifie pas ; il peut être fermé.\n\n"
        "Répéter un `external_id` rend le lien existant, aussi avec `201`, et ne crée rien. `metadata` est copié dans "
        "chaque paiement du lien et dans ses webhooks ; `payment_link` y dit de quel lien il vient.",
        PaymentLinkObject,
        201,
        body=LinkBody,
        parameters=(IDEMPOTENCY_KEY,),
        errors=(InvalidRequest, Conflict),
        requests={
            "Limité": {
                "amount": 10000,
                "description": "Cotisation 2026",
                "type": "limité",
                "max_uses": 50,
                "expires_at": "2026-12-31T23:59:59Z",
            },
            "Permanent": {"amount": 2000, "description": "Don"},
            "Rejouable, avec retour chez vous": {
                "amount": 10000,
                "description": "Cotisation 2026",
                "type": "limité",
                "max_uses": 50,
                "expires_at": "2026-12-31T23:59:59Z",
                "external_id": "cotisation-2026",
                "metadata": {"association": 7},
                "return_url": "https://boutique.example/merci",
            },
        },
    ),
    Endpoint(
        "GET",
        "/payment-links",
        list_links,
        "Lister les liens de paiement",
        "Les plus récents d'abord. La liste est toujours vide avec une clé de test.",
        PaymentLinkObject,
        shape="page",
        parameters=(
            Parameter("external_id", "Votre identifiant du lien, exactement."),
            *paging("l'`id` du dernier lien reçu"),
        ),
        errors=(InvalidRequest,),
    ),
    Endpoint(
        "GET",
        "/payment-links/{id}",
        read_link,
        "Lire un lien de paiement",
        "Toujours `404` avec une clé de test.",
        PaymentLinkObject,
        parameters=(_ID,),
        errors=(NotFound,),
    ),
    Endpoint(
        "POST",
        "/payment-links/{id}/close",
        close_link,
        "Fermer un lien de paiement",
        "Plus personne ne peut commencer à payer : `expires_at` devient l'instant présent. Un paiement déjà commencé "
        "peut encore réussir. Un lien déjà fermé reste tel qu'il est.",
        PaymentLinkObject,
        parameters=(_ID,),
        errors=(NotFound,),
    ),
)
