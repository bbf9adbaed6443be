import { isUuid, type UserId } from '../../../base/id.ts'
import { isEmailAddress } from '../../../http/shape/formats.ts'
import type { ImportedUser } from '../../../identity/imported-user/imported-user.ts'
import {
  type ForeignFault,
  findForeignFault,
  parseForeignHash,
  storeForeignHash,
} from '../../../identity/password/foreign-hash.ts'
import { toLine } from '../source/foreign.ts'
import { type ForeignPasskey, type ForeignPassword, type ForeignPerson, type PeopleSource, toId } from './person.ts'

/** Choices of the operator and facts of this service. */
export interface PeopleRules {
  source: Pick<PeopleSource, 'name' | 'providers' | 'otherSubjects'>
  /** Names of the enabled providers. */
  providers: ReadonlySet<string>
  /** Those of them that are the public servers of their names. */
  publicProviders: ReadonlySet<string>
  /** Providers here by those of the source, of `--provider`. */
  providerMap: ReadonlyMap<string, string>
  /** The relying party of passkeys here. */
  rpId: string
  /** The relying party of the source, from `--rp-id`. */
  sourceRpId: string | undefined
  now: Date
}

/** The decision about a person. `mustReset`: why the password does not come along. */
export type PersonPlan =
  | { kind: 'import'; user: ImportedUser; notes: string[]; mustReset: string | undefined }
  | { kind: 'skip'; reason: 'no_email' | 'email_refused'; remedy: string }

/** Most identities and passkeys of one user. */
const IDENTITIES_LIMIT = 50
const PASSKEYS_LIMIT = 20

const SUBJECT = /^[\x21-\x7e][\x20-\x7e]{0,254}$/
const TRANSPORTS = new Set(['usb', 'nfc', 'ble', 'internal', 'cable', 'hybrid', 'smart-card'])

/** Decides about a person. No text of the answer has a hash or a secret. Pure. */
export function planPerson(person: ForeignPerson, rules: PeopleRules): PersonPlan {
  const { email } = person
  if (email === undefined)
    return { kind: 'skip', reason: 'no_email', remedy: 'A user here has an e-mail address: add one at the source.' }
  if (!isEmailAddress(email))
    return {
      kind: 'skip',
      reason: 'email_refused',
      remedy: 'Its address has no form that is accepted here: mend it at the source.',
    }
  const password = decidePassword(person.password)
  const identities = decideIdentities(person, rules)
  const passkeys = decidePasskeys(person, rules)
  const user: ImportedUser = {
    id: toId<'user'>(rules.source.name, 'person', person.id) as UserId,
    email,
    emailVerifiedAt: decideVerification(person, rules.now),
    name: toLine(person.name, 200) ?? null,
    passwordHash: password.stored,
    isActived: !person.isDisabled,
    identities: identities.kept,
    totpSecret: person.totpSecrets[0] ?? null,
    passkeys: passkeys.kept,
  }
  const notes = [
    ...(isUuid(person.id.toLowerCase()) ? [] : [`its id is another one here: ${user.id}`]),
    ...person.notes,
    ...identities.notes,
    ...passkeys.notes,
    ...(person.totpSecrets.length > 1 ? ['more than one authenticator app: the first is imported'] : []),
  ]
  return { kind: 'import', user, notes: notes.map((note) => toLine(note, 300) ?? ''), mustReset: password.why }
}

const FAULTS: Readonly<Record<ForeignFault, string>> = {
  unknown: 'its hash has no form that is read here',
  too_weak: 'its hash is too weak to be kept',
  too_costly: 'its hash costs more than a sign-in here may',
}

function decidePassword(password: ForeignPassword): { stored: string | null; why: string | undefined } {
  if (password.kind === 'none') return { stored: null, why: undefined }
  if (password.kind === 'other')
    return { stored: null, why: toLine(`its password is not imported (${password.what})`, 100) }
  const hash = parseForeignHash(password.text)
  const fault = hash ? findForeignFault(hash) : 'unknown'
  if (!hash || fault) return { stored: null, why: FAULTS[fault ?? 'unknown'] }
  return { stored: storeForeignHash(hash), why: undefined }
}

function decideVerification({ emailVerified }: ForeignPerson, now: Date): Date | null {
  if (emailVerified === false) return null
  return emailVerified === true || emailVerified > now ? now : emailVerified
}

function decideIdentities(
  { identities }: ForeignPerson,
  { source, providers, publicProviders, providerMap }: PeopleRules,
): { kept: ImportedUser['identities']; notes: string[] } {
  const kept = new Map<string, ImportedUser['identities'][number]>()
  const notes: string[] = []
  for (const identity of identities.slice(0, IDENTITIES_LIMIT)) {
    const { provider: named, isPublic, subject, email, isEmailVerified, name } = identity
    const given = providerMap.get(named)
    const provider = given ?? source.providers.get(named) ?? named
    const shown = toLine(named, 60) ?? '(no name)'
    const other = given === undefined ? source.otherSubjects.get(named) : undefined
    const isEnabled = given === undefined ? isPublic && publicProviders.has(provider) : providers.has(provider)
    if (other !== undefined) notes.push(`identity at ${shown} left out: ${other}`)
    else if (!isEnabled)
      notes.push(
        `identity at ${shown} left out: no provider ${toLine(provider, 60) ?? ''} is enabled here for it; name one with --provider ${shown}=<name>`,
      )
    else if (subject === undefined || !SUBJECT.test(subject))
      notes.push(`identity at ${shown} left out: it has no usable subject`)
    else {
      const address = email !== undefined && isEmailAddress(email) ? email : null
      const row = { provider, subject, email: address, isEmailVerified: isEmailVerified && address !== null }
      kept.set(`${provider} ${subject}`, { ...row, name: toLine(name, 200) ?? null })
    }
  }
  return { kept: [...kept.values()], notes }
}

function decidePasskeys(
  { id, passkeys }: ForeignPerson,
  { rpId, sourceRpId }: PeopleRules,
): { kept: ImportedUser['passkeys']; notes: string[] } {
  const kept = new Map<string, ImportedUser['passkeys'][number]>()
  const notes = new Set<string>()
  for (const passkey of passkeys) {
    const from = passkey.rpId ?? sourceRpId
    const row = readPasskey(passkey)
    if (from !== rpId)
      notes.add(
        `passkey left out: it is bound to ${toLine(from, 100) ?? 'a host that the source does not tell; give it with --rp-id'}, and this service is ${rpId}`,
      )
    else if (!isUuid(id.toLowerCase()))
      notes.add('passkey left out: it is bound to the id that the user has at the source')
    else if (!row || kept.size === PASSKEYS_LIMIT) notes.add('passkey left out: it is malformed, or one too many')
    else kept.set(row.credentialId, row)
  }
  return { kept: [...kept.values()], notes: [...notes] }
}

function readPasskey(passkey: ForeignPasskey): ImportedUser['passkeys'][number] | undefined {
  const { credentialId, publicKey, counter } = passkey
  const isCounter = Number.isSafeInteger(counter) && counter >= 0 && counter <= 0xffff_ffff
  // A COSE key is a map (RFC 9052 section 7).
  const isKey = publicKey.length >= 32 && publicKey.length <= 2048 && (publicKey[0] as number) >> 5 === 5
  if (!isCounter || !isKey || credentialId.length > 1023) return undefined
  return {
    credentialId: credentialId.toString('base64url'),
    publicKey: publicKey.toString('base64'),
    counter,
    transports: passkey.transports.filter((transport) => TRANSPORTS.has(transport)),
    name: toLine(passkey.name, 100) ?? 'Passkey',
    isBackupEligible: passkey.isBackupEligible,
    isBackedUp: passkey.isBackedUp,
  }
}
