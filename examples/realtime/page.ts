import { createElement as h, useEffect, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { RealtimeProvider, useChannel, useEvent, useMissed } from '../../packages/realtime/src/react.ts'
import { accountChannel, createRealtime, type RealtimeMessage } from '../../packages/realtime/src/realtime.ts'

/** The page: the contracts of an account, as they change. Its server passes calls of `/api/` on to Signalbox. */

interface Contract {
  document_id: string
  name: string
  status: string
}

/** The access token of the user; in memory only. */
let token: string | undefined

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

const realtime = createRealtime({ service: '', token: () => token })

function Contracts({ account }: { account: string }) {
  const channel = accountChannel(account)
  const state = useChannel(channel)
  const [contracts, setContracts] = useState<Contract[]>([])
  const [delay, setDelay] = useState<number>()
  const [reads, setReads] = useState(0)
  const readAgain = () => setReads((before) => before + 1)
  const isLive = state.kind === 'live'
  // Events before the channel was first live were not sent. After an interruption the missed events are.
  useEffect(() => {
    if (isLive) setReads((before) => before || 1)
  }, [isLive])
  useMissed(channel, readAgain)
  useEffect(() => {
    const query = new URLSearchParams({ filters: `account|eq|${account}` })
    if (reads > 0) void call<Contract[]>(`/api/v3/contract/contract?${query}`).then(setContracts)
  }, [account, reads])
  const show = async ({ created_at, data }: RealtimeMessage) => {
    setDelay(Date.now() - Date.parse(created_at))
    if (data.url === null) return
    const changed = await call<Contract>(data.url)
    setContracts((before) => [changed, ...before.filter((item) => item.document_id !== changed.document_id)])
  }
  useEvent(channel, 'contract.create', show)
  useEvent(channel, 'contract.update', show)
  return h(
    'section',
    null,
    h('p', { role: 'status' }, state.kind === 'denied' ? `No access: ${state.reason}` : state.kind),
    h(
      'ul',
      null,
      contracts.map((contract) => h('li', { key: contract.document_id }, `${contract.name}: ${contract.status}`)),
    ),
    delay !== undefined && h('p', { id: 'delay' }, `The last change arrived ${delay} ms after it began.`),
  )
}

/** The first account of the user; for an administrator, who belongs to none, that of a contract. */
async function findAccount(): Promise<string> {
  const { accounts } = await call<{ accounts: { document_id: string }[] }>('/api/v3/auth/session')
  const [contract] = await call<{ account: string }[]>('/api/v3/contract/contract?page_size=1')
  const account = accounts[0]?.document_id ?? contract?.account
  if (account === undefined) throw new Error('You belong to no account.')
  return account
}

function SignIn({ onAccount }: { onAccount: (account: string) => void }) {
  const [problem, setProblem] = useState('')
  const signIn = async (form: FormData) => {
    try {
      const credentials = { email: form.get('email'), password: form.get('password') }
      token = (await call<{ jwt: string }>('/api/v3/auth/login/local', credentials)).jwt
      onAccount(await findAccount())
    } catch (error) {
      setProblem(String(error))
    }
  }
  return h(
    'form',
    { action: signIn },
    h('p', null, h('label', null, 'E-mail ', h('input', { name: 'email', type: 'email' }))),
    h('p', null, h('label', null, 'Password ', h('input', { name: 'password', type: 'password' }))),
    h('button', { type: 'submit' }, 'Sign in'),
    problem && h('p', { role: 'alert' }, problem),
  )
}

function App() {
  const [account, setAccount] = useState<string>()
  return account === undefined ? h(SignIn, { onAccount: setAccount }) : h(Contracts, { account })
}

const root = document.getElementById('root')
if (root) createRoot(root).render(h(RealtimeProvider, { realtime }, h(App)))
