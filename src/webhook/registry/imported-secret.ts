import { isWeak, LEAST_DIFFERENT } from '../../base/weak-bytes.ts'
import { buildFieldProblem } from '../../http/problem/problem.ts'

/** `whsec_` and the base64 of 24 to 64 bytes (Standard Webhooks, section "Signature scheme"). */
const FORM = /^whsec_((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?)$/
const LEAST_BYTES = 24
const MOST_BYTES = 64

/** Checks a secret of another system (docs/contract/webhooks.md#secret-of-a-known-value). Throws a 422 without it. */
export function checkImportedSecret(secret: string): void {
  const bytes = Buffer.from(FORM.exec(secret)?.[1] ?? '', 'base64')
  // Several texts of non-canonical base64 decode to the same bytes, and verifiers differ in what they accept.
  if (`whsec_${bytes.toString('base64')}` !== secret || bytes.length < LEAST_BYTES || bytes.length > MOST_BYTES)
    throw buildFieldProblem({
      path: 'secret',
      code: 'pattern',
      message: `must be whsec_ and the padded base64 of ${LEAST_BYTES} to ${MOST_BYTES} bytes`,
      params: { least: LEAST_BYTES, most: MOST_BYTES },
    })
  if (!isWeak(bytes)) return
  const rule = `has fewer than ${LEAST_DIFFERENT} different bytes, repeats one sequence, or counts in equal steps`
  throw buildFieldProblem({
    path: 'secret',
    code: 'weak',
    message: `${rule}: leave it out for a random one, and replace the old one at the receiver`,
    params: { least: LEAST_DIFFERENT },
  })
}
