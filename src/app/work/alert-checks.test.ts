import { expect, test } from 'vitest'
import type { CellStatus } from '../../carriage/cell/cell-status.ts'
import { listIncidentChecks } from './alert-checks.ts'

const SINCE = Date.UTC(2026, 8, 11, 12)

test('cells are an incident when something is to be done for a minute, and it ends when nothing is', async () => {
  const away = { name: 'one', is_reachable: false } as CellStatus['databases'][number]
  const wrong: CellStatus = { databases: [away], moves: [], interrupted: 0, remedies: ['one cannot be reached.'] }
  let status: CellStatus | undefined
  const checks = listIncidentChecks({
    ...{
      keyIds: [],
      hasEventLog: true,
      readCellFacts: async () => status && { status, figures: new Map() },
      logger: undefined as never,
    },
    readRealtimeHealth: async () => Promise.reject(new Error('not asked')),
  })
  const check = checks.find(({ incident }) => incident === 'cells-broken')
  const at = async (seconds: number) => {
    const now = new Date(SINCE + seconds * 1_000)
    const lasting = [{ subject: 'cells', since: new Date(SINCE) }] as never
    const found = await check!.check({ db: undefined as never, now, lasting })
    return { begun: found.begun.map(({ summary }) => summary), ended: found.ended }
  }
  expect(await at(400)).toEqual({ begun: [], ended: ['cells'] })
  status = wrong
  expect(await at(410)).toEqual({ begun: [], ended: [] })
  expect(await at(469)).toEqual({ begun: [], ended: [] })
  const summary = '1 things are to be done about the cells: run signalbox cell status. Away: one.'
  expect(await at(470)).toEqual({ begun: [summary], ended: [] })
  status = { ...wrong, databases: [], remedies: [] }
  expect(await at(480)).toEqual({ begun: [], ended: ['cells'] })
  status = wrong
  expect(await at(490)).toEqual({ begun: [], ended: [] })
})
