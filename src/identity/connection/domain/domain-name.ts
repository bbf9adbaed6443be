import { domainToASCII } from 'node:url'
import { isEmailAddress } from '../../../http/shape/formats.ts'

/** A domain as it is stored and compared: ASCII (IDNA), lower case. Undefined for a text that is none. Pure. */
export function readDomain(text: string): string | undefined {
  const trimmed = text.trim()
  // The parser of URLs ends a host at these, and reads a number as an address.
  if (/[\s/?#\\@:[\]%*]/u.test(trimmed)) return undefined
  const ascii = domainToASCII(trimmed)
  return isEmailAddress(`a@${ascii}`) && !/(?:^|\.)[0-9.]+$/.test(ascii) ? ascii : undefined
}

/** The domain of an address, as `readDomain` writes it. Addresses have ASCII hosts. Pure. */
export const domainOf = (email: string) => email.slice(email.indexOf('@') + 1).toLowerCase()

/** The name whose TXT record proves a domain. */
export const challengeNameOf = (domain: string) => `_signalbox-challenge.${domain}`
