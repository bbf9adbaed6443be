import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { waitFor } from '../harness/run/wait.ts'
import { keycloakRealm, supabaseUser } from './people-exports.ts'
import { openPeopleFixture, type PeopleFixture } from './people-fixture.ts'

let fixture: PeopleFixture
beforeAll(async () => {
  fixture = await openPeopleFixture()
})
afterAll(() => fixture?.[Symbol.asyncDispose]())

describe('an import of people', () => {
  test('that ended in the middle is resumed by the next run', async () => {
    const rows = Array.from({ length: 230 }, () => supabaseUser({ encrypted_password: '' }))
    const whole = rows.map((row) => JSON.stringify(row)).join('\n')
    const broken = await fixture.run(
      'supabase-auth',
      '--from',
      await fixture.write(`${whole.slice(0, -20)}`),
      '--apply',
    )
    expect(broken.code).toBe(1)
    expect(broken.stderr).toMatch(/ends in the middle after 229 rows/)
    const made = await fixture.readRow(
      'select count(*)::int from "user" where document_id = any($1)',
      rows.map(({ id }) => id),
    )
    expect(made).toEqual({ count: 200 })
    const { summary } = await fixture.readRun('supabase-auth', '--from', await fixture.write(whole), '--apply')
    expect(summary.people).toEqual({ already: 200, created: 30 })
  })

  test('run twice at once makes nobody twice', async () => {
    const rows = Array.from({ length: 150 }, () => supabaseUser({ encrypted_password: '' }))
    const file = await fixture.writeLines(rows)
    const args = ['supabase-auth', '--from', file, '--apply']
    const beside = fixture.readRunBeside(...args)
    const ids = rows.map(({ id }) => id)
    await waitFor('the begin of the other run', async () => {
      const { count } = await fixture.readRow('select count(*)::int from "user" where document_id = any($1)', ids)
      return count > 0
    })
    const runs = [await fixture.readRun(...args), await beside]
    const counts = runs.map(({ summary }) => summary.people)
    const sum = (name: string) => counts.reduce((total, of) => total + (of[name] ?? 0), 0)
    expect([sum('created'), sum('already')]).toEqual([150, 150])
  })

  test('prints people with something to tell, then the counts', async () => {
    const [plain, odd] = [supabaseUser(), supabaseUser({ encrypted_password: 'plain' })]
    const ended = await fixture.run('supabase-auth', '--from', await fixture.writeLines([plain, odd]))
    expect(ended).toMatchObject({ code: 0, stderr: '' })
    expect(ended.stdout).toBe(
      [
        `person  would create   ${odd.id}  ${odd.email}`,
        '  must set a new password: its hash has no form that is read here',
        'people: 2 would create; OAuth clients: none',
        'with their password: 1; must set a new one: 1; identities: 0; authenticator apps: 0; passkeys: 0',
        'Dry run: nothing was changed. Add --apply to import.',
        '',
      ].join('\n'),
    )
  })

  test.each<[string, unknown, RegExp]>([
    ['a megabyte of nonsense', 'x'.repeat(1 << 20), /is not a JSON object/],
    ['a megabyte of braces', '{"a":'.repeat(200_000), /nested deeper than 64/],
    ['no ids', '{"email":"ada@example.com"}', /no usable id/],
    ['a lone surrogate as the id', '{"id":"\\ud800","email":"a@example.com"}', /no usable id/],
    ['a list of numbers', '[1,2]', /is not an object/],
  ])('refuses %s with one line, and changes nothing', async (_name, content, message) => {
    const ended = await fixture.run('supabase-auth', '--from', await fixture.write(content), '--apply')
    expect(ended.code).toBe(1)
    expect(ended.stderr).toMatch(message)
    expect(ended.stderr.length).toBeLessThan(500)
  })

  test('refuses realms beside each other, files that are no text, and options without sense', async () => {
    const directory = join(fixture.folder, `realms-${fixture.next()}`)
    await mkdir(directory)
    await writeFile(join(directory, 'a.json'), JSON.stringify(keycloakRealm([])))
    await writeFile(join(directory, 'b.json'), JSON.stringify(keycloakRealm([], [], { realm: 'other' })))
    const binary = join(fixture.folder, `binary-${fixture.next()}`)
    await writeFile(binary, Buffer.from([0x7b, 0xff, 0xfe]))
    const empty = join(fixture.folder, `empty-${fixture.next()}`)
    await mkdir(empty)
    for (const [args, message] of [
      [['keycloak', '--from', directory], /more than one realm/],
      [['logto', '--from', binary], /is not UTF-8/],
      [['logto', '--from', join(fixture.folder, 'none')], /cannot be read \(ENOENT\)/],
      [['keycloak', '--from', empty], /has 0 files/],
      [['keycloak', '--from', directory, '--provider', 'google'], /--provider must be/],
      [['keycloak', '--from', directory, '--apply', '--dry-run'], /exclude each other/],
    ] as const) {
      const ended = await fixture.run(...args)
      expect({ code: ended.code, stderr: ended.stderr }).toEqual({ code: 1, stderr: expect.stringMatching(message) })
    }
  })
})
