import type { IncomingMessage } from 'node:http'

/** The ids of the service for the requests that brought one of their own. */
const ownIds = new WeakMap<IncomingMessage, string>()

/** Keeps the id of the service for a request whose client chose the id that is echoed. */
export function keepOwnRequestId(raw: IncomingMessage, id: string): void {
  ownIds.set(raw, id)
}

/** The id that the service made for a request, which no client can choose; `id` is the one that is echoed. */
export function findOwnRequestId(raw: IncomingMessage, id: string): string {
  return ownIds.get(raw) ?? id
}
