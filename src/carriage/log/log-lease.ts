/**
 * The lease of a process on the outbox or the intake of a database, as parts of statements, by the clock of the database.
 * `column` names the process, and its parameter; `leaseMs` is the other parameter.
 */
export function describeLease(column: string): { take: string; mayTake: string } {
  return {
    take: `${column} = $${column}, lease_until = clock_timestamp() + $leaseMs::int * interval '1 millisecond'`,
    mayTake: `(${column} is null or ${column} = $${column} or lease_until < clock_timestamp())`,
  }
}
