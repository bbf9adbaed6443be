import { createSignalbox } from '@signalbox/client'

const { SIGNALBOX_URL = 'http://localhost:3000', SIGNALBOX_KEY = '' } = process.env
if (SIGNALBOX_KEY === '') throw new Error('SIGNALBOX_KEY is missing: connect.ts writes it to .env.')

const signalbox = createSignalbox({ baseUrl: SIGNALBOX_URL, token: SIGNALBOX_KEY })

/** The account of each company in Signalbox. A real platform keeps the id beside its customer. */
const accounts = new Map<string, Promise<string>>()

async function createAccount(name: string): Promise<string> {
  return (await signalbox.identity.accountCreate({ body: { name } })).data.document_id
}

/** The account of a company, made at its first visit; a visit after a failure tries again. */
function findAccount(company: string): Promise<string> {
  const known = accounts.get(company)
  if (known) return known
  const made = createAccount(company)
  accounts.set(company, made)
  made.catch(() => accounts.delete(company))
  return made
}

/** Makes a link that opens the portal of the customer's account once. */
export async function openPortalFor({ company, email }: { company: string; email: string }): Promise<string> {
  const made = await signalbox.identity.portalSessionCreate({
    path: { id: await findAccount(company) },
    body: { role: 'account-developer', external_user: email },
  })
  return made.data.url ?? ''
}
