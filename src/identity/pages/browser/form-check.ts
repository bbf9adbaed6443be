import { Problem } from '../../../http/problem/problem.ts'

/** Reason of a refused form. For the log and the audit log. */
type FormRefusal = 'other_site' | 'no_origin' | 'no_cookie' | 'form_token'

/** Headers that show the origin of a form. */
export interface FormProof {
  headers: Readonly<Record<string, string | string[] | undefined>>
  ownOrigin: string
  browserId: string | undefined
  formToken: string
  isFormToken: (token: string, browserId: string) => boolean
}

/** The 403 `form_refused`, unless a page of ours sent the form in this browser (docs/contract/pages.md#forms). Pure. */
export function findFormProblem(proof: FormProof): Problem | undefined {
  const reason = findRefusal(proof)
  if (reason === undefined) return undefined
  return new Problem('form_refused', 'The form is no longer valid, or came from another site. Open the page again.', {
    reason,
  })
}

function findRefusal({ headers, ownOrigin, browserId, formToken, isFormToken }: FormProof): FormRefusal | undefined {
  const site = headers['sec-fetch-site']
  const { origin } = headers
  // Browsers send Sec-Fetch-Site to https and to localhost only; a page cannot set it, nor `Origin` (Fetch standard).
  if (site !== undefined) {
    if (site !== 'same-origin') return 'other_site'
  } else if (origin === undefined) return 'no_origin'
  else if (origin !== ownOrigin) return 'other_site'
  if (browserId === undefined) return 'no_cookie'
  return isFormToken(formToken, browserId) ? undefined : 'form_token'
}
