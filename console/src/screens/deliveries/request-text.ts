import type { Schemas } from '@signalbox/client'

/** Version of the envelope (docs/contract/webhooks.md#envelope). */
const API_VERSION = '2026-09-11'

/** Stands for the signature, which is not kept: it is made anew for each attempt. */
const SIGNATURE = 't=<seconds>,v1=<hex>'

/** The request of an attempt. */
export interface DeliveryRequest {
  url: string
  headers: Readonly<Record<string, string>>
  body: string
}

interface RequestInput {
  event: Schemas['EventOccurrence']
  url: string
  dispatch: string
  /** Number of the attempt, from 1. */
  attempt: number
}

/** The request of an attempt as a receiver gets it, but for its signature (docs/contract/webhooks.md#envelope). Pure. */
export function buildRequest({ event, url, dispatch, attempt }: RequestInput): DeliveryRequest {
  const { document_id: id, event: type, created_at, is_purge, account, resource, action, resource_id } = event
  const data = { account: is_purge ? null : account, resource, action, id: resource_id, url: event.url }
  return {
    url,
    headers: {
      'content-type': 'application/json',
      'x-service-event': type,
      'x-service-delivery': dispatch,
      'x-service-attempt': String(attempt),
      'x-service-signature': SIGNATURE,
    },
    body: JSON.stringify({ id, type, api_version: API_VERSION, created_at, attempt, data }),
  }
}

const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`

/** The request as a command of curl, without a secret. Pure. */
export function toRequestCurl({ url, headers, body }: DeliveryRequest): string {
  const lines = Object.entries(headers).map(([name, value]) => `-H ${quote(`${name}: ${value}`)}`)
  return [`curl -X POST ${quote(url)}`, ...lines, `--data-raw ${quote(body)}`].join(' \\\n  ')
}

/** The request as it is sent, its body in lines; of a pulled delivery, which has no URL, its headers and body. Pure. */
export function toRequestText({ url, headers, body }: DeliveryRequest): string {
  const target = url === '' ? undefined : new URL(url)
  const start = target ? [`POST ${target.pathname}${target.search}`] : []
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  return [...start, ...lines, '', JSON.stringify(JSON.parse(body), null, 2)].join('\n')
}

/** How much of an answer is kept, bytes of UTF-8; a character across the limit is left out whole. */
const KEPT_BYTES = 1_024

/** Whether the kept text of an answer may be a part of it. Pure. */
export function isCut(text: string): boolean {
  return new TextEncoder().encode(text).length > KEPT_BYTES - 4
}
