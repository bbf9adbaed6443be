/** The event names of the catalogue. Written by the repository's catalogue generator; edits here are overwritten. */
export const EVENT_NAMES = ['contract.create', 'contract.delete', 'contract.update', 'webhook.test'] as const
