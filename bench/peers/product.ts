/** One call of a product's API with a JSON body; resolves with the parsed answer. Throws for a status of 300 or more. */
export type CallProduct = (method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, body?: object) => Promise<unknown>

/** Event to publish. */
export interface PublishedEvent {
  type: string
  /** `r<run>-<number>`, by which the receiver recognizes the delivery. */
  id: string
}

/** Request that publishes one event. */
export interface Publication {
  path: string
  body: object
}

/** Endpoint to make. */
export interface NewEndpoint {
  n: number
  /** Names of a measurement's rows begin with it. */
  run: string
  url: string
  eventType: string
  /** Convoy: id of the project. */
  project?: string | undefined
}

/** Adapter of a product's HTTP API: one tenant for each endpoint, so that each event has one destination. */
export interface Product {
  /** Makes tenant and endpoint number `n`, subscribed to `eventType`. Returns the target of its events, for the next two. */
  makeEndpoint(call: CallProduct, endpoint: NewEndpoint): Promise<string>
  /** Publication of an event at a target. Pure. */
  buildPublication(target: string, event: PublishedEvent): Publication
  removeEndpoint(call: CallProduct, target: string): Promise<void>
}

/** Payload of the products that carry one: 400 bytes, with the id in front. Pure. */
export function buildPayload(id: string): object {
  return { id, email: `${id}@example.test`, text: 'x'.repeat(330) }
}
