/** Beginnings of names that this program keeps for its settings. */
export const RESERVED_PREFIXES = [
  'SIGNALBOX_',
  'INTEGRATION_REALTIME_',
  'REALTIME_',
  'ALERT_WEBHOOK_',
  'SSO_HANDSHAKE_',
  'EVENT_LOG_',
  'SOCIAL_',
] as const

/** Names that our packages, templates and guides give to settings of apps: they mean nothing here. */
export const NAMES_OF_APPS: readonly string[] = [
  'SIGNALBOX_KEY',
  'SIGNALBOX_PID',
  'SIGNALBOX_PROVISIONING_SECRET',
  'SIGNALBOX_SECRET',
  'SIGNALBOX_WEBHOOK',
]

/** Variables that Kubernetes sets for a Service named `signalbox`; `SIGNALBOX_PORT` is one if it is an address. */
const SERVICE_LINK =
  /^SIGNALBOX(?:_[A-Z0-9]+)*?_(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]+)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)$/

/** Shortest name that is compared with others: shorter ones are names of other programs. */
const COMPARED_LENGTH = 8

/** The settings of this program. */
export interface KnownSettings {
  names: readonly string[]
  /** Names beside these, such as those of a provider. */
  isKnown: (name: string) => boolean
}

/**
 * A sentence for each variable with a value that is meant as a setting and is none: its name begins with a reserved
 * prefix, or is that of a setting but for one character (docs/contract/configuration.md#reader). Pure.
 */
export function findUnknownSettings(
  env: Readonly<Record<string, string | undefined>>,
  { names, isKnown }: KnownSettings,
): string[] {
  return Object.entries(env).flatMap(([name, value]) => {
    if (!value || names.includes(name) || isKnown(name) || NAMES_OF_APPS.includes(name)) return []
    if (SERVICE_LINK.test(name) || isLinkedPort(name, value)) return []
    const meant = names.find((known) => isMisspelled(name, known))
    if (meant === undefined && !RESERVED_PREFIXES.some((prefix) => name.startsWith(prefix))) return []
    const remedy = meant === undefined ? 'Remove it, or look for the right name in' : `Write ${meant}, or remove it:`
    return [`${name} is not a setting of Signalbox. ${remedy} docs/configuration.md.`]
  })
}

function isLinkedPort(name: string, value: string): boolean {
  return /^SIGNALBOX(?:_[A-Z0-9]+)*_PORT$/.test(name) && /^(?:tcp|udp|sctp):\/\//.test(value)
}

/** Whether a name is another with one character more, less or changed, or two neighbours exchanged; not the first. */
function isMisspelled(name: string, known: string): boolean {
  if (name.length < COMPARED_LENGTH || known.length < COMPARED_LENGTH || name[0] !== known[0]) return false
  const longer = Math.max(name.length, known.length)
  if (longer - Math.min(name.length, known.length) > 1) return false
  let start = 0
  while (start < longer && name[start] === known[start]) start += 1
  const [one, other] = [name.slice(start), known.slice(start)]
  return (
    one.slice(1) === other.slice(1) ||
    one === other.slice(1) ||
    one.slice(1) === other ||
    (one[0] === other[1] && one[1] === other[0] && one.slice(2) === other.slice(2))
  )
}
