-- additive
-- A target whose URL changes may be another service: the ids that the former one gave the users mean nothing there, and
-- what it has of them is not known. What was learned of a user counts for the generation of the target under which it was
-- learned.
alter table provisioning_target add column generation integer not null default 0;
alter table provisioning_stream add column generation integer not null default 0;

-- Which user a SCIM service knows by an id.
create index provisioning_stream_remote_idx on provisioning_stream (target, remote_id) where remote_id is not null;
