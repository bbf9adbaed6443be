import { CELL_NAME } from '../../postgres/cell/cell-name.ts'
import { integer, list, postgresUrl, replicaUrl } from './config-parsers.ts'
import { secretVariable, variable } from './variable.ts'

const bytes = integer(1_000_000, Number.MAX_SAFE_INTEGER)

/** `c1=500000000000,c2=250000000000`: bytes by the name of a cell. */
function bytesByCell(value: string): ReadonlyMap<string, number> {
  const sizes = new Map<string, number>()
  for (const part of list(value)) {
    const [, name = '', size = ''] = /^([^=]+)=(.+)$/.exec(part) ?? []
    if (!CELL_NAME.test(name) || sizes.has(name))
      throw new Error('must list each cell once with its bytes, such as c1=500000000000,c2=250000000000')
    sizes.set(name, bytes(size))
  }
  return sizes
}

/** The settings of the database, and of a start and a stop that wait. */
export const DATABASE_VARIABLES = {
  DATABASE_URL: secretVariable(
    postgresUrl,
    'an embedded PostgreSQL under SIGNALBOX_DATA_DIR',
    'Any PostgreSQL 15 or newer. With several hosts (`one:5432,two:5432`) the primary among them.',
  ),
  DATABASE_LISTEN_URL: secretVariable(
    postgresUrl,
    'DATABASE_URL',
    'The database for LISTEN and migrations: PostgreSQL itself, when DATABASE_URL is a pooler in transaction mode.',
  ),
  DATABASE_READ_URL: secretVariable(
    replicaUrl,
    'none: the primary',
    'A streaming replica for lists, dashboards and exports. They read the primary while it lacks something.',
  ),
  DATABASE_READ_LAG_MS: variable(
    integer(0, 10_000),
    '500',
    'How long a read waits for the replica to have what the primary had when the read began; then it reads the primary.',
  ),
  DATABASE_POOL_SIZE: variable(
    integer(2, 200),
    '10',
    'Limit of connections of one process for requests. A connection that nothing uses is closed after ten minutes.',
  ),
  DATABASE_READ_POOL_SIZE: variable(
    integer(2, 200),
    '5',
    'Limit of connections of one process for lists and other reads that may be long. One of them is left to plain pages.',
  ),
  DATABASE_WORKER_POOL_SIZE: variable(
    integer(2, 200),
    '5',
    'Limit of connections of one process for background work: router, dispatcher, maintenance.',
  ),
  DATABASE_WAIT_SECONDS: variable(
    integer(0, 3600),
    '60',
    'How long a start waits for a database that cannot be reached or takes no changes. 0: it tries once.',
  ),
  DATABASE_DISK_BYTES: variable(
    bytes,
    'what the disk of the embedded PostgreSQL has',
    'What the database may take on its disk, for the forecast of `signalbox doctor` and `/metrics`: of another PostgreSQL the service does not see the disk.',
  ),
  CELL_DISK_BYTES: variable(
    bytesByCell,
    'not known',
    'The same of cells, by name: `c1=500000000000,c2=250000000000`. Without that of a cell its disk has no forecast.',
  ),
  SHUTDOWN_DELAY_SECONDS: variable(
    integer(0, 300),
    '0',
    'How long a process that was asked to stop still takes requests, while `/readyz` answers 503: as long as balancers take to learn of it.',
  ),
}
