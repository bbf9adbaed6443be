import type { Schemas } from '@signalbox/client'

/** Failed deliveries in a row that disable a webhook (docs/contract/delivery.md#automatic-disable). */
export const DISABLE_AFTER = 20

/** Display name of a webhook: its name, else its host, and of one that pulls the end of its id. */
export const nameOf = ({ name, url, document_id: id }: Pick<Schemas['Webhook'], 'name' | 'url' | 'document_id'>) =>
  name ?? (url === '' ? `pull ${id.slice(-12)}` : new URL(url).host)
