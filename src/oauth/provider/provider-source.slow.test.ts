import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { startService } from '../../../test/harness/process/service-process.ts'

test('a service loads the provider with its first request, and writes nothing of what the library warns of', async () => {
  await using database = await createTestDatabase({ content: 'prepared' })
  await using service = await startService({
    databaseUrl: database.connectionString,
    token: '',
    env: { SIGNALBOX_ROLES: 'api' },
  })
  const answer = await fetch(`${service.url}/api/v3/oauth/.well-known/openid-configuration`)
  expect(answer.status).toBe(200)
  expect(await service.stop()).toEqual({ code: 0, signal: null })
  expect(service.stdout() + service.stderr()).not.toContain('oidc-provider WARNING')
})
