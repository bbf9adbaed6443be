/**
 * Exceptions from rules: the rule, the subject of the finding, the reason. The lists may shrink and may not
 * grow without a reason a reviewer accepts; a test removes what is not needed any more.
 */
export const EXCEPTIONS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'no feature uses the store of another': {
    'src/carriage/cell/add-cell.ts -> src/postgres/cell/cell.store.ts':
      'the directory of cells lies below every area, and its commands are the only ones that change it',
    'src/carriage/cell/cell-status.ts -> src/postgres/cell/cell.store.ts': 'as above',
    'src/carriage/cell/remove-cell.ts -> src/postgres/cell/cell.store.ts': 'as above',
    'src/carriage/intake/intake.store.ts -> src/event/occurrence/event.store.ts':
      'writes events of other databases with the columns of a recorded one, in the statement that moves its position',
    'src/identity/sign-in/local/local-login.ts -> src/identity/user-record/user.store.ts':
      'credentials are read for a sign-in only, and by no other operation',
    'src/identity/social-login/provider/sample-user.ts -> src/identity/user-record/user.store.ts':
      'sets up a disabled sample user in development, on behalf of no caller',
    'src/operations/dashboard/dashboard.store.ts -> src/webhook/ledger/dispatch.store.ts':
      'reads ledger rows and maps them as the ledger does',
    'src/operations/metrics/shared-metrics.ts -> src/webhook/delivery/delivery-count.store.ts':
      'a scrape reads the totals and decides nothing',
    'src/operations/metrics/shared-metrics.ts -> src/operations/health/health.store.ts':
      'a scrape reads the same facts as the health component',
    'src/webhook/event-set/event-set.store.ts -> src/event/catalogue/catalogue.store.ts':
      'joins event types and maps them as the catalogue does',
    'src/identity/throttle/login-throttle.store.ts -> src/identity/user-record/user.store.ts':
      'locks the subjects of an attempt and reads the user that it names in one statement',
    'src/identity/address-proof/address-proof.store.ts -> src/identity/user-record/user.store.ts':
      'counts a proof and reads the user of its address in one statement, the same for every address',
    'src/identity/address-proof/address-proof.store.ts -> src/identity/account/invitation/invitation.store.ts':
      'as above, whether it is invited',
    'src/identity/user/managed-user.store.ts -> src/identity/access/delegation.store.ts':
      'locks a user and reads behind the lock what it holds, in one statement',
    'src/identity/user/managed-user.store.ts -> src/identity/access/role.store.ts':
      'as above, of the roles that it is to have',
    'src/identity/account/account-member.store.ts -> src/identity/access/delegation.store.ts': 'as above',
    'src/identity/account/account-member.store.ts -> src/identity/access/role.store.ts':
      'as above, of the roles of a membership',
    'src/identity/account/invitation/invitation.store.ts -> src/identity/access/delegation.store.ts':
      'reads what the inviter holds',
    'src/identity/session/list/session-list.store.ts -> src/identity/access/delegation.store.ts':
      'reads a session and what its user holds',
    'src/identity/social-login/user/identity.store.ts -> src/identity/access/delegation.store.ts':
      'locks the ways in of a user and reads behind the locks what it holds, in one statement',
    'src/identity/sso/exchange.store.ts -> src/identity/session/session.store.ts':
      'takes the nonce and reads the session in one statement, after the lock',
  },
  'after three parameters comes an object': {
    'src/webhook/replay/replay-job.ts': 'the facts a pure judgement is given',
    'src/outbound/send/send-request.ts': 'an error has a class and a code wherever it is named',
    'src/http/reference/docs-schema.ts': 'a recursive walk carries its place',
    'src/http/listing/listing.ts': 'query, listing, fields and source are the one vocabulary of every list',
    'src/http/pipeline/pipeline.ts': 'as above',
  },
  'time comes in as an argument': {
    'src/outbound/own-fault/loop-watch.ts':
      'bounds connections and look-ups in real time, as the network runs in; decides nothing',
    'src/app/doctor/network.ts': 'as above',
    'src/outbound/send/http-sender.ts': 'the deadline of a POST, as above; its measuring clock is an option',
    'src/http/route/request-context.ts':
      'bounds how long the connection of a request that waits may be idle, as the network runs in; decides nothing',
    'src/http/server/unreadable.ts': 'ends a connection in real time that does not take its answer; decides nothing',
    'src/postgres/connection/pool-client.ts': 'ends a connection that is silent in real time; decides nothing',
    'src/postgres/connection/pool-guard.ts': 'since when a connection rests, in real time, as the network runs in',
    'src/postgres/connection/notify.ts': 'bounds for how long a proof holds in real time, as the network runs in',
    'src/postgres/migration/migrate.ts': 'tools and tests migrate without a clock; the service passes its own',
    'src/app/stop-limit.ts': 'the last resort when an orderly stop hangs',
    'src/tracing/span-export.ts': 'bounds a request to the collector in real time; decides nothing',
  },
  'SQL stands in stores': {
    'src/http/listing/filter.ts': 'builds the conditions of every list; names no table',
    'src/http/listing/listing.ts': 'builds the order and the page of every list; names no table',
  },
  "no path of somebody's machine": {
    'src/postgres/embedded/embedded.ts': 'where programs are staged for another user; the same on every Unix',
  },
}
