import type { IncomingMessage } from 'node:http'

/** The ids of the service for the requests that brought one of their own. */
const ownIds = new WeakMap<IncomingMessage, string>()

/** Stores the generated id of a request whose client chose the echoed id. */
export function keepOwnRequestId(raw: IncomingMessage, id: string): void {
  ownIds.set(raw, id)
}

/** The generated id of a request, which no client can choose; `id` is the echoed one. */
export function findOwnRequestId(raw: IncomingMessage, id: string): string {
  return ownIds.get(raw) ?? id
}
