-- additive
-- Publishing from outside, the list of events, and bulk replays as tracked jobs (D68, D71).

-- A key of a publisher and the event it stands for: the same key within a day publishes nothing a second time.
create table publish_key (
  caller text not null,
  key text not null,
  content_hash bytea not null,
  event_id uuid not null,
  created_at timestamptz(3) not null,
  primary key (caller, key)
);
create index publish_key_created_idx on publish_key (created_at);

-- Events are listed newest first; the sweep of old ones reads the same index from its other end.
create index event_occurrence_listed_idx on event_occurrence (created_at desc, document_id desc);
drop index event_occurrence_created_idx;
-- "What happened to this resource": without it a rare id would read every event that is kept.
create index event_occurrence_resource_idx on event_occurrence (resource_id, created_at desc) where resource_id is not null;

create table replay_job (
  document_id uuid primary key,
  status text not null check (status in ('running', 'paused', 'done', 'cancelled', 'failed')),
  filters text[] not null,
  confirm_duplicate boolean not null,
  total integer not null,
  -- The rows of a job are numbered; those up to here are dealt with. It moves in the transaction that replays them.
  processed integer not null default 0,
  replayed integer not null default 0,
  skipped integer not null default 0,
  skipped_reasons jsonb not null default '{}',
  -- Rounds that failed one after the other; a few of them end the job as failed.
  failures integer not null default 0,
  last_error text,
  created_by uuid references "user" (document_id),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  ended_at timestamptz(3),
  check (processed between 0 and total and replayed + skipped = processed)
);
create index replay_job_created_idx on replay_job (created_at desc, document_id desc);
create index replay_job_running_idx on replay_job (created_at) where status = 'running';

-- The rows of a job, fixed when it is made. No reference to the ledger: retention and purge do not wait for a job.
create table replay_job_item (
  job uuid not null references replay_job (document_id) on delete cascade,
  position integer not null,
  dispatch uuid not null,
  primary key (job, position),
  unique (job, dispatch)
);

-- What a job has put on its way and is not posted yet: the job waits while it is much.
create index webhook_dispatch_replay_job_idx on webhook_dispatch (replay_job)
  where replay_job is not null and status in ('pending', 'retrying');
