import { expect, test } from 'vitest'
import { listStatementEdits } from './statement-mutants.ts'

/** Each change of a statement, as what is replaced and by what. */
const changesOf = (sql: string) =>
  listStatementEdits(sql).map(({ start, end, replacement }) => `${sql.slice(start, end)} -> ${replacement}`)

test.each<[string, string, string[]]>([
  ['a lock is not taken', 'select 1 from a where x for no key update', ['x -> true', 'for no key update -> ']],
  [
    'a lock is waited for',
    'select 1 from a for update of a skip locked',
    ['for update of a skip locked -> ', 'skip locked -> '],
  ],
  [
    'each operand is left out, and each bound is one off',
    'where a = $account and b < $before and (c is null or d >= 0)',
    [
      'a = $account -> true',
      'b < $before -> true',
      '< -> <=',
      '(c is null or d >= 0) -> true',
      'c is null -> false',
      'd >= 0 -> false',
      '>= -> >',
    ],
  ],
  ['a part that is a condition', 'w.a and not w.b', ['w.a -> true', 'not -> ', 'not w.b -> true']],
  [
    'each assignment is missing',
    'update a set x = $x, y = y + 1 where z = $z',
    ['x = $x, -> ', ', y = y + 1 -> ', '+ -> -', 'z = $z -> true'],
  ],
  ['each element is missing', "where s in ('a', 'b')", ["s in ('a', 'b') -> true", "'a', -> ", ", 'b' -> "]],
  ['the opposite of what exists', 'select exists (select from a)', ['exists -> not exists']],
  ['the opposite of a value', 'select a is null, b is not null, c = 1', ['is -> is not', 'not -> ', '= -> <>']],
  ['the other end', 'select least(a, b) from c order by d desc', ['least -> greatest', 'desc -> ']],
  [
    'words that are no condition are left alone',
    'insert into a (b) select x from c on conflict (b) do update set d = extract(epoch from e), f = 1',
    ['d = extract(epoch from e), -> ', ', f = 1 -> '],
  ],
  [
    'the two ends of between are one operand',
    'where a between 1 and 2 and b',
    ['a between 1 and 2 -> true', 'b -> true'],
  ],
  [
    'a placeholder is no word of SQL',
    'where a < $from and b = $limit',
    ['a < $from -> true', '< -> <=', 'b = $limit -> true'],
  ],
  [
    'a condition ends before what is done on a conflict',
    'insert into a (b) select x from c where d and e on conflict (b) do nothing',
    ['d -> true', 'e -> true'],
  ],
  [
    'an operator of several characters is no bound',
    'where a <@ b and c << 32 = d',
    ['a <@ b -> true', 'c << 32 = d -> true'],
  ],
  ['is distinct from', 'where a is distinct from b and c', ['a is distinct from b -> true', 'c -> true']],
])('%s', (_name, sql, changes) => {
  expect(changesOf(sql)).toEqual(changes)
})
