import type { AccountId } from '../../base/id.ts'

/** Subject of a private channel. */
export interface ChannelSubject {
  kind: 'account' | 'contract'
  /** The `document_id` of the account or the contract. */
  id: string
}

/**
 * The names of private channels, whole: `private-(contract|account)-{uuid}` with a lower-case UUID. Signing another
 * name could sign more than a subscription: a name with the prefix `:user::` reads as a sign-in
 * (docs/contract/realtime.md#channels).
 */
const PRIVATE_CHANNEL = /^private-(account|contract)-([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$/

/** Maximum length of a private channel's name; longer texts are not matched. */
const CHANNEL_LENGTH = 'private-contract-'.length + 36

/** Reads the name of a private channel; undefined when it is none. `$` does not match before a line break in JavaScript. */
export function parseChannel(name: string): ChannelSubject | undefined {
  if (name.length > CHANNEL_LENGTH) return undefined
  const [, kind, id] = PRIVATE_CHANNEL.exec(name) ?? []
  return kind === undefined || id === undefined ? undefined : { kind: kind as ChannelSubject['kind'], id }
}

/** Reads `presence-(contract|account)-{uuid}`; undefined for none. Members may join the private channel too. */
export function parsePresenceChannel(name: string): ChannelSubject | undefined {
  return name.startsWith('presence-') ? parseChannel(name.replace('presence-', 'private-')) : undefined
}

/** The name of a private channel. */
export function nameChannel({ kind, id }: ChannelSubject): string {
  return `private-${kind}-${id}`
}

/** Facts that decide on the channels of an event. */
export interface ChannelledEvent {
  account: AccountId | null
  /** The contract that the event is about, where it belongs to the account. */
  contract: string | null
}

/** The channels of an event: of its account and its contract (docs/contract/realtime.md#published-events). Pure. */
export function listChannels({ account, contract }: ChannelledEvent): string[] {
  if (account === null) return []
  const ofAccount = nameChannel({ kind: 'account', id: account })
  return contract === null ? [ofAccount] : [ofAccount, nameChannel({ kind: 'contract', id: contract })]
}
