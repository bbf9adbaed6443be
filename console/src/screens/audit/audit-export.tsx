import { Button, Menu, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useMutation } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { download } from '../../parts/download.ts'
import { ProblemCard } from '../../parts/problem.tsx'
import { toCsvLine } from './audit-filters.ts'

type Entry = Schemas['AuditEntry']

/** Entries that one file holds at most. */
const EXPORT_LIMIT = 10_000

const COLUMNS = [
  'created_at',
  'action',
  'outcome',
  'user',
  'session',
  'api_key',
  'client_id',
  'account',
  'target',
  'address',
  'request_id',
  'count',
  'detail',
] as const satisfies readonly (keyof Entry)[]

/** Reads the entries of the filters, the newest first, up to the limit of a file. */
async function readEntries(filters: readonly string[]): Promise<Entry[]> {
  const entries: Entry[] = []
  const query = { sort: '-created_at' as const, page_size: 200, ...(filters.length > 0 && { filters: [...filters] }) }
  for await (const entry of api.audit.auditLogFindAll.each({ query })) {
    entries.push(entry)
    if (entries.length === EXPORT_LIMIT) break
  }
  return entries
}

/** Saves the entries of the filters as a file. */
export function AuditExport({ filters }: { filters: readonly string[] }) {
  const { t } = useTranslation()
  const run = useMutation({
    mutationFn: async (format: 'csv' | 'ndjson') => {
      const entries = await readEntries(filters)
      if (format === 'ndjson')
        return download(
          `${entries.map((entry) => JSON.stringify(entry)).join('\n')}\n`,
          'audit-log.ndjson',
          'application/x-ndjson',
        )
      const lines = [toCsvLine(COLUMNS), ...entries.map((entry) => toCsvLine(COLUMNS.map((name) => entry[name])))]
      download(`${lines.join('\r\n')}\r\n`, 'audit-log.csv', 'text/csv')
    },
  })
  return (
    <>
      <Menu position="bottom-end">
        <Menu.Target>
          <Button size="compact-md" variant="default" loading={run.isPending}>
            {t('audit.export')}
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item onClick={() => run.mutate('csv')}>CSV</Menu.Item>
          <Menu.Item onClick={() => run.mutate('ndjson')}>NDJSON</Menu.Item>
          <Text size="xs" c="dimmed" px="sm" py={4} maw={240}>
            {t('audit.export-limit', { limit: EXPORT_LIMIT })}
          </Text>
        </Menu.Dropdown>
      </Menu>
      {run.isError && <ProblemCard error={run.error} />}
    </>
  )
}
