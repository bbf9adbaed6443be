import { accountChannel, createRealtime } from '@signalbox/realtime'

/** The page: events of contracts of an account, as they happen. */

/** Lines that the page keeps. */
const LIMIT = 50

/** The access token of the user; in memory only. */
let token: string | undefined

const find = <Found extends Element>(selector: string) => document.querySelector<Found>(selector)!
const [status, form, problem, list] = [
  find('[role=status]'),
  find<HTMLFormElement>('form'),
  find('[role=alert]'),
  find('ul'),
]

async function call<Data>(path: string, body?: object): Promise<Data> {
  const response = await fetch(path, {
    method: body ? 'POST' : 'GET',
    headers: {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(body && { 'content-type': 'application/json' }),
    },
    ...(body && { body: JSON.stringify(body) }),
  })
  const answer = (await response.json()) as { data: Data; detail?: string }
  if (!response.ok) throw new Error(answer.detail ?? `status ${response.status}`)
  return answer.data
}

/** The first account of the user; for an administrator, who belongs to none, that of a contract. */
async function findAccount(): Promise<string> {
  const { accounts } = await call<{ accounts: { document_id: string }[] }>('/api/v3/auth/session')
  const [contract] = await call<{ account: string }[]>('/api/v3/contract/contract?page_size=1')
  const account = accounts[0]?.document_id ?? contract?.account
  if (account === undefined) throw new Error('You belong to no account.')
  return account
}

function show(line: string): void {
  const item = document.createElement('li')
  item.textContent = line
  list.prepend(item)
  list.children[LIMIT]?.remove()
}

function follow(account: string): void {
  const channel = createRealtime({ service: '', token: () => token }).join(accountChannel(account))
  channel.onState(() => {
    const state = channel.read()
    status.textContent = state.kind === 'denied' ? `no access: ${state.reason}` : state.kind
  })
  for (const type of ['contract.create', 'contract.update'] as const)
    channel.on(type, (message) => show(`${message.created_at}  ${type}  ${message.data.id}`))
  // After a long interruption events are missing: an app reads what it shows again.
  channel.onMissed(() => show('events were missed'))
}

form.addEventListener('submit', async (event) => {
  event.preventDefault()
  const data = new FormData(form)
  try {
    const credentials = { email: data.get('email'), password: data.get('password') }
    token = (await call<{ jwt: string }>('/api/v3/auth/login/local', credentials)).jwt
    follow(await findAccount())
    form.hidden = true
    problem.textContent = ''
  } catch (error) {
    problem.textContent = (error as Error).message
  }
})
