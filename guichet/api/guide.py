"""The introduction of the OpenAPI document: what is true of every endpoint, in French, in Markdown with tables.

Each number in it comes from the code that enforces it.
"""

from collections.abc import Sequence
from typing import Final

from guichet.api.http import DEFAULT_PER_PAGE, MAX_PER_PAGE
from guichet.clock import MINUTE, SECOND
from guichet.domain.catalogue import MAX_DEBIT, MIN_DEBIT
from guichet.domain.errors import BY_CODE, ConflictReason
from guichet.domain.events import ANSWER_TIMEOUT, MAX_ATTEMPTS, RETRY_DELAYS, SIGNATURE_AGE
from guichet.domain.failures import FailureCode
from guichet.domain.key_access import KEY_SCOPES
from guichet.domain.money import DECIMALS, MAX_AMOUNT, MIN_AMOUNT, french
from guichet.domain.sandbox_scenarios import TEST_SCENARIOS, TestScenario
from guichet.providers.sandbox.provider import EXPIRES_AFTER, SUFFIXES, VALIDATES_AFTER
from guichet.schemas.validation import MAX_BODY, MAX_DEPTH

_UNUSED: Final = "réservé : aucune opération de cette version ne l'émet"

#: Error code → what it means in general; the message of an error is about one request.
MEANINGS: Final = {
    "unauthorized": "clé absente, invalide ou révoquée, ou en-tête mal formé",
    "key_expired": "clé dont la date d'expiration est passée",
    "merchant_inactive": "compte marchand non actif ; clés de production seulement",
    "address_not_allowed": "clé de production limitée à d'autres adresses IP",
    "insufficient_scope": "clé restreinte, sans la portée que demande cette opération",
    "invalid_request": "corps illisible, champ manquant ou hors bornes, moyen de paiement inconnu ou inactif, total "
    "débité hors bornes, code ou identité manquants",
    "payment_failed": "l'opérateur a refusé ; le paiement est enregistré `failed`, `reference` le nomme et `reason` "
    "dit pourquoi",
    "insufficient_funds": f"le solde ne couvre pas un retrait ({_UNUSED})",
    "payout_failed": f"un versement a été refusé ({_UNUSED})",
    "payout_limit_exceeded": f"le plafond de retrait est atteint ({_UNUSED})",
    "not_found": "ressource absente, d'un autre compte ou de l'autre environnement, sans distinction",
    "conflict": "l'état l'interdit : paiement non réussi, déjà remboursé ou contesté, ou solde hors de `Actif` ; "
    "`reason` dit lequel",
    "method_not_allowed": "l'adresse existe, mais pas avec cette méthode HTTP",
    "rate_limited": "trop de requêtes depuis cette adresse IP",
    "server_error": "incident de notre côté ; avec `reference`, ce paiement est enregistré `failed` et rien n'a "
    "été débité",
}
#: What the `reason` of a 409 means; that of a 402 is a code of `failure`.
CONFLICTS: Final[dict[ConflictReason, str]] = {
    "already_refunded": "le paiement a déjà son remboursement, dont `reference` donne la référence",
    "not_refundable": "le paiement n'est pas `succeeded`",
    "wallet_not_active": "votre solde est `Gelé` ou `Fermé`",
    "dispute_open": "le client conteste le paiement auprès de sa banque, qui a repris l'argent : répondez au litige",
    "dispute_lost": "la banque a déjà rendu l'argent au client",
    "link_used_up": "le lien de paiement n'a plus d'utilisation libre ; seules ses pages le rencontrent",
    "idempotency_key_reused": "cette `Idempotency-Key` a déjà servi à une autre requête : prenez-en une nouvelle",
    "delivery_pending": "cet envoi a encore des tentatives à faire",
    "endpoint_disabled": "aucun point de terminaison n'est configuré : enregistrez une adresse d'abord",
    "session_pending": "un paiement de la session, dont `reference` donne la référence, est encore `pending`",
    "session_completed": "la session est payée, par le paiement dont `reference` donne la référence",
}
#: What each code of `failure` means to a merchant.
FAILURES: Final[dict[FailureCode, str]] = {
    "insufficient_funds": "le solde du client ne suffit pas",
    "rejected_by_customer": "le client a refusé ou annulé",
    "expired": "le client n'a pas validé à temps",
    "limit_reached": "un plafond du compte du client, ou de l'opérateur, est atteint",
    "operator_unavailable": "l'opérateur, ou notre liaison avec lui, ne fonctionne pas",
    "other": "autre raison : lisez `message`",
}
_RETRIES: Final = {
    402: "pas automatiquement : c'est au client de décider",
    409: "après avoir relu la ressource",
    429: "oui, après `Retry-After`",
    500: "oui, en espaçant",
}
_ENDINGS: Final = {
    "0000": ("`201`, `pending`", "le client valide aussitôt : `succeeded`"),
    "0001": ("`402 payment_failed`", "refusé d'emblée : `failed`"),
    "0002": ("`201`, `pending`", "le client ne valide jamais : `pending`"),
    "0003": ("`201`, `pending`", "le client refuse : `failed`"),
}
_SCENARIOS: Final[dict[TestScenario, str]] = {
    "refund_failed": "le remboursement est répondu `pending`, puis échoue : `refund.failed`",
    "refund_pending": "le remboursement est répondu `pending` et le reste",
    "redirect": "`redirect_url` mène à une page où vous acceptez ou refusez, à la place de celle de l'opérateur",
    "wrong_otp": "`402 payment_failed`, comme en production pour un code de validation faux",
    "expired": f"`failed` après {EXPIRES_AFTER // MINUTE} minutes : le client n'a pas validé à temps",
    "payment_link": "le paiement et ses webhooks ont l'air d'un paiement reçu par un lien",
    "amount_mismatch": "l'opérateur annonce un autre montant : un incident, et le paiement reste `pending`",
    "webhook_twice": f"chaque webhook revient {RETRY_DELAYS[0]} secondes après votre réponse, avec le même `id`",
    "webhook_out_of_order": "`payment.succeeded` et `refund.succeeded` arrivent une minute plus tard que prévu",
}


def introduction(rate_limit: int) -> str:
    """`rate_limit` is in requests a minute from one address; 0 means no limit."""
    return "\n\n".join(
        [
            "Guichet débite vos clients par Mobile Money (Bénin, Burkina Faso, Côte d'Ivoire, Mali, Sénégal, Togo, "
            "Congo) et par carte (VISA, MASTERCARD). Vous recevez `amount` ; les frais s'y ajoutent et sont payés par "
            "le client, débité de `total_amount`.",
            _requests(),
            _amounts(),
            _keys(),
            _sandbox(),
            _lists_and_limits(rate_limit),
            _errors(),
            _webhooks(),
            _stability(),
        ]
    )


def _requests() -> str:
    return (
        "## Requêtes et réponses\n\n"
        'Toute réponse est en JSON : `{"success": true, "data": …}`, avec `meta` pour une liste paginée, ou '
        '`{"success": false, "error": …}`.\n\n'
        f"- Un corps est un objet JSON en UTF-8 de {MAX_BODY // 1024} Kio et {MAX_DEPTH} niveaux "
        "d'imbrication au plus.\n"
        '- Les types sont stricts : `5000`, pas `"5000"`. `null` équivaut à un champ absent ; un champ inconnu est '
        "ignoré, sauf ceux dont on attendrait qu'un autre montant bouge (`total_amount`, `fees_included`, l'`amount` "
        "d'un remboursement…).\n"
        "- Toutes les fautes d'un corps sont signalées à la fois, dans `error.details`.\n"
        "- Les dates sont en temps universel : `2026-11-20T10:15:30.123456Z`.\n"
        "- `warnings`, à côté de `data`, dit ce qui mérite votre attention dans une requête acceptée ; `meta.ignored` "
        "nomme les paramètres de l'adresse qui n'ont pas été lus."
    )


def _amounts() -> str:
    whole = " et ".join(code for code, places in DECIMALS.items() if not places)
    split = " et ".join(code for code, places in DECIMALS.items() if places)
    return (
        "## Montants\n\n"
        "Les montants sont dans l'unité principale de la devise : `5000` signifie "
        f"{french(5000_00, 'XOF')}. {whole} n'ont pas de décimales ; {split} en acceptent deux. Un `amount` va de "
        f"{whole_amount(MIN_AMOUNT)} à "
        f"{whole_amount(MAX_AMOUNT)} ; le total débité d'un paiement Mobile Money, de {whole_amount(MIN_DEBIT)} à "
        f"{whole_amount(MAX_DEBIT)}. Les cartes ne connaissent pas cette seconde borne."
    )


def _keys() -> str:
    return (
        "## Clés et environnements\n\n"
        "Chaque requête porte `Authorization: Bearer <clé secrète>`. La clé choisit l'environnement, et rien d'autre "
        "ne change : `sk_test_…` pour le test, `sk_live_…` pour la production. Les deux ne se voient pas. Une clé de "
        "production demande un compte actif, une clé de test non.\n\n"
        "Une clé est complète, ou restreinte à des portées : "
        f"{', '.join(f'`{scope}`' for scope in KEY_SCOPES)}. Chaque opération dit celle qu'elle demande ; sans elle, "
        "la réponse est `403 insufficient_scope`. Une clé de production peut aussi n'être acceptée que depuis "
        "certaines adresses IP ; depuis une autre, la réponse est `403 address_not_allowed`. Les deux se choisissent "
        "à la création de la clé."
    )


def _sandbox() -> str:
    rows = [(f"`{ending}`", *_ENDINGS[ending]) for ending in SUFFIXES]
    scenarios = [(f"`{scenario}`", _SCENARIOS[scenario]) for scenario in TEST_SCENARIOS]
    seconds = VALIDATES_AFTER // SECOND
    rows.append(("autre", "`201`, `pending`", f"le client valide après {seconds} secondes : `succeeded`"))
    return (
        "## Environnement de test\n\n"
        "Aucun opérateur n'est contacté, aucun argent ne bouge. Les quatre derniers chiffres de `phone_number` "
        "décident :\n\n"
        f"{_table(('Fin du numéro', 'Réponse', 'Issue'), rows)}\n\n"
        "Une carte mène à une page qui propose deux choix, réussite ou refus. Un remboursement est répondu déjà "
        "`succeeded`.\n\n"
        "Le champ `test_scenario` de `POST /payments`, refusé avec une clé de production, atteint ce qu'aucun numéro "
        "n'atteint :\n\n"
        f"{_table(('Scénario', 'Ce qui arrive'), scenarios)}"
    )


def _lists_and_limits(rate_limit: int) -> str:
    limited = (
        f"Au-delà de **{rate_limit} requêtes par minute** depuis une adresse IP, la réponse est `429 rate_limited`, "
        "avec `Retry-After`. Toute réponse porte `X-RateLimit-Remaining`."
        if rate_limit
        else "Ce service ne limite pas le nombre de requêtes."
    )
    return (
        "## Listes et limites\n\n"
        f"Une liste paginée va du plus récent au plus ancien ; `per_page` va de 1 à {MAX_PER_PAGE} "
        f"({DEFAULT_PER_PAGE} par défaut), `page` part de 1. Pour tout parcourir, envoyez plutôt `after`, la référence "
        "du dernier élément reçu, avec un `to` figé une minute dans le passé au moins : rien n'est sauté ni répété "
        f"pendant que des paiements arrivent ou changent d'état. {limited}"
    )


def _errors() -> str:
    rows = [
        (f"`{code}`", str(error.status), MEANINGS[code], _RETRIES.get(error.status, "non"))
        for code, error in BY_CODE.items()
    ]
    return (
        "## Erreurs\n\n"
        "Décidez sur `error.code`. `error.message` est une phrase pour les humains, qui peut changer. "
        "`error.details`, propre aux erreurs de validation, donne les messages de chaque champ.\n\n"
        f"{_table(('Code', 'HTTP', 'Sens', 'Réessayer'), rows)}\n\n"
        "Un paiement `failed` dit pourquoi dans `failure`, à la lecture comme dans le webhook ; un `402` le dit dans "
        "`error.reason`. `failure.message` est une phrase que vous pouvez montrer au client.\n\n"
        f"{_table(('`failure.code`', 'Sens'), [(f'`{code}`', meaning) for code, meaning in FAILURES.items()])}\n\n"
        "Un `409` dit dans `error.reason` quelle règle l'interdit :\n\n"
        f"{_table(('`error.reason`', 'Sens'), [(f'`{code}`', meaning) for code, meaning in CONFLICTS.items()])}\n\n"
        "Un `405` donne dans `Allow` les méthodes que l'adresse accepte. "
        "Un délai dépassé sur `POST /payments` ne prouve pas que le paiement n'existe pas : rejouez avec le même "
        "`external_id`, ou la même `Idempotency-Key`, sans quoi le client peut être débité deux fois. Traitez un code "
        "inconnu comme un incident passager."
    )


def _webhooks() -> str:
    delays = ["immédiate", *(f"{_duration(seconds)} après l'échec de la précédente" for seconds in RETRY_DELAYS)]
    rows = [(str(number), delay) for number, delay in enumerate(delays, 1)]
    return (
        "## Signature des webhooks\n\n"
        "Guichet appelle votre adresse par POST à chaque changement d'état. Pour vérifier l'appel :\n\n"
        "1. Séparez `X-Service-Signature` en `t` et `v1`.\n"
        "2. Formez le texte : `t`, un point, puis le corps **brut**, octet pour octet.\n"
        "3. Calculez son HMAC SHA-256 avec le secret entier (`whsec_` compris), en hexadécimal minuscule.\n"
        "4. Comparez à `v1` en temps constant.\n"
        f"5. Refusez un `t` à plus de {SIGNATURE_AGE // 60} minutes, avant comme après.\n\n"
        "Les en-têtes `webhook-id`, `webhook-timestamp` et `webhook-signature` sont ceux de Standard Webhooks : leur "
        "clé est le secret sans `whsec_`, décodé du base64.\n\n"
        f"Répondez un statut 2xx en moins de {ANSWER_TIMEOUT:.0f} secondes. Tout autre statut, une redirection ou un "
        f"silence est un échec. Il y a {MAX_ATTEMPTS} tentatives au plus :\n\n"
        f"{_table(('Tentative', 'Délai'), rows)}\n\n"
        "Une notification peut arriver plusieurs fois : son `id` est stable. Acceptez un événement inconnu sans erreur."
    )


def _stability() -> str:
    return (
        "## Stabilité\n\n"
        "La version est dans l'adresse. La v1 peut gagner des champs, des paramètres facultatifs, des événements et "
        "des codes d'erreur ; rien n'y est retiré ni renommé. Ignorez ce que vous ne connaissez pas."
    )


def _table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def whole_amount(hundredths: int) -> str:
    """A whole amount in the main unit, with narrow no-break spaces between thousands."""
    return f"{hundredths // 100:,}".replace(",", "\u202f")


def _duration(seconds: int) -> str:
    minutes, rest = divmod(seconds, 60)
    if rest or not minutes:
        return f"{seconds} secondes"
    return f"{minutes} minute{'s' if minutes > 1 else ''}"
