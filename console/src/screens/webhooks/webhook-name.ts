import type { Schemas } from '@signalbox/client'

/** What a webhook is called: its name, else its host. */
export const nameOf = ({ name, url }: Schemas['Webhook']) => name ?? new URL(url).host
