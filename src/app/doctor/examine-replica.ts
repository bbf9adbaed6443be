import type { DatabaseFacts } from '../../operations/doctor/database-findings.ts'
import { readReplicaFacts } from '../../operations/doctor/doctor.store.ts'
import type { Finding } from '../../operations/doctor/finding.ts'
import { classifyReplica } from '../../operations/doctor/replica-findings.ts'
import { openDatabase } from '../../postgres/statement/database.ts'
import { describeFatal } from '../log/fatal.ts'

/** Examines the replica of `DATABASE_READ_URL`; without one there is nothing to find. */
export async function examineReplica(
  connectionString: string | undefined,
  primary: Pick<DatabaseFacts, 'systemId'>,
): Promise<Finding[]> {
  if (connectionString === undefined) return []
  const pool = openDatabase({ connectionString, size: 1, applicationName: 'signalbox doctor', onError: () => {} })
  try {
    return classifyReplica(await readReplicaFacts(pool.db), primary)
  } catch (error) {
    return classifyReplica({ error: describeFatal(error).replaceAll('DATABASE_URL', 'DATABASE_READ_URL') }, primary)
  } finally {
    await pool.close()
  }
}
