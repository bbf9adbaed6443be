import pg from 'pg'

/** A statement with its name, text and values. */
export interface PreparedStatement {
  name: string
  text: string
  values: unknown[]
}

/** The columns of a result as PostgreSQL describes them (`RowDescription`). Only the driver looks into it. */
type RowDescription = object

/** The columns of the statements that were prepared on a connection, by name; undefined for one that returns no rows. */
export type KnownColumns = Map<string, RowDescription | undefined>

type Callback = (error: Error | null, result: pg.QueryResult) => void

/** The used part of the driver's connection. The driver's types omit it, and the real `Query`. */
interface DriverConnection {
  parsedStatements: Record<string, string>
  describe(what: object): void
}

interface DriverQuery extends pg.Submittable {
  name: string
  prepare(connection: DriverConnection): void
  handleRowDescription(description: RowDescription): void
  handleReadyForQuery(connection: DriverConnection): void
}

const DriverQuery = pg.Query as unknown as new (text: string, values: unknown[], callback: Callback) => DriverQuery

/** Connections as a statement sees them whose columns are known. */
const withoutDescribe = new WeakMap<DriverConnection, DriverConnection>()

function skipDescribe(connection: DriverConnection): DriverConnection {
  const cached = withoutDescribe.get(connection)
  if (cached) return cached
  const view: DriverConnection = Object.create(connection, { describe: { value: () => {} } })
  withoutDescribe.set(connection, view)
  return view
}

/**
 * A statement of the driver whose columns PostgreSQL describes with its first use on a connection only. A prepared
 * statement cannot change them (PostgreSQL refuses it, see `isStalePlan`), and describing them again is a fifth of what
 * PostgreSQL does for a short read.
 */
class DescribedOnce extends DriverQuery {
  readonly #columns: KnownColumns

  constructor({ name, text, values }: PreparedStatement, columns: KnownColumns, callback: Callback) {
    super(text, values, callback)
    this.name = name
    this.#columns = columns
  }

  override prepare(connection: DriverConnection): void {
    const isKnown = connection.parsedStatements[this.name] !== undefined && this.#columns.has(this.name)
    super.prepare(isKnown ? skipDescribe(connection) : connection)
    const columns = isKnown && this.#columns.get(this.name)
    if (columns) super.handleRowDescription(columns)
  }

  override handleRowDescription(description: RowDescription): void {
    this.#columns.set(this.name, description)
    super.handleRowDescription(description)
  }

  override handleReadyForQuery(connection: DriverConnection): void {
    if (!this.#columns.has(this.name)) this.#columns.set(this.name, undefined)
    super.handleReadyForQuery(connection)
  }
}

/** Sends a statement on a connection, prepared under its name. Rejects with the error of PostgreSQL or of the connection. */
export function queryPrepared(
  client: pg.ClientBase,
  statement: PreparedStatement,
  columns: KnownColumns,
): Promise<pg.QueryResult> {
  return new Promise((resolve, reject) => {
    client.query(new DescribedOnce(statement, columns, (error, result) => (error ? reject(error) : resolve(result))))
  })
}
