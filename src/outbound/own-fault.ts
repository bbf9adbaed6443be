import { closeSync, openSync } from 'node:fs'
import { devNull } from 'node:os'

/** What this process lacked, as a constant for log and metric. */
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

/** Descriptors and memory are lacking for every receiver; a local port or address only towards one. */
const OF_THE_PROCESS: readonly string[] = ['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM', 'STALLED']

/**
 * A request that was not made, because this process or its machine lacked something: no byte of it was sent, and it says
 * nothing of the receiver (docs/contract/delivery.md#whose-fault).
 */
export class OwnFault extends Error {
  readonly code: OwnFaultCode
  /** Whether no other request of the process can be made either. */
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
 * The fault of this process that made dialling fail; undefined when it was none. `isIpv4`: only IPv4 addresses were dialled.
 * `EADDRNOTAVAIL` is a lack of local ports there; a machine without IPv6 says it of each IPv6 address, which a receiver
 * chooses.
 */
export function findDialFault(error: unknown, isIpv4: boolean): OwnFaultCode | undefined {
  // Several addresses: one error with the error of each.
  const nested = (error as { errors?: unknown } | null)?.errors
  const codes = Array.isArray(nested) && nested.length > 0 ? nested.map(codeOf) : [codeOf(error)]
  const ofProcess = codes.find((code) => OF_THE_PROCESS.includes(code as string))
  if (ofProcess !== undefined) return ofProcess as OwnFaultCode
  return isIpv4 && codes.every((code) => code === 'EADDRNOTAVAIL') ? 'EADDRNOTAVAIL' : undefined
}

/**
 * The fault of this process that made a look-up fail; undefined when it was none. Resolvers without a descriptor say that
 * the name server refused, or that there is no such name, so one is tried.
 */
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

function openAny(): void {
  closeSync(openSync(devNull, 'r'))
}
