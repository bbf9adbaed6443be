import { readFileSync, renameSync, writeFileSync } from 'node:fs'

/** A user of this platform. What it may do here is this platform's own matter; Signalbox says nothing of it. */
export interface User {
  document_id: string
  email: string
  name: string | null
  status: string
}

/** The users, in a file that is replaced as a whole: after a crash it holds the state before or after a change. */
export interface UserStore {
  list(): User[]
  /** Stores the state of a user; one that is deleted is forgotten. */
  apply(user: User): void
}

/** Opens the store in `file`, which need not exist. */
export function openUserStore(file: string): UserStore {
  const users = new Map<string, User>(readUsers(file).map((user) => [user.document_id, user]))
  return {
    list: () => [...users.values()],
    apply: ({ document_id, email, name, status }) => {
      if (status === 'deleted') users.delete(document_id)
      else users.set(document_id, { document_id, email, name, status })
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
