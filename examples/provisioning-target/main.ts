import { randomUUID } from 'node:crypto'
import { buildTarget } from './target.ts'
import { openUserStore } from './user-store.ts'

/** Starts a platform that keeps its users in step with the service. */
const secret = process.env.TARGET_SECRET
const token = process.env.USERS_TOKEN ?? randomUUID()
const port = Number(process.env.PORT ?? 4100)
if (!secret) {
  process.stderr.write('Set TARGET_SECRET to the secret of the target, as its creation showed it.\n')
  process.exit(1)
}
const target = buildTarget({ secret, token, users: openUserStore(process.env.USERS_FILE ?? 'users.json') })
target.listen(port, '127.0.0.1', () => {
  process.stdout.write(
    `Target platform. Its users: curl -H 'authorization: Bearer ${token}' http://127.0.0.1:${port}/users\n`,
  )
})
