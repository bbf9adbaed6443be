import { readFileSync, renameSync, writeFileSync } from 'node:fs'

/** A user of this platform. What it may do here is this platform's own matter; Signalbox says nothing of it. */
export interface User {
  document_id: string
  email: string
  name: string | null
  status: string
  /** When the state was that of the user, in ISO 8601. */
  as_of: string
}

/** The users, in a file that is replaced as a whole: after a crash it holds the state before or after a change. */
export interface UserStore {
  list(): User[]
  /** Stores the state of a user, unless a later one is stored. A deleted user keeps its id and time, so that it stays so. */
  apply(user: User): void
}

/** Opens the store in `file`, which need not exist. */
export function openUserStore(file: string): UserStore {
  const users = new Map<string, User>(readUsers(file).map((user) => [user.document_id, user]))
  return {
    list: () => [...users.values()].filter(({ status }) => status !== 'deleted'),
    apply: ({ document_id, email, name, status, as_of }) => {
      const stored = users.get(document_id)
      if (stored && Date.parse(stored.as_of) > Date.parse(as_of)) return
      const user = { document_id, email, name, status, as_of }
      users.set(document_id, status === 'deleted' ? { ...user, email: '', name: null } : user)
      writeFileSync(`${file}.new`, JSON.stringify([...users.values()]))
      renameSync(`${file}.new`, file)
    },
  }
}

function readUsers(file: string): User[] {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as User[]
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}
