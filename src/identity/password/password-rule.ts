import { buildFieldProblem } from '../../http/problem/problem.ts'
import { isCommonPassword } from './common-password.ts'
import { PASSWORD_LENGTH_LIMIT, PASSWORD_LENGTH_MIN } from './password.ts'

/** The owner of the new password. */
export interface PasswordOwner {
  email: string
  name: string | null
}

/** A broken rule: its code, and a sentence with the rule and the remedy. */
export interface PasswordFault {
  code: 'too_short' | 'too_long' | 'common' | 'personal'
  message: string
  /** The lengths that are taken, of `too_short` and `too_long`. */
  params?: { least: number; most: number }
}

/** Words that name this service. */
const SERVICE_WORDS = ['signalbox']

/** Minimum length of a word of a user's name or address that counts. */
const PERSONAL_WORD_MIN = 3

/** Minimum of a password beside the words of its owner: letters, or letters and digits. */
const OWN_LETTERS_MIN = 4
const OWN_CHARACTERS_MIN = 8

const LENGTH_ERROR = {
  message: `must have ${PASSWORD_LENGTH_MIN} to ${PASSWORD_LENGTH_LIMIT} characters`,
  params: { least: PASSWORD_LENGTH_MIN, most: PASSWORD_LENGTH_LIMIT },
}

/**
 * The first rule that a new password breaks (docs/contract/sessions.md#password-rules, NIST SP 800-63B section 3.1.1.2):
 * its length in code points after normalization, common passwords, and words of the service and the owner. Undefined for
 * a good one. Pure.
 */
export function findPasswordFault(password: string, owner: PasswordOwner): PasswordFault | undefined {
  const normalized = password.normalize('NFKC')
  const length = [...normalized].length
  if (length < PASSWORD_LENGTH_MIN) return { code: 'too_short', ...LENGTH_ERROR }
  if (length > PASSWORD_LENGTH_LIMIT) return { code: 'too_long', ...LENGTH_ERROR }
  if (isCommonPassword(normalized))
    return { code: 'common', message: 'is one of the passwords that are guessed first; choose a longer phrase' }
  if (isPersonal(normalized, owner)) {
    const message = 'is made of the name or e-mail address of the user, or of this service; choose another one'
    return { code: 'personal', message }
  }
  return undefined
}

/** Checks a new password at the member `path` of a body. Throws a 422 with the code of the broken rule. */
export function checkNewPassword(password: string, { path, owner }: { path: string; owner: PasswordOwner }): void {
  const fault = findPasswordFault(password, owner)
  if (fault) throw buildFieldProblem({ path, code: fault.code, message: fault.message, params: fault.params })
}

/** Whether too little of a password is left without the words of its owner and of the service. */
function isPersonal(password: string, { email, name }: PasswordOwner): boolean {
  const folded = password.toLowerCase()
  const words = [...SERVICE_WORDS, ...listWords(email), ...listWords(name ?? '')].sort((a, b) => b.length - a.length)
  let rest = folded
  for (const word of words) rest = rest.replaceAll(word, ' ')
  if (rest === folded) return false
  const letters = rest.match(/\p{L}/gu)?.length ?? 0
  const characters = rest.match(/[\p{L}\p{N}]/gu)?.length ?? 0
  return letters < OWN_LETTERS_MIN && characters < OWN_CHARACTERS_MIN
}

function listWords(text: string): string[] {
  const folded = text.normalize('NFKC').toLowerCase()
  return folded.split(/[^\p{L}\p{N}]+/u).filter((word) => word.length >= PERSONAL_WORD_MIN)
}
