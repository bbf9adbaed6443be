import { Button, Menu, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { Dialog } from './dialog.tsx'
import { download } from './download.ts'
import { ProblemCard } from './problem.tsx'

/** The forms of an export, with their media types. */
const FORMATS = { csv: 'text/csv', json: 'application/json' } as const

type Format = keyof typeof FORMATS

interface ExportMenuProps {
  label: string
  /** Name of the file without its ending. */
  name: string
  /** Bound of the file, in words. */
  note?: string
  /** Reads the file: text, or JSON that the client has parsed. */
  load: (format: Format) => Promise<unknown>
}

/** Saves the rows that a list shows as CSV or JSON. */
export function ExportMenu({ label, name, note, load }: ExportMenuProps) {
  const { t } = useTranslation()
  const run = useMutation({
    mutationFn: async (format: Format) => {
      const content = await load(format)
      const text = typeof content === 'string' ? content : JSON.stringify(content, null, 2)
      download(text, `${name}.${format}`, FORMATS[format])
    },
  })
  return (
    <>
      <Menu position="bottom-end">
        <Menu.Target>
          <Button variant="default" size="compact-sm" loading={run.isPending}>
            {label}
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item onClick={() => run.mutate('csv')}>CSV</Menu.Item>
          <Menu.Item onClick={() => run.mutate('json')}>JSON</Menu.Item>
          {note !== undefined && (
            <Text size="xs" c="dimmed" px="sm" py={4} maw={240}>
              {note}
            </Text>
          )}
        </Menu.Dropdown>
      </Menu>
      <Dialog title={label} isOpen={run.isError} onClose={() => run.reset()}>
        <ProblemCard error={run.error} onRetry={() => run.mutate(run.variables ?? 'csv')} />
      </Dialog>
      <span className="visually-hidden" role="status">
        {run.isSuccess ? t('export.done') : ''}
      </span>
    </>
  )
}
