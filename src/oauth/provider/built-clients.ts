import type { AdapterPayload, Provider } from 'oidc-provider'

/** The provider's model of clients, as far as this file reads it. */
interface ClientModel {
  find(id: unknown): Promise<object | undefined>
}

/**
 * Hands out the client that was built from a kept payload. The library reads the payload from its adapter at each use, and
 * hashes it as JSON to find what it has built. A payload is cached only while changes are reported (`InvalidatedCache`), and
 * a changed client has another one: so what was built is dropped with it.
 */
export function keepBuiltClients(
  provider: Provider,
  { findKeptClient }: { findKeptClient: (id: string) => AdapterPayload | undefined },
): void {
  const model = provider.Client as unknown as ClientModel
  const findOwn = model.find.bind(model)
  const built = new WeakMap<AdapterPayload, object>()
  model.find = async (id) => {
    const kept = typeof id === 'string' ? findKeptClient(id) : undefined
    const known = kept && built.get(kept)
    if (known) return known
    const client = await findOwn(id)
    // Built from this payload, or from a later read.
    if (client && kept && kept === findKeptClient(String(id))) built.set(kept, client)
    return client
  }
}
