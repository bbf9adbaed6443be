import { posix } from 'node:path'
import { describe, expect, test } from 'vitest'
import { listHeadings, slugOf } from './tidy/markdown.ts'
import { readRepository } from './tidy/source-file.ts'

/**
 * Every claim of docs/comparison.md has its source: of a peer a file or address, of this service a page for users and a test.
 * What this service does not do has its reason.
 */

/** A source as the table of its area lists it. */
interface Source {
  key: string
  product: string
  file: string
  version: string
  commit: string
  read: string
}

interface Area {
  title: string
  text: string
  /** Names of the peers, as the table of features heads its columns. */
  peers: string[]
  /** The cells of each row: the feature, this service, then one for each peer. */
  rows: string[][]
  sources: Source[]
  /** The features that this service lacks, each with the reason. */
  reasons: string[][]
}

/** A cell of this service that claims nothing. */
const NO_CLAIM = /^no\b/

const PLACE = 'docs/comparison.md'
const byPath = new Map(readRepository().map((file) => [file.path, file]))
const page = byPath.get(PLACE)?.text ?? ''
const addresses = new Map(
  [...page.matchAll(/^\[(\w+)\]: (\S+)$/gm)].map(([, key = '', address = '']) => [key, address]),
)
const areas = readAreas(page)

/** The tables of a text, each as its rows of cells, the row of dashes left out. */
function readTables(text: string): string[][][] {
  return [...text.matchAll(/(?:^\|.*\n)+/gm)].map(([table]) =>
    table
      .trim()
      .split('\n')
      .filter((line) => !line.startsWith('|---'))
      .map((line) =>
        line
          .slice(1, -1)
          .split('|')
          .map((cell) => cell.trim()),
      ),
  )
}

/** The sections of the page that begin with a table of features. */
function readAreas(text: string): Area[] {
  return text
    .split(/^## /m)
    .slice(1)
    .flatMap((section) => {
      const tables = readTables(section)
      const features = tables.find(([head]) => head?.[0] === 'Feature')
      const sources = tables.find(([head]) => head?.[0] === 'Key')
      const reasons = tables.find(([head]) => head?.[1]?.startsWith('Why not'))
      if (!features) return []
      const [head = [], ...rows] = features
      return [
        {
          title: section.slice(0, section.indexOf('\n')),
          text: section,
          peers: head.slice(2),
          rows,
          reasons: (reasons ?? []).slice(1),
          sources: (sources ?? []).slice(1).map(([key = '', product = '', file = '', ...rest]) => ({
            key: listKeys(key)[0] ?? '',
            product,
            file,
            version: rest[0] ?? '',
            commit: rest[1] ?? '',
            read: rest[2] ?? '',
          })),
        },
      ]
    })
}

/** The keys of sources that a text cites. */
function listKeys(text: string): string[] {
  return [...text.matchAll(/\[(\w+)\](?!\()/g)].map(([, key = '']) => key)
}

/**
 * What a cell of this service lacks: a link to a heading of a page for users (the contract is for those who build on its rules),
 * one to a test, and none that leads nowhere.
 */
function listLacks(cell: string): string[] {
  if (NO_CLAIM.test(cell)) return []
  const links = [...cell.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link)
  const isThere = (link: string) => {
    const [target = '', anchor] = link.split('#')
    const text = byPath.get(placeOf(target))?.text
    return (
      text !== undefined && (anchor === undefined || listHeadings(text).some(({ title }) => slugOf(title) === anchor))
    )
  }
  // A section of a page for users; of a concept the page, which is one.
  const isGuide = (link: string) => /^concepts\/[\w-]+\.md$|^(?!contract\/).*\.md#/.test(link)
  const isTest = (link: string) => link.endsWith('.test.ts')
  const found = links.filter(isThere)
  return [
    ...(found.some(isGuide) ? [] : ['a guide']),
    ...(found.some(isTest) ? [] : ['a test']),
    ...links.filter((link) => /\.(?:md|ts)\b/.test(link) && !isThere(link)),
  ]
}

function placeOf(target: string): string {
  return posix.join(posix.dirname(PLACE), target)
}

test('docs/comparison.md compares webhooks, identity and realtime, with the peers of each', () => {
  expect(areas.map(({ title, peers }) => ({ title, peers }))).toEqual([
    {
      title: 'Outbound webhooks',
      peers: ['Svix server', 'Svix cloud', 'Outpost', 'Convoy community', 'Convoy licence', 'Hook0'],
    },
    { title: 'Identity', peers: ['Supabase Auth', 'Logto', 'Keycloak', 'Clerk'] },
    { title: 'Realtime', peers: ['Pusher Channels', 'Soketi', 'Laravel Reverb', 'Ably'] },
  ])
})

describe.each(areas)('the area $title', ({ text, peers, rows, sources, reasons }) => {
  test('says of each peer in each row what a source of this peer says', () => {
    const products = new Map(sources.map(({ key, product }) => [key, product]))
    const unsourced = rows.flatMap(([feature = '', , ...cells]) =>
      peers.flatMap((peer, at) => {
        const cell = cells[at] ?? ''
        const keys = listKeys(cell)
        const isOfPeer = keys.length > 0 && keys.every((key) => peer.startsWith(products.get(key) ?? '?'))
        return isOfPeer && !cell.startsWith('[') && cells.length === peers.length
          ? []
          : [`${feature}: ${peer}: ${cell}`]
      }),
    )
    expect(rows.length).toBeGreaterThan(20)
    expect(unsourced).toEqual([])
  })

  test('says of each feature that this service lacks why, and of no other', () => {
    const lacking = rows.filter(([, own = '']) => NO_CLAIM.test(own)).map(([feature]) => feature)
    expect(reasons.map(([feature]) => feature)).toEqual(lacking)
    expect(reasons.filter(([, reason = '']) => reason.length < 20)).toEqual([])
  })

  test('leads from each claim about this service to a guide and a test', () => {
    const lacking = rows.flatMap(([feature = '', own = '']) =>
      (own === '' ? ['a cell'] : listLacks(own)).map((lack) => `${feature}: ${lack}`),
    )
    expect(lacking).toEqual([])
  })

  test('has no feature twice', () => {
    const features = rows.map(([feature]) => feature)
    expect(features).toEqual([...new Set(features)])
  })

  test('lists its sources with all that identifies them, and each is cited', () => {
    const body = text.slice(0, text.indexOf('### Sources'))
    const cited = new Set(listKeys(body))
    const intro = page.slice(0, page.indexOf('\n## Outbound'))
    const faults = sources.flatMap((source) => {
      const address = addresses.get(source.key) ?? ''
      const [repository = '', path = ''] = source.file.split(': ')
      return [
        ...(Object.values(source).includes('') ? [`${source.key}: a cell is empty`] : []),
        ...(cited.has(source.key) || listKeys(intro).includes(source.key) ? [] : [`${source.key}: not cited`]),
        ...([repository, path, source.commit].every((part) => part !== '' && address.includes(part))
          ? []
          : [`${source.key}: ${address} is another file`]),
      ]
    })
    expect(faults).toEqual([])
    expect([...cited].filter((key) => !sources.some((source) => source.key === key))).toEqual([])
  })

  test('says where a peer is better, each time with a source', () => {
    const [, better = ''] = /### Where a peer is better: [^\n]+\n\n([\s\S]*?)\n\n###/.exec(text) ?? []
    const points = better.split(/^- /m).slice(1)
    expect(points.length).toBeGreaterThan(5)
    expect(points.filter((point) => listKeys(point).length === 0)).toEqual([])
  })
})

describe('a claim about this service', () => {
  const guide = '[guide](guides/webhooks.md#mails)'
  const rule = '[contract](contract/webhooks.md#signature)'
  const proof = '[test](../test/comparison.test.ts)'

  test('is complete with a guide and a test, and none with a no', () => {
    expect(
      [
        ...[`yes: ${guide}, ${rule}, ${proof}`, `yes: ${guide}, ${proof}`, 'no', 'no: ids only'],
        `yes: [docs](concepts/realtime.md), ${proof}`,
      ].flatMap(listLacks),
    ).toEqual([])
  })

  test('lacks what is missing, or leads nowhere', () => {
    expect(listLacks('yes')).toEqual(['a guide', 'a test'])
    expect(listLacks('not yet')).toEqual(['a guide', 'a test'])
    expect(listLacks(`yes: ${rule}, ${proof}`)).toEqual(['a guide'])
    expect(listLacks(`yes: ${guide}`)).toEqual(['a test'])
    expect(listLacks(`yes: [guide](guides/webhooks.md), ${proof}`)).toEqual(['a guide'])
    expect(listLacks(`yes: [guide](guides/webhooks.md#nothing), ${proof}`)).toEqual([
      'a guide',
      'guides/webhooks.md#nothing',
    ])
    expect(listLacks(`yes: ${guide}, ${proof}, [contract](contract/webhooks.md#nothing)`)).toEqual([
      'contract/webhooks.md#nothing',
    ])
    expect(listLacks(`yes: ${guide}, [test](../test/nothing.test.ts)`)).toEqual(['a test', '../test/nothing.test.ts'])
  })
})
