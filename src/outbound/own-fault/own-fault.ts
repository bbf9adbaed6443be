import { closeSync, openSync } from 'node:fs'
import { isIPv4 } from 'node:net'
import { devNull } from 'node:os'
import { getSystemErrorName } from 'node:util'

/** Missing resource of this process, as a constant for log and metric. */
export type OwnFaultCode = 'EMFILE' | 'ENFILE' | 'ENOBUFS' | 'ENOMEM' | 'EADDRNOTAVAIL' | 'STALLED'

/** Every code, for a metric whose series start at 0. */
export const OWN_FAULT_CODES: readonly OwnFaultCode[] = [
  'EMFILE',
  'ENFILE',
  'ENOBUFS',
  'ENOMEM',
  'EADDRNOTAVAIL',
  'STALLED',
]

/** A lack of descriptors or memory affects every receiver; a lack of a local port or address only one. */
const OF_THE_PROCESS: readonly string[] = ['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM', 'STALLED']

/**
 * A request that was not made, because this process or its machine lacked a resource: no byte of it was sent, and it
 * does not count against the receiver (docs/contract/delivery.md#whose-fault).
 */
export class OwnFault extends Error {
  readonly code: OwnFaultCode
  /** Whether the fault affects every request of the process. */
  readonly isOfProcess: boolean
  constructor(code: OwnFaultCode) {
    super(`not sent for a fault of this process: ${code}`)
    this.name = 'OwnFault'
    this.code = code
    this.isOfProcess = OF_THE_PROCESS.includes(code)
  }
}

const codeOf = (error: unknown) => (error as { code?: unknown } | null)?.code

/**
 * The fault of this process that made dialling fail; undefined for none. `isIpv4`: only IPv4 addresses were dialled.
 * There `EADDRNOTAVAIL` is a lack of local ports; a machine without IPv6 reports it for each IPv6 address, which the
 * receiver chooses.
 */
export function findDialFault(error: unknown, isIpv4: boolean): OwnFaultCode | undefined {
  // With several addresses: one error that contains the error of each.
  const nested = (error as { errors?: unknown } | null)?.errors
  const codes = Array.isArray(nested) && nested.length > 0 ? nested.map(codeOf) : [codeOf(error)]
  const ofProcess = codes.find((code) => OF_THE_PROCESS.includes(code as string))
  if (ofProcess !== undefined) return ofProcess as OwnFaultCode
  return isIpv4 && codes.every((code) => code === 'EADDRNOTAVAIL') ? 'EADDRNOTAVAIL' : undefined
}

/** The fault of this process behind a failed look-up. Resolvers hide it, so a descriptor is opened. */
export function findLookupFault(error: unknown, openDescriptor: () => void = openAny): OwnFaultCode | undefined {
  const own = findDialFault(error, false)
  if (own !== undefined) return own
  try {
    openDescriptor()
    return undefined
  } catch (failed) {
    return findDialFault(failed, false)
  }
}

/** The failed stage of a request of a client with its own dialling, by the name or the number of the error. */
interface ClientError {
  code?: unknown
  errno?: unknown
  syscall?: unknown
  address?: unknown
  cause?: unknown
}

/**
 * The fault of this process that made a client of the operator's own server fail, which resolves and dials itself (the
 * realtime provider, the mail server); undefined for none. Libraries replace the system's code with their own; its
 * number stays.
 */
export function findClientFault(error: unknown, openDescriptor?: () => void): OwnFaultCode | undefined {
  for (let at = error as ClientError | null | undefined, depth = 0; at && depth < 5; depth += 1) {
    const { errno, syscall, address } = at
    const named = typeof errno === 'number' && errno < 0 ? { code: getSystemErrorName(errno) } : undefined
    const isToIpv4 = typeof address === 'string' && isIPv4(address)
    const own = findDialFault(at, isToIpv4) ?? (named && findDialFault(named, isToIpv4))
    if (own !== undefined) return own
    if (typeof syscall === 'string' && /^(?:getaddrinfo|query)/.test(syscall))
      return findLookupFault(at, openDescriptor)
    at = at.cause as ClientError | undefined
  }
  return undefined
}

function openAny(): void {
  closeSync(openSync(devNull, 'r'))
}
