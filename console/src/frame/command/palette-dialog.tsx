import { Alert, Stack, Text, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type KeyboardEvent, type SyntheticEvent, useId, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Dialog } from '../../parts/dialog.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { useAccess } from '../session.tsx'
import { type Command, filterCommands } from './filter-commands.ts'
import { find, type Place } from './find.ts'
import { listRecent } from './recent.ts'

interface PaletteDialogProps {
  commands: readonly Command[]
  isOpen: boolean
  onClose: () => void
}

/** The box of the palette, with what it finds. */
export function PaletteDialog({ commands, isOpen, onClose }: PaletteDialogProps) {
  const { t } = useTranslation()
  return (
    <Dialog title={t('search.title')} isOpen={isOpen} onClose={onClose}>
      {isOpen && <PaletteForm commands={commands} onDone={onClose} />}
    </Dialog>
  )
}

function PaletteForm({ commands, onDone }: { commands: readonly Command[]; onDone: () => void }) {
  const { t } = useTranslation()
  const navigate = useNavigate()
  const access = useAccess()
  const listId = useId()
  const [text, setText] = useState('')
  const [chosen, setChosen] = useState(0)
  const go = (place: Place) => {
    onDone()
    void navigate(place)
  }
  const search = useMutation({
    mutationFn: () => find(text, access),
    onSuccess: (found) => found && go(found),
  })
  const recent = listRecent().map(({ path, title }) => ({
    label: title,
    group: t('search.recent'),
    run: () => void navigate({ to: path.replace(/^\/console/, '') }),
  }))
  const known = filterCommands([...recent, ...commands], text)
  const look = { label: t('search.look', { text: text.trim() }), group: t('search.find'), run: () => search.mutate() }
  const options = text.trim() === '' ? known : [...known, look]
  const run = (command: Command | undefined) => {
    if (command !== look) onDone()
    command?.run()
  }
  const submit = (event: SyntheticEvent) => {
    event.preventDefault()
    run(options[chosen])
  }
  const move = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
    if (step === 0 || options.length === 0) return
    event.preventDefault()
    setChosen((chosen + step + options.length) % options.length)
  }
  return (
    <form onSubmit={submit}>
      <Stack>
        <TextInput
          label={t('search.label')}
          description={t('search.hint')}
          value={text}
          onChange={({ currentTarget }) => {
            setText(currentTarget.value)
            setChosen(0)
          }}
          onKeyDown={move}
          autoComplete="off"
          role="combobox"
          aria-expanded
          aria-controls={listId}
          aria-activedescendant={options.length > 0 ? `${listId}-${chosen}` : undefined}
          data-autofocus
        />
        {search.isSuccess && search.data === undefined && (
          <Alert color="gray" role="status">
            <Text size="sm">{t('search.none')}</Text>
          </Alert>
        )}
        {search.isError && <ProblemCard error={search.error} />}
        <Options id={listId} options={options} chosen={chosen} onRun={run} />
      </Stack>
    </form>
  )
}

interface OptionsProps {
  id: string
  options: readonly Command[]
  chosen: number
  onRun: (command: Command) => void
}

function Options({ id, options, chosen, onRun }: OptionsProps) {
  const { t } = useTranslation()
  const groups = [...Map.groupBy(options, ({ group }) => group)]
  return (
    <div id={id} role="listbox" aria-label={t('search.title')} className="options">
      {groups.map(([group, members]) => (
        // biome-ignore lint/a11y/useSemanticElements: a group of a list box, which has no element
        <div key={group} role="group" aria-label={group}>
          <Text size="xs" c="dimmed" fw={600} px="xs" pt="xs" aria-hidden>
            {group}
          </Text>
          {members.map((command) => {
            const index = options.indexOf(command)
            return (
              // biome-ignore lint/a11y/useKeyWithClickEvents lint/a11y/useFocusableInteractive: the field has the focus and the keys (ARIA combobox)
              <div
                key={`${command.label} ${index}`}
                id={`${id}-${index}`}
                role="option"
                aria-selected={index === chosen}
                ref={(element) => {
                  if (index === chosen) element?.scrollIntoView({ block: 'nearest' })
                }}
                onClick={() => onRun(command)}
              >
                {command.label}
              </div>
            )
          })}
        </div>
      ))}
    </div>
  )
}
