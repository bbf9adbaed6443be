import { Button, Checkbox, Fieldset, Group, SimpleGrid, Skeleton, Stack, Text, TextInput } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { ProblemCard } from '../../parts/problem.tsx'
import { Scroll } from '../../parts/scroll/scroll.tsx'
import { groupTypes } from '../catalogue/filter-types.ts'

/** Reads every active event type, once for all pickers. */
async function readEventTypes(signal: AbortSignal): Promise<Schemas['EventType'][]> {
  const query = { filters: ['is_actived|eq|true'], sort: 'internal' as const, page_size: 200 }
  const types: Schemas['EventType'][] = []
  for await (const type of api.webhook.eventFindAll.each({ query, signal })) types.push(type)
  return types
}

/** Every webhook gets it, whatever it subscribes to. */
const ALWAYS = 'webhook.test'

/** Chooses event types, by the resource that they are of. */
export function EventPicker({
  chosen,
  before = chosen,
  onChange,
  isGlobal,
}: {
  chosen: ReadonlySet<string>
  /** The set that is edited; what differs from it is marked. Default: nothing is. */
  before?: ReadonlySet<string>
  onChange: (chosen: Set<string>) => void
  /** Whether the webhook is global: others never get events without an account. */
  isGlobal: boolean
}) {
  const { t } = useTranslation()
  const [text, setText] = useState('')
  const [first] = useState(before)
  const types = useQuery({
    queryKey: ['event-types'],
    queryFn: ({ signal }) => readEventTypes(signal),
    staleTime: 60_000,
  })
  if (types.isPending) return <Skeleton height={240} />
  if (types.isError) return <ProblemCard error={types.error} onRetry={() => void types.refetch()} />
  const shown = types.data.filter(({ internal }) => internal !== ALWAYS && internal.includes(text.trim()))
  // Groups do not move while their types are chosen.
  const groups = groupTypes(shown).sort((one, other) => rank(one, first) - rank(other, first))
  const set = (names: readonly string[], isChosen: boolean) => {
    const next = new Set(chosen)
    for (const name of names) isChosen ? next.add(name) : next.delete(name)
    onChange(next)
  }
  return (
    <Stack>
      <Group justify="space-between" align="flex-end">
        <TextInput
          label={t('picker.search')}
          value={text}
          onChange={({ currentTarget }) => setText(currentTarget.value)}
          autoComplete="off"
        />
        <Text role="status" size="sm">
          {t('picker.count', { count: chosen.size })}
        </Text>
      </Group>
      <Scroll className="picker" label={t('create.events')}>
        <Stack gap="sm">
          {groups.map(({ group, resource, members }) => (
            <Resource
              key={`${group} ${resource}`}
              {...{ group, resource, members, chosen, before, isGlobal, onSet: set }}
            />
          ))}
        </Stack>
      </Scroll>
    </Stack>
  )
}

/** 0 for a group that holds one of `chosen`, so that it comes first, else 1. Pure. */
function rank({ members }: { members: readonly Schemas['EventType'][] }, chosen: ReadonlySet<string>): number {
  return members.some(({ internal }) => chosen.has(internal)) ? 0 : 1
}

interface ResourceProps {
  /** Heading that they are listed under; empty for none. */
  group: string
  resource: string
  members: readonly Schemas['EventType'][]
  chosen: ReadonlySet<string>
  before: ReadonlySet<string>
  isGlobal: boolean
  onSet: (names: readonly string[], isChosen: boolean) => void
}

/** The event types of one resource. */
function Resource({ group, resource, members, chosen, before, isGlobal, onSet }: ResourceProps) {
  const { t } = useTranslation()
  const names = members.map(({ internal }) => internal)
  const isWhole = names.every((name) => chosen.has(name))
  const describe = ({ never, remedy }: { never: boolean; remedy: string | null }) => {
    const notes = [never && t('picker.never'), remedy !== null && t('picker.deprecated', { remedy })]
    return notes.filter((note) => note !== false).join(' ') || undefined
  }
  return (
    <Fieldset
      legend={
        <Group gap="xs">
          {group === '' || group === resource ? resource : `${group} · ${resource}`}
          <Button size="compact-xs" variant="subtle" onClick={() => onSet(names, !isWhole)}>
            {isWhole ? t('picker.none-of', { resource }) : t('picker.all-of', { resource })}
          </Button>
        </Group>
      }
    >
      <SimpleGrid cols={{ base: 1, xs: 2, md: 3 }} spacing="xs">
        {members.map(({ internal, account_scope, deprecation_remedy: remedy }) => (
          <Checkbox
            key={internal}
            label={
              <span className="change" data-change={changeOf(internal, before, chosen)}>
                {internal}
              </span>
            }
            description={describe({ never: !isGlobal && account_scope === 'none', remedy })}
            checked={chosen.has(internal)}
            onChange={({ currentTarget }) => onSet([internal], currentTarget.checked)}
          />
        ))}
      </SimpleGrid>
    </Fieldset>
  )
}

function changeOf(name: string, before: ReadonlySet<string>, chosen: ReadonlySet<string>) {
  if (before.has(name) === chosen.has(name)) return undefined
  return chosen.has(name) ? 'added' : 'removed'
}
