import { createSignalbox } from '../../packages/client/src/client.ts'

const signalbox = createSignalbox({
  baseUrl: process.env.SIGNALBOX_URL ?? 'http://localhost:3000',
  token: process.env.SIGNALBOX_KEY ?? '',
})

/** The account of each company in Signalbox. A real platform keeps the id beside its customer. */
const accounts = new Map<string, Promise<string>>()

async function createAccount(name: string): Promise<string> {
  return (await signalbox.identity.accountCreate({ body: { name } })).data.document_id
}

function findAccount(company: string): Promise<string> {
  const known = accounts.get(company)
  if (known) return known
  const created = createAccount(company)
  accounts.set(company, created)
  // The next visit tries again.
  created.catch(() => accounts.delete(company))
  return created
}

/** Makes a link that opens the portal of the customer's account once. */
export async function openPortalFor({ company, email }: { company: string; email: string }): Promise<string> {
  const made = await signalbox.identity.portalSessionCreate({
    path: { id: await findAccount(company) },
    body: { role: 'account-developer', external_user: email },
  })
  return made.data.url ?? ''
}
