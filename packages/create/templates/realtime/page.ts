import { accountChannel, createRealtime } from '@signalbox/realtime'

/** The page: events of contracts of an account, as they happen. */

/** Lines that the page keeps. */
const LIMIT = 50

/** The access token of the user; in memory only. */
let token: string | undefined

const find = <Found extends Element>(selector: string) => document.querySelector<Found>(selector)!
const [status, followed, form, problem, list] = [
  find('[role=status]'),
  find('#account'),
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

type Account = { document_id: string; name: string }

/** The first account of the user; for an administrator, who belongs to none, that of the demonstration, or the first one. */
async function findAccount(): Promise<Account> {
  const { accounts } = await call<{ accounts: Account[] }>('/api/v3/auth/session')
  if (accounts[0]) return accounts[0]
  const list = '/api/v3/identity/account?sort=created_at&page_size=1'
  const [demo] = await call<Account[]>(`${list}&filters=${encodeURIComponent('name|eq|Demo account')}`)
  const [account] = demo ? [demo] : await call<Account[]>(list)
  if (!account) throw new Error('There is no account.')
  return account
}

function show(line: string): void {
  const item = document.createElement('li')
  item.textContent = line
  list.prepend(item)
  list.children[LIMIT]?.remove()
}

function follow({ document_id: id, name }: Account): void {
  followed.textContent = `Events of contracts of ${name} (${id})`
  const channel = createRealtime({ service: '', token: () => token }).join(accountChannel(id))
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
