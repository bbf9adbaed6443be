import { createHmac } from 'node:crypto'

/** A secret as Signalbox makes it: 32 bytes. Made for these tests. */
export const SECRET = 'whsec_c2lnbmFsYm94LXRlc3Qtc2VjcmV0LTMyLWJ5dGVzISE='
export const OTHER_SECRET = 'whsec_YW5vdGhlci1zaWduYWxib3gtdGVzdC1zZWNyZXQtMzI='
/** When the fixture deliveries are signed, Unix seconds. */
export const SIGNED_AT = 1_790_000_000
export const EVENT_ID = '01997e2a-6c00-7000-8000-0000000000a1'

export const ENVELOPE = {
  id: EVENT_ID,
  type: 'contract.update',
  api_version: '2026-09-11',
  created_at: '2026-09-21T14:13:20.000Z',
  attempt: 1,
  data: {
    account: '01997e2a-6c00-7000-8000-0000000000b2',
    resource: 'contract',
    action: 'update',
    id: '01997e2a-6c00-7000-8000-0000000000c3',
    url: '/api/v3/contract/contract/01997e2a-6c00-7000-8000-0000000000c3',
  },
}

export const BODY = JSON.stringify(ENVELOPE)

/** A clock that stands `offsetSeconds` after the signing. */
export function clockAt(offsetSeconds = 0): () => number {
  return () => (SIGNED_AT + offsetSeconds) * 1000
}

/** Signs `<t>.<body>` by node:crypto, independently of the code under test; lower-case hex. */
export function signServiceHex(body: string | Uint8Array, secret = SECRET, t: number | string = SIGNED_AT): string {
  return createHmac('sha256', secret).update(`${t}.`).update(body).digest('hex')
}

export function serviceHeaders(body: string | Uint8Array = BODY, secret = SECRET): Record<string, string> {
  return { 'x-service-signature': `t=${SIGNED_AT},v1=${signServiceHex(body, secret)}` }
}

/** Signs `<id>.<t>.<body>` by node:crypto; base64. */
export function signStandardBase64(body: string | Uint8Array, secret = SECRET, t = SIGNED_AT): string {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
  return createHmac('sha256', key).update(`${EVENT_ID}.${t}.`).update(body).digest('base64')
}

export function standardHeaders(body: string | Uint8Array = BODY, secret = SECRET): Record<string, string> {
  return {
    'webhook-id': EVENT_ID,
    'webhook-timestamp': String(SIGNED_AT),
    'webhook-signature': `v1,${signStandardBase64(body, secret)}`,
  }
}

/** The headers of a whole delivery: both families. */
export function deliveryHeaders(body: string | Uint8Array = BODY, secret = SECRET): Record<string, string> {
  return { ...serviceHeaders(body, secret), ...standardHeaders(body, secret) }
}
