import type { Schemas } from '@signalbox/client'

/** Failed deliveries in a row that disable a webhook (docs/contract/delivery.md#automatic-disable). */
export const DISABLE_AFTER = 20

/** Display name of a webhook: its name, else its host. */
export const nameOf = ({ name, url }: Pick<Schemas['Webhook'], 'name' | 'url'>) => name ?? new URL(url).host
