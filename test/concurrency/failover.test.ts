import { expect, test } from 'vitest'
import { startFailover } from '../harness/database/failover.ts'

test('try', async () => {
  const t0 = performance.now()
  await using servers = await startFailover('synchronous')
  console.log('up', performance.now() - t0)
  await servers.primary.ask('create table t (id int)')
  await servers.primary.ask('insert into t values (1)')
  await servers.primary.kill()
  const t1 = performance.now()
  await servers.promote()
  console.log('promoted', performance.now() - t1)
  console.log(await servers.standby.ask("select pg_walfile_name(pg_current_wal_lsn()), (select timeline_id from pg_control_checkpoint()), ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int as timeline"))
  const old = await servers.primary.restart()
  console.log(await old.ask("select pg_is_in_recovery()"))
  expect(1).toBe(1)
})
