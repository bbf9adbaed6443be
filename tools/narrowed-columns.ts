import pg from 'pg'

/** The nouns of ids (`src/base/id.ts`) that are not the names of their tables. */
const NOUNS: Readonly<Record<string, string>> = {
  account_invitation: 'invitation',
  alert_incident: 'incident',
  audit_log: 'audit entry',
  event: 'event type',
  event_occurrence: 'event',
  mail_outbox: 'mail',
  webhook_dispatch_ended: 'dispatch',
  webhook_dispatch_open: 'dispatch',
  webhook_event: 'subscription',
}

interface Narrowed {
  table: string
  column: string
  /** The table whose id the column holds. */
  refers: string | null
  /** The words of a `check (column in (...))`, as the server prints it. */
  words: string | null
}

/** Reads keys of one column (primary ones by the name `document_id`) and checks of one column against a list of words. */
const READ = `
  select t.relname as "table", a.attname as "column", r.relname as refers,
    case when c.contype = 'c' then pg_get_constraintdef(c.oid) end as words
  from pg_constraint c join pg_class t on t.oid = c.conrelid
    join pg_attribute a on a.attrelid = c.conrelid and a.attnum = c.conkey[1]
    left join pg_class r on r.oid = case c.contype when 'p' then c.conrelid when 'f' then c.confrelid end
  where c.connamespace = 'public'::regnamespace and cardinality(c.conkey) = 1 and (
    (c.contype = 'p' and a.attname = 'document_id')
    or (c.contype = 'f' and exists (select from pg_attribute k
      where k.attrelid = c.confrelid and k.attnum = c.confkey[1] and k.attname = 'document_id'))
    or (c.contype = 'c' and pg_get_constraintdef(c.oid) ~ '^CHECK \\(\\(\\(?\\w+ = ANY \\(ARRAY\\[[^]]*\\]\\)\\)?\\)\\)$'))
  order by t.relname collate "C", a.attname collate "C"`

/**
 * The types of columns that the schema narrows: ids by the tables that their keys name, words by checks. Appended to the types
 * of kysely-codegen, which have a plain `string` for all of them.
 */
export async function renderNarrowedColumns(connectionString: string): Promise<string> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  const { rows } = await client.query<Narrowed>(READ).finally(() => client.end())
  const tables = Map.groupBy(rows, ({ table }) => table)
  const members = [...tables].map(([table, columns]) => {
    const types = new Map(columns.map((column) => [column.column, renderType(column)]))
    return `  ${table}: {\n${[...types].map(([column, type]) => `    ${column}: ${type};\n`).join('')}  };\n`
  })
  return `\n/** The types of columns that keys and checks of the schema narrow. */\nexport interface Narrowed {\n${members.join('')}}\n`
}

function renderType({ refers, words }: Narrowed): string {
  if (refers) return `Id<"${NOUNS[refers] ?? refers.replaceAll('_', ' ')}">`
  return [...(words ?? '').matchAll(/'([^']*)'::text/g)].map(([, word]) => `"${word}"`).join(' | ')
}
