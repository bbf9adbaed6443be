/** Conventions of all routes, for the OpenAPI document and the first page of the reference. */
export const CONVENTIONS: readonly { title: string; text: string }[] = [
  {
    title: 'Authentication',
    text: [
      'Send `Authorization: Bearer <token>`: a session token or an API key (`sbx_...`). Each route names the permission it',
      'needs, `resource:action`; a missing one is a 403 that names it. Changes of roles and permissions take effect with the next',
      'request.',
    ].join(' '),
  },
  {
    title: 'Answers',
    text: [
      'A success is `{ "data": ..., "message": "..." }`; a list adds `pagination`. What is created answers 201 with its',
      '`Location`, what is only enqueued 202, everything else 200. Ids are UUIDs in lower case, instants ISO 8601 in UTC with',
      'milliseconds. New members may be added to answers; do not fail on one you do not know.',
    ].join(' '),
  },
  {
    title: 'Errors',
    text: [
      'An error is `application/problem+json` (RFC 9457). Decide on `code`; show `detail`; quote `request_id` when you ask',
      'for help. A 422 lists the broken rules in `errors`, at most 50. Unknown members of a body are refused, never dropped.',
      'The checks run in the order 401, 403, 404, 422, 409, 412. Every code has [its page](/docs/errors).',
    ].join(' '),
  },
  {
    title: 'Bounds',
    text: [
      'A body is at most 64 KiB unless its route says more; address and headers are at most 16 KiB together. Instants lie',
      'between the years 1970 and 9999 in UTC. A request has 30 seconds to arrive, and a client that reads nothing of its',
      'answer for 30 seconds is disconnected.',
    ].join(' '),
  },
  {
    title: 'Lists',
    text: [
      'Ask for up to 200 rows with `page_size` and go on with `cursor`, the `next_cursor` of the page before; it is null on the',
      'last page. Pages are found by position: concurrent inserts neither hide nor repeat a row. Filter with',
      '`filters=<field>|<operator>|<values>`, repeated for more; sort with `sort=<field>` or `sort=-<field>`; ask for the',
      'total with `count=true`, which is slower.',
    ].join(' '),
  },
  {
    title: 'Repeating a POST safely',
    text: [
      'Send an `Idempotency-Key` of 1 to 255 visible characters with a POST. Within 24 hours the same key, caller and route',
      'return the first answer again, marked `Idempotency-Replayed: true`, and do nothing else. With another path, query or',
      'body the key is refused (`idempotency_key_reused`). A refused or failed request frees its key. A secret is part of the',
      'first answer only. Routes whose answer is a credential take no key.',
    ].join(' '),
  },
  {
    title: 'Changing a row that others change too',
    text: [
      'Reads of one row carry an `ETag`. Send it as `If-Match` with the change: when another caller changed the row since, the',
      'answer is a 412 (`precondition_failed`) and nothing has changed. Without `If-Match` the last change wins.',
    ].join(' '),
  },
  {
    title: 'Rate limits',
    text: [
      'Requests are counted per address and per caller, in windows of a minute; sign-in, exchange, refresh and handshake have',
      'a smaller limit of their own. `RateLimit-Policy` says each limit, `RateLimit` what remains (`r`) and in how many',
      'seconds the window ends (`t`), as draft-ietf-httpapi-ratelimit-headers-11 writes them. Over the limit is a 429 with',
      '`Retry-After`.',
    ].join(' '),
  },
  {
    title: 'Request ids',
    text: [
      'Send `X-Request-Id` (1 to 128 of `A-Z a-z 0-9 . _ -`) to name a request yourself; else the service makes one. It is returned in',
      'the header of that name, in every problem and in every log line.',
    ].join(' '),
  },
]
