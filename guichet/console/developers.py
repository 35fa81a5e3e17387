"""For the developers of a merchant: the API keys of one environment, the log of their requests, and the test clock."""

from functools import partial
from typing import Annotated, Final, Literal, Self, get_args

from starlette.responses import Response

from guichet.accounts import key_management
from guichet.clock import Instant
from guichet.console.clock_form import ClockForm, change_clock, clock_view
from guichet.console.forms import Confirmed
from guichet.console.page_request import ConsoleRequest, FormFault, MerchantRequest
from guichet.domain.audit_log import ActRefused
from guichet.domain.errors import InvalidRequest
from guichet.domain.ids import ApiKeyId
from guichet.domain.key_access import (
    FULL_ACCESS,
    KEY_SCOPES,
    MOST_NETWORKS,
    KeyAccess,
    KeyScope,
    read_network,
    scope_bits,
    scopes_of,
    stored_networks,
)
from guichet.domain.merchants import ApiKey, KeyState, key_name
from guichet.merchants import api_keys, request_log
from guichet.merchants.request_log import LoggedRequest, RequestFilter
from guichet.pages.days import end_of_day, read_day
from guichet.pages.fields import Fields, Lenient, RowId, or_not_found, text
from guichet.pages.lists import ById, ListPage, Pager
from guichet.pages.views import View
from guichet.printable import printable

#: Revoked keys that the page shows.
_REVOKED: Final = 20
_REQUESTS_SHOWN: Final = 50
#: No path in the log is longer.
_LONGEST_PATH: Final = 200
_StatusClass = Literal["2", "4", "5"]


class KeyForm(Fields):
    """A key is created, ends on a day, or is revoked for ever. `after`: the newest key when the form was shown, so that
    one form makes one key."""

    act: str = ""
    name: str = ""
    key: RowId = 0
    expires: str = ""
    networks: str = ""
    after: Lenient[RowId] = None
    confirm: Confirmed = False


class KeyRow(View, frozen=True):
    """`scopes`: None for a full key."""

    key: ApiKey
    state: KeyState
    scopes: list[KeyScope] | None
    networks: list[str]

    @classmethod
    def of(cls, key: ApiKey, now: Instant) -> Self:
        return cls(key, key.state(now), scopes_of(key.scopes), (key.networks or "").split())


async def show_keys(request: MerchantRequest, created: str | None = None) -> Response:
    """`created`: the key that was just made, shown this once."""
    keys = [
        *await api_keys.not_revoked(request.db, *request.scope, key_management.MOST_KEYS),
        *await api_keys.revoked(request.db, *request.scope, _REVOKED),
    ]
    return request.page(
        "developers/keys.html",
        keys=[KeyRow.of(key, request.now()) for key in keys],
        newest=await key_management.newest(request.db, *request.scope),
        created=created,
        scopes=KEY_SCOPES,
    )


async def change_keys(request: MerchantRequest) -> Response:
    form = await request.form(KeyForm)
    request.require("keys.change")
    try:
        match form.act:
            case "create":
                # Not redirected: the key is nowhere else. Loading the page again sends the same form, which makes no
                # other key.
                return await show_keys(request, created=await _create_key(request, form))
            case "expire":
                key = await _key_of(request, form)
                expires_at = read_end(request, form.expires)
                await key_management.expire(request.db, request.ctx.clock, key, expires_at, request.actor)
                return request.done(request.merchant_url("/developers"), "expiry_set")
            case "revoke":
                return await _revoke_key(request, form)
            case _:
                raise InvalidRequest
    except ActRefused:
        raise FormFault(request.text("developers.refused", most=key_management.MOST_KEYS)) from None


async def _create_key(request: MerchantRequest, form: KeyForm) -> str:
    expires_at = read_end(request, form.expires) if form.expires.strip() else None
    name = key_name(form.name)
    if name is None and form.name.strip():
        raise FormFault(request.name_fault(form.name, "developers.bad_name"))
    newest = -1 if form.after is None else form.after
    access = _chosen_access(request, form)
    try:
        _, key = await key_management.create(
            request.db, request.ctx.clock, *request.scope, expires_at, request.actor, newest, access, name
        )
    except key_management.NewerKey:
        raise FormFault(request.text("developers.sent_twice"), 409) from None
    return key


def _chosen_access(request: MerchantRequest, form: KeyForm) -> KeyAccess:
    """Every box checked, as the form offers it, is a full key, and so is a form without boxes. Raises FormFault when
    all of them were unchecked, or for an invalid network."""
    boxes = request.form_values
    scopes = [scope for scope in KEY_SCOPES if boxes.get(scope) == "yes" or "scopes" not in boxes]
    if not scopes:
        raise FormFault(request.text("developers.no_scope"))
    networks = []
    for network in form.networks.replace(",", " ").split():
        try:
            networks.append(read_network(network))
        except ValueError:
            raise FormFault(request.text("developers.bad_network", typed=printable(network[:50]))) from None
    if len(networks) > MOST_NETWORKS:
        raise FormFault(request.text("developers.too_many_networks", most=MOST_NETWORKS))
    bits = FULL_ACCESS if len(scopes) == len(KEY_SCOPES) else scope_bits(scopes)
    return KeyAccess(bits, stored_networks(networks))


async def _revoke_key(request: MerchantRequest, form: KeyForm) -> Response:
    """The first form is answered with what will happen: nothing brings a key back."""
    key = await _key_of(request, form)
    if key.revoked_at is None and not form.confirm:
        return request.page("developers/key_revocation.html", KeyRow.of(key, request.now()))
    await key_management.revoke(request.db, request.ctx.clock, key.id, request.actor)
    return request.done(request.merchant_url("/developers"), "revoked")


async def _key_of(request: MerchantRequest, form: KeyForm) -> ApiKey:
    """The key that the form names, of this merchant and environment. Raises NotFound."""
    return or_not_found(await api_keys.find(request.db, *request.scope, ApiKeyId(form.key)))


def read_end(request: ConsoleRequest, text: str) -> Instant:
    """The end of the last day on which a key works. Raises FormFault for an invalid date."""
    day = read_day(text.strip())
    if day is None:
        raise FormFault(request.text("developers.bad_date"))
    return end_of_day(day, request.time_zone)


class RequestsQuery(ById):
    """`status`: the first digit; `begins`: how the path does."""

    status: Lenient[_StatusClass] = None
    begins: Annotated[str, text(_LONGEST_PATH)] = ""


class RequestsView(View, frozen=True):
    """`labels`: of the keys, by their ids."""

    query: RequestsQuery
    classes: tuple[str, ...]
    rows: list[LoggedRequest]
    labels: dict[ApiKeyId, str]
    pager: Pager


async def show_requests(request: MerchantRequest) -> Response:
    """The requests of the last seven days of the merchant's programs."""
    query = RequestsQuery.read(request.query)
    filters = RequestFilter(int(query.status) if query.status else None, query.begins)
    cursor = query.cursor
    rows = await request_log.page(
        request.db, *request.scope, filters, _REQUESTS_SHOWN + 1, before=cursor.before, after=cursor.after
    )
    page = ListPage.cut(rows, _REQUESTS_SHOWN, cursor)
    address = partial(request.merchant_url, "/developers/requests", None, status=query.status, begins=query.begins)
    view = RequestsView(
        query=query,
        classes=get_args(_StatusClass),
        rows=page.rows,
        labels=await api_keys.labels(request.db, {row.key_id for row in page.rows}),
        pager=page.pager(lambda row: row.id, address),
    )
    return request.page("developers/requests.html", view)


async def show_clock(request: MerchantRequest) -> Response:
    """Time passes for what waits in the merchant's test environment; there is no other clock."""
    clock = await clock_view(request, request.merchant.id) if request.env == "test" else None
    return request.page("developers/clock.html", clock=clock)


async def move_clock(request: MerchantRequest) -> Response:
    """Only in the test environment: no clock of live money can be moved."""
    form = await request.form(ClockForm)
    request.require("keys.change")
    if request.env != "test":
        raise FormFault(request.text("clock.only_test"))
    await change_clock(request, request.merchant.id, form)
    return request.done(request.merchant_url("/developers/clock"), "clock")
